package devidp

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/browsers"
	"github.com/durward-gateway/durward/modules/devidp/demo"
	"github.com/durward-gateway/durward/storage"
)

const (
	// issuerPath is the path of the provider on the gateway's site.
	issuerPath = "/dev/idp"
	// welcomePath is the path of the page that lists the running services.
	welcomePath = "/"
	// ownerIssuer owns organizations, users and agents in the store: development mode is one issuer, whatever address it
	// listens on.
	ownerIssuer = "urn:durward:dev"
	// demoSlug names the demo third party in the directory, and the server that is made from it.
	demoSlug = "demo"
	// demoOrganization is the organization that gets the demo server at its first start.
	demoOrganization = "acme"
)

// Identity is the development identity provider: OpenID Connect and OAuth over a few users without passwords, at
// `/dev/idp` of the gateway's site. It runs a demo third party on a second port, with an MCP server to connect to, and
// a demo provider of models. It needs a store on a local disk, beside which it keeps its files, and a site that listens
// on loopback only.
type Identity struct {
	// The proof that a browser must give when it comes back from connecting an account: `login`, that the account's user
	// is logged in with it, or `state`, that it knows the state of the attempt. Default: `state`.
	ConnectCheck string `json:"connect_check,omitempty"`
	// Whether the organization `acme` is filled with a month of made traffic, once. Default: it is not.
	DemoData bool `json:"demo_data,omitempty"`

	surroundings *held
	verifier     *token.Verifier
	login        *browsers.Login
}

// CaddyModule returns the Caddy module information.
func (Identity) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "durward.identities.dev", New: func() caddy.Module { return new(Identity) }}
}

// Bind implements app.Identity.
func (i *Identity) Bind(b app.Binding) error {
	if b.DataDirectory == "" {
		return errors.New("identity dev: it needs a store on a local disk, such as `store sqlite`")
	}
	var err error
	if i.surroundings, err = acquire(b); err != nil {
		return fmt.Errorf("identity dev: %w", err)
	}
	provider := i.surroundings.provider
	keys, err := staticKeys(provider.Keys())
	if err != nil {
		return fmt.Errorf("identity dev: %w", err)
	}
	i.verifier, err = token.NewVerifier(token.Options{
		Issuer: provider.Issuer(), Audiences: []string{b.PublicURL}, Algorithms: []string{"RS256"}, RequireTyp: true,
	}, keys, b.Now)
	if err != nil {
		return fmt.Errorf("identity dev: %w", err)
	}
	if i.login, err = i.bindLogin(keys, b); err != nil {
		return fmt.Errorf("identity dev: %w", err)
	}
	return nil
}

// Cleanup gives back the provider and the demo third party.
func (i *Identity) Cleanup() error {
	if i.surroundings == nil {
		return nil
	}
	held := i.surroundings
	i.surroundings = nil
	return held.release()
}

// IssuerID implements app.Identity.
func (i *Identity) IssuerID() string { return i.surroundings.provider.Issuer() }

// Verifier implements app.Identity.
func (i *Identity) Verifier() *token.Verifier { return i.verifier }

// Rules implements app.Identity.
func (i *Identity) Rules() caller.Rules {
	return caller.Rules{Mapping: caller.Mapping{Issuer: ownerIssuer}, Roles: caller.RoleNames{
		Admin: "admin", Auditor: "auditor", PolicyEditor: "policy_editor", Operator: "operator",
	}}
}

// Handler implements app.DevelopmentIdentity.
func (i *Identity) Handler() http.Handler { return i.surroundings.handler }

// Owns implements app.DevelopmentIdentity.
func (i *Identity) Owns(path string) bool {
	return path == welcomePath || path == issuerPath || strings.HasPrefix(path, issuerPath+"/") || slices.Contains(i.surroundings.provider.RootPaths(), path)
}

// Records implements app.DevelopmentIdentity.
func (i *Identity) Records() []directory.Record {
	base := i.surroundings.demoURL
	return []directory.Record{{
		Name: "Demo", Slug: demoSlug, Description: "The demo third party of development mode: an issue tracker on this machine.",
		URL: base + "/mcp", EventsURL: base + "/events", Provider: storage.ProviderOAuth2, Public: true, Scopes: []string{demo.Scope},
		Categories: []string{"demo"},
	}}
}

// UnmarshalCaddyfile sets up the identity from Caddyfile tokens. Syntax:
//
//	dev {
//		connect_check login|state
//		demo_data
//	}
func (i *Identity) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the kind's name
	if d.NextArg() {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		switch word := d.Val(); {
		case word == "connect_check" && i.ConnectCheck == "":
			if !d.AllArgs(&i.ConnectCheck) {
				return d.ArgErr()
			}
		case word == "demo_data" && !i.DemoData:
			if i.DemoData = true; d.NextArg() {
				return d.ArgErr()
			}
		default:
			return d.Errf("unrecognized word %q in identity dev; known are connect_check, demo_data, once each", word)
		}
	}
	return nil
}

// Interface guards
var (
	_ app.DevelopmentIdentity = (*Identity)(nil)
	_ app.LoginIdentity       = (*Identity)(nil)
	_ caddy.CleanerUpper      = (*Identity)(nil)
	_ caddyfile.Unmarshaler   = (*Identity)(nil)
)
