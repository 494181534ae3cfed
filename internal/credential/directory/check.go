package directory

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/storage"
)

// Problem describes an error in one member of an entry.
type Problem struct {
	Loc  []any  // path to the member, beginning with its name
	Type string // a type word of the API's validation errors
	Msg  string
}

// Bounds of an entry's members.
const (
	MaxName        = 255
	maxDescription = 4096
	maxURL         = 2048
	maxList        = 100
	maxWord        = 255
)

// ErrOwnAddress refuses the gateway's own address.
var ErrOwnAddress = errors.New("this is the gateway's own address, and each call would come back to it; enter the address of the server behind it")

// Check returns every error in an entry. checkURL checks whether the gateway may connect to an address; its error is
// shown to people.
func Check(e storage.DirectoryEntry, checkURL func(*url.URL) error) []Problem {
	c := &checker{checkURL: checkURL}
	c.text("name", e.Name, 1, MaxName)
	c.text("description", e.Description, 0, maxDescription)
	c.text("icon", e.Icon, 0, maxURL)
	if !slug.Valid(e.Slug) || slug.Reserved(e.Slug) {
		c.add("value_error", "Value error, not a usable slug", "slug")
	}
	c.enum("protocol", string(e.Protocol), string(storage.ProtocolMCP), string(storage.ProtocolSSE))
	c.enum("provider", string(e.Provider), storage.Providers()...)
	c.address(true, e.URL, "url")
	c.address(false, e.EventsURL, "events_url")
	c.endpoints(e)
	c.obtained(e)
	c.list("scopes", e.Scopes, isScope)
	c.list("categories", e.Categories, isPlain)
	c.authParams(e)
	c.options(e)
	if e.Provider == storage.ProviderNone && e.RequiresAuth {
		c.add("value_error", "Value error, a server without authentication cannot require it", "requires_auth")
	}
	return c.problems
}

type checker struct {
	checkURL func(*url.URL) error
	problems []Problem
}

func (c *checker) add(kind, msg string, loc ...any) {
	c.problems = append(c.problems, Problem{Loc: loc, Type: kind, Msg: msg})
}

func (c *checker) text(name, value string, least, most int) {
	switch n := len([]rune(value)); {
	case n < least:
		c.add("string_too_short", fmt.Sprintf("String should have at least %d character", least), name)
	case n > most:
		c.add("string_too_long", fmt.Sprintf("String should have at most %d characters", most), name)
	case !isPlain(value) && value != "":
		c.add("value_error", "Value error, control characters are not allowed", name)
	}
}

func (c *checker) enum(name, value string, known ...string) {
	if !slices.Contains(known, value) {
		c.add("enum", "Input should be '"+strings.Join(known, "', '")+"'", name)
	}
}

// address checks an address that the gateway connects to.
func (c *checker) address(required bool, text string, loc ...any) {
	if text == "" {
		if required {
			c.add("string_too_short", "String should have at least 1 character", loc...)
		}
		return
	}
	if len(text) > maxURL {
		c.add("string_too_long", fmt.Sprintf("String should have at most %d characters", maxURL), loc...)
		return
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Fragment != "" {
		c.add("value_error", "Value error, not an absolute URL", loc...)
		return
	}
	switch err := c.checkURL(u); {
	case errors.Is(err, ErrOwnAddress):
		c.add("value_error", "Value error, "+err.Error(), loc...)
	case err != nil:
		msg := "Value error, the gateway may not connect there"
		if line := netguard.AdviceFor(u); line != "" {
			msg += "; whoever runs it can allow the address with the line `" + line + "` in `egress`"
		}
		c.add("value_error", msg, loc...)
	}
}

func (c *checker) endpoints(entry storage.DirectoryEntry) {
	e := entry.OAuth
	for name, address := range map[string]string{
		"issuer": e.Issuer, "authorization_endpoint": e.AuthorizationEndpoint, "token_endpoint": e.TokenEndpoint,
		"registration_endpoint": e.RegistrationEndpoint, "revocation_endpoint": e.RevocationEndpoint,
	} {
		c.address(false, address, "oauth", name)
	}
	// With only one of the two, the upstream would supply the other and collect codes or tokens that are not for it.
	if !entry.Provider.Obtained() && e.Issuer == "" && (e.AuthorizationEndpoint == "") != (e.TokenEndpoint == "") {
		c.add("value_error", "Value error, authorization_endpoint and token_endpoint go together, or an issuer with them", "oauth")
	}
	slices.SortStableFunc(c.problems, func(a, b Problem) int { return strings.Compare(fmt.Sprint(a.Loc), fmt.Sprint(b.Loc)) })
	// The resource is an identifier (RFC 8707 section 2): it is sent, never connected to.
	if e.Resource == "" {
		return
	}
	if u, err := url.Parse(e.Resource); err != nil || !u.IsAbs() || u.Fragment != "" || len(e.Resource) > maxURL {
		c.add("value_error", "Value error, not an absolute URI without a fragment", "oauth", "resource")
	}
}

func (c *checker) list(name string, values []string, valid func(string) bool) {
	if len(values) > maxList {
		c.add("too_long", fmt.Sprintf("List should have at most %d items", maxList), name)
		return
	}
	for i, value := range values {
		if value == "" || len(value) > maxWord || !valid(value) {
			c.add("value_error", "Value error, not a usable word", name, i)
		}
	}
}

func (c *checker) authParams(e storage.DirectoryEntry) {
	var wrong *AuthParamsError
	switch {
	case !errors.As(CheckAuthParams(e.AuthParams), &wrong):
	case wrong.Member == "in":
		c.add("enum", "Input should be '"+InHeader+"', '"+InQuery+"'", "auth_params", "in")
	default:
		c.add("value_error", "Value error, "+wrong.Reason, "auth_params", wrong.Member)
	}
	if e.AuthParams.In == InQuery && e.Provider != storage.ProviderAPIKey {
		c.add("value_error", "Value error, only an API key can go into the query", "auth_params", "in")
	}
}

// isScope reports whether text is a scope-token of RFC 6749 section 3.3.
func isScope(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
}

func isPlain(text string) bool { return !strings.ContainsFunc(text, unicode.IsControl) }

// sameOrigin reports whether two addresses have the same scheme, host and port.
func sameOrigin(a, b string) bool {
	x, errX := url.Parse(a)
	y, errY := url.Parse(b)
	return errX == nil && errY == nil && x.Host != "" && strings.EqualFold(x.Scheme, y.Scheme) && strings.EqualFold(x.Host, y.Host)
}
