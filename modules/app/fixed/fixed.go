// Package fixed tells those who look after an organization what the configuration fixed, and where that is written. It knows
// no secrets, and no references to them.
package fixed

import (
	"cmp"
	"encoding/json"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/ratelimit/cluster"
	"github.com/durward-gateway/durward/modules/app/browsers"
	"github.com/durward-gateway/durward/modules/app/issuers"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

// ConfigView is the API's view of what the configuration fixed.
type ConfigView struct {
	// Identities has the identity providers whose tokens can name the organization.
	Identities []ConfiguredIdentity `json:"identity_providers"`
	Options    []ConfiguredOption   `json:"options"`
}

// ConfiguredIdentity is an identity provider.
type ConfiguredIdentity struct {
	Issuer       string   `json:"issuer"`
	Organization *string  `json:"organization"` // the one that all its tokens are for; null: they name it
	Audience     []string `json:"audience"`     // empty: any
	LoginClient  *string  `json:"login_client"` // the gateway's client there; null: nobody logs in with a browser
	At           *string  `json:"at"`           // file:line of a Caddyfile; null: not known
}

// ConfiguredOption is another option of the configuration.
type ConfiguredOption struct {
	Option string   `json:"option"` // the words of the Caddyfile
	Values []string `json:"values"`
	Given  bool     `json:"given"` // false: it is the default
	At     *string  `json:"at"`    // file:line of a Caddyfile; null: not known, or the default
}

// Source holds the configuration.
type Source struct {
	Written       map[string][]string
	PublicURL     string
	Store         json.RawMessage
	Identities    []json.RawMessage
	Coordinator   json.RawMessage
	Authorization *settings.AuthorizationServer
	Audit         *settings.AuditRules
	Limits        *settings.LimitRules
	Agents        *settings.AgentRules
	SSE           *settings.SSERules
	Pinning       *settings.PinRules
	Notify        *settings.Notify
	Branding      *settings.Branding
	SCIM          *settings.Provisioning
	Unconnected   string
	MemoryLimit   int64
}

// Configuration holds what was fixed, apart from the identity providers.
type Configuration struct {
	written map[string][]string
	options []ConfiguredOption
}

// New describes a configuration.
func New(s Source) *Configuration {
	c := &Configuration{written: s.Written}
	driver := kind(s.Store, "driver")
	c.add("public_url", s.PublicURL != "", s.PublicURL)
	c.add("store", s.Store != nil, driver)
	coordinator := kind(s.Coordinator, "kind")
	if s.Coordinator == nil {
		coordinator = "local"
		if driver == "postgres" {
			coordinator = driver
		}
	}
	c.add("coordinate", s.Coordinator != nil, coordinator)
	c.limits(s.Limits)
	c.logins(s.Authorization)
	c.calls(s)
	c.audit(s.Audit)
	c.notify(s.Notify)
	c.branding(s.Branding)
	c.provisioning(s.SCIM)
	if s.MemoryLimit != 0 {
		c.add("memory_limit", true, strconv.FormatInt(s.MemoryLimit>>20, 10)+"MiB")
	}
	return c
}

// add adds an option. Its first word is that of the line.
func (c *Configuration) add(option string, given bool, values ...string) {
	o := ConfiguredOption{Option: option, Given: given, Values: []string{}}
	for _, value := range values {
		if value != "" {
			o.Values = append(o.Values, value)
		}
	}
	if given {
		o.At = c.at(option, 0)
	}
	c.options = append(c.options, o)
}

// at returns the place of the nth line of an option; nil when it is not known. Where the file is, is the operator's alone.
func (c *Configuration) at(option string, n int) *string {
	word, _, _ := strings.Cut(option, " ")
	if places := c.written[word]; n < len(places) {
		place := filepath.Base(places[n])
		return &place
	}
	return nil
}

func (c *Configuration) limits(r *settings.LimitRules) {
	if r == nil {
		r = new(settings.LimitRules)
	}
	c.add("limits mode", r.Mode != "", cmp.Or(r.Mode, string(cluster.Exact)))
	c.add("limits on_store_failure", r.OnStoreFailure != "", cmp.Or(r.OnStoreFailure, string(cluster.Local)))
	c.add("limits nodes", r.Nodes != 0, strconv.FormatInt(max(r.Nodes, 1), 10))
}

func (c *Configuration) logins(a *settings.AuthorizationServer) {
	if a == nil {
		a = new(settings.AuthorizationServer)
	}
	c.add("authorization_server", a.Mode != "", cmp.Or(a.Mode, "on, where each identity has a login_client"))
	c.add("authorization_server oauth_clients", len(a.Clients) > 0, orOne(a.Clients, "any")...)
	c.add("authorization_server lifetime", a.Lifetime != 0, cmp.Or(span(time.Duration(a.Lifetime)), "30d"))
	c.add("authorization_server idle", a.Idle != 0, cmp.Or(span(time.Duration(a.Idle)), "7d"))
}

func (c *Configuration) calls(s Source) {
	agents := "unregistered clients may call"
	switch {
	case s.Agents == nil && slices.ContainsFunc(s.Identities, func(raw json.RawMessage) bool { return kind(raw, "kind") == "dev" }):
		agents = "auto_register"
	case s.Agents != nil && s.Agents.RequireRegistered:
		agents = "require_registered"
	case s.Agents != nil && s.Agents.AutoRegister:
		agents = "auto_register"
	}
	c.add("agents", s.Agents != nil, agents)
	c.add("sse", s.SSE != nil, choose(s.SSE != nil && s.SSE.RequireGrant, "require_grant", "open to connected users"))
	c.add("pin", s.Pinning != nil, choose(s.Pinning != nil && s.Pinning.Enforce, "enforce", "changed tools are flagged"))
	c.add("unconnected", s.Unconnected != "", cmp.Or(s.Unconnected, settings.UnconnectedGuide))
}

// audit names the kinds of the receivers of copies: paths of files are the operator's alone.
func (c *Configuration) audit(r *settings.AuditRules) {
	if r == nil {
		r = new(settings.AuditRules)
	}
	c.add("audit best_effort", len(r.BestEffort) > 0, orOne(r.BestEffort, "none: calls that cannot be recorded are refused")...)
	c.add("audit sync", r.Sync != "", cmp.Or(r.Sync, "within 50ms"))
	c.add("audit arguments", r.Arguments, choose(r.Arguments, "on", "off: digests only"))
	if len(r.Redact) > 0 {
		c.add("audit redact", true, r.Redact...)
	}
	var kinds []string
	for _, sink := range r.Sinks {
		kinds = append(kinds, sink.Kind)
	}
	c.add("audit sink", len(kinds) > 0, orOne(kinds, "none")...)
	c.add("audit retention", false, "records are kept for good")
}

// notify names the kinds of receivers, and their hosts where these are no part of a secret.
func (c *Configuration) notify(n *settings.Notify) {
	if n == nil {
		n = new(settings.Notify)
	}
	var receivers []string
	for _, w := range n.Webhooks {
		host := ""
		if u, err := url.Parse(w.URL); err == nil {
			host = u.Hostname()
		}
		receivers = append(receivers, "webhook "+host)
	}
	receivers = slices.Concat(receivers, slices.Repeat([]string{"slack"}, len(n.Slack)), slices.Repeat([]string{"teams"}, len(n.Teams)))
	if n.Email != nil {
		host, _, err := net.SplitHostPort(n.Email.Server)
		if err != nil {
			host = ""
		}
		receivers = append(receivers, "email "+host)
	}
	c.add("notify", len(receivers) > 0, orOne(receivers, "nobody is told of held calls")...)
}

func (c *Configuration) branding(b *settings.Branding) {
	if b == nil {
		b = new(settings.Branding)
	}
	c.add("branding name", b.Name != "", cmp.Or(b.Name, "durward"))
	c.add("branding logo", b.Logo != "", choose(b.Logo != "", "one of its own", "durward's"))
	c.add("branding accent", b.Accent != "", cmp.Or(b.Accent, "1f4fd1"))
}

func (c *Configuration) provisioning(p *settings.Provisioning) {
	if p == nil {
		p = new(settings.Provisioning)
	}
	c.add("scim match", p.Match != "", string(p.Rules().Match))
	c.add("scim groups", len(p.Groups) > 0, orOne(p.Groups, "token")...)
	c.add("scim require", p.Require, choose(p.Require, "only provisioned users come in", "every user comes in"))
}

// View returns what an organization may know: the identity providers are its own.
func (c *Configuration) View(own storage.Organization, publicURL string, known *issuers.Issuers, logins *browsers.Logins) ConfigView {
	v := ConfigView{Identities: []ConfiguredIdentity{}, Options: slices.Clone(c.options)}
	if len(v.Options) > 0 && !v.Options[0].Given {
		v.Options[0].Values = []string{publicURL}
	}
	of := known.Of(own)
	for i, name := range known.Names() {
		if !slices.Contains(of, name) {
			continue
		}
		identity := ConfiguredIdentity{Issuer: name, Audience: []string{}, At: c.at("identity", i)}
		issuer := known.ByName()[name]
		if fixed := issuer.Rules().Mapping.Organization; fixed != "" {
			identity.Organization = &fixed
		}
		if options := issuer.Verifier().Options(); !options.AnyAudience {
			identity.Audience = append(identity.Audience, options.Audiences...)
		}
		if client, _, ok := logins.Client(name); ok {
			identity.LoginClient = &client
		}
		v.Identities = append(v.Identities, identity)
	}
	return v
}

// kind returns the member of a module's configuration that names it.
func kind(raw json.RawMessage, member string) string {
	var members map[string]json.RawMessage
	var name string
	if json.Unmarshal(raw, &members) != nil || json.Unmarshal(members[member], &name) != nil {
		return ""
	}
	return name
}

func orOne(values []string, otherwise string) []string {
	if len(values) == 0 {
		return []string{otherwise}
	}
	return values
}

func choose(first bool, one, other string) string {
	if first {
		return one
	}
	return other
}

// span writes a duration as the Caddyfile has it; "" for none.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == 0:
		return ""
	case d%day == 0:
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return d.String()
}
