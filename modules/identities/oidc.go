// Package identities configures the issuers of tokens that the gateway accepts. Its module is a guest of
// durward.identities: OIDC. The development identity provider is the other guest (modules/devidp). The package verifies
// no token itself: internal/identity/token does that.
package identities

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/browsers"
	"github.com/durward-gateway/durward/modules/app/keysets"
)

func init() {
	caddy.RegisterModule(OIDC{})
}

// OIDC accepts the tokens of an OpenID Connect issuer: JWTs, verified against the keys that the issuer publishes. The
// keys are fetched when the first token arrives, so that the gateway starts while the issuer is down; they are
// refreshed as they are used, and if the issuer cannot be reached they stay valid for an hour.
type OIDC struct {
	// The issuer's address, exactly as in the `iss` of its tokens: no slash is added or dropped. Required.
	Issuer string `json:"issuer,omitempty"`

	// Audiences that are accepted on every address of the gateway. Default: the public URL.
	Audiences []string `json:"audience,omitempty"`

	// Accept every audience. A token that was meant for another service is then accepted here too. Default: false.
	AnyAudience bool `json:"audience_any,omitempty"`

	// Refuse tokens that are also for other audiences than the gateway. Default: false.
	SoleAudience bool `json:"aud_single,omitempty"`

	// Signature algorithms that are accepted. Default: RS256, PS256, ES256, ES384, EdDSA.
	Algorithms []string `json:"algorithms,omitempty"`

	// How far the issuer's clock may be from the gateway's. Default: 30s.
	Leeway caddy.Duration `json:"leeway,omitempty"`

	// The longest time from issue to expiry that is accepted. Default: 24h.
	MaxLifetime caddy.Duration `json:"max_lifetime,omitempty"`

	// The longest time since issue that is accepted. Default: as long as the token lives.
	MaxTokenAge caddy.Duration `json:"max_token_age,omitempty"`

	// Accept only tokens whose type says that they are access tokens (RFC 9068: `at+jwt`). Default: false.
	RequireType bool `json:"require_typ,omitempty"`

	// Where claims are, by name. A path is the name of a member, or names joined by dots; naming a claim replaces its default
	// paths. The first path that is present decides, except for `roles`, `groups`, `teams` and `projects`, which are the union
	// of all paths, and for `name` and `email`, which are the first that holds a text. Default:
	//
	//   - `org`: org_id, organization_id, organization
	//   - `org_slug`: organization_slug, org_slug, organization_name, user.organization_slug, user.organization_name
	//   - `user`: sub
	//   - `roles`: roles, realm_access.roles
	//   - `groups`: groups
	//   - `teams`: teams
	//   - `projects`: projects
	//   - `agent`: azp, client_id, cid
	//   - `name`: name, preferred_username
	//   - `email`: email
	Claims map[string][]string `json:"claim,omitempty"`

	// The character between the names of roles, groups, teams and projects, for issuers that write several into one text:
	// a comma, a semicolon or a blank. Default: none, and a text grants nothing.
	ClaimSeparator string `json:"claim_separator,omitempty"`

	// The slug, or id, of the one organization that this issuer's tokens are for. The tokens need not name it; a token
	// that names another organization is refused. Default: the organization that a token names.
	Organization string `json:"organization,omitempty"`

	// Scopes that clients ask the issuer for: in the metadata of MCP servers, and in the answers to requests without a
	// token. Default: none are named, and clients choose scopes themselves.
	Scopes []string `json:"scopes,omitempty"`

	// The role of administrators. Default: `admin`.
	AdminRole string `json:"admin_role,omitempty"`

	// The role of auditors, who read everything that administrators read and change nothing. Default: none, and nobody is
	// an auditor.
	AuditorRole string `json:"auditor_role,omitempty"`

	// The role of policy editors, who edit policies and accept tools. Default: none, and nobody is one.
	PolicyEditorRole string `json:"policy_editor_role,omitempty"`

	// The role of operators, who manage servers, the directory, connections and agents. Default: none, and nobody is one.
	OperatorRole string `json:"operator_role,omitempty"`

	// Ids of organizations that belong to other issuers and that this issuer's tokens may name too. Default: none.
	SharedOrganizations []string `json:"shared_organizations,omitempty"`

	// The gateway's own client at the issuer, with which users log in at the gateway's pages; its redirect URI is the
	// public URL followed by /login/callback. Default: none, and there are no pages to log in at.
	LoginClient string `json:"login_client,omitempty"`

	// A reference to that client's secret, `{env.NAME}` or `{file./path}`. Default: none, for a public client.
	LoginSecret string `json:"login_secret,omitempty"`

	// Log users in by the issuer's identity assertions (ID-JAG), which clients of the gateway present at its token endpoint.
	// The issuer then decides alone which client acts for which user, and no user is asked. It needs a login client.
	// Default: false.
	Assertions bool `json:"id_jag,omitempty"`

	// The proof that a browser must give when it comes back from connecting an account: `login`, that the account's user
	// is logged in with it, or `state`, that it knows the state of the attempt. Default: `login` with a login client, else
	// `state`.
	ConnectCheck string `json:"connect_check,omitempty"`

	paths        caller.Paths
	organization string
	verifier     *token.Verifier
	keys         *keysets.KeySet
	login        *browsers.Login
}

// CaddyModule returns the Caddy module information.
func (OIDC) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "durward.identities.oidc", New: func() caddy.Module { return new(OIDC) }}
}

// Provision checks the configuration.
func (o *OIDC) Provision(caddy.Context) error {
	u, err := url.Parse(o.Issuer)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return fmt.Errorf("identity oidc: %q is not an issuer such as https://id.example.com", o.Issuer)
	}
	if o.AnyAudience && (len(o.Audiences) > 0 || o.SoleAudience) {
		return errors.New("identity oidc: `audience any` stands alone")
	}
	for word, duration := range map[string]caddy.Duration{"leeway": o.Leeway, "max_lifetime": o.MaxLifetime, "max_token_age": o.MaxTokenAge} {
		if duration < 0 {
			return fmt.Errorf("identity oidc: %s is negative", word)
		}
	}
	o.paths, err = claimPaths(o.Claims)
	if err != nil {
		return fmt.Errorf("identity oidc: %w", err)
	}
	if o.ClaimSeparator != "" && !caller.ListSeparator(o.ClaimSeparator) {
		return fmt.Errorf("identity oidc: claim_separator %q is none of \",\", \";\" and \" \"", o.ClaimSeparator)
	}
	if o.Organization != "" {
		var ok bool
		if o.organization, ok = caller.FixedOrganization(o.Organization); !ok {
			return fmt.Errorf("identity oidc: organization %q is no slug: use letters a-z, digits and hyphens, such as `organization acme`", o.Organization)
		}
	}
	if err := checkScopes(o.Scopes); err != nil {
		return fmt.Errorf("identity oidc: %w", err)
	}
	if o.login, err = o.provisionLogin(); err != nil {
		return fmt.Errorf("identity oidc: %w", err)
	}
	return nil
}

// Bind implements app.Identity.
func (o *OIDC) Bind(b app.Binding) error {
	keys, err := keysets.Acquire(o.Issuer, b)
	if err != nil {
		return fmt.Errorf("identity oidc %s: %w", o.Issuer, err)
	}
	o.keys = keys
	audiences := o.Audiences
	if len(audiences) == 0 && !o.AnyAudience {
		audiences = []string{b.PublicURL}
	}
	o.verifier, err = token.NewVerifier(token.Options{
		Issuer: o.Issuer, Audiences: audiences, AnyAudience: o.AnyAudience, Algorithms: o.Algorithms,
		Leeway: time.Duration(o.Leeway), MaxLifetime: time.Duration(o.MaxLifetime), MaxTokenAge: time.Duration(o.MaxTokenAge),
		RequireTyp: o.RequireType, AudSingle: o.SoleAudience,
	}, keys, b.Now)
	if err != nil {
		return fmt.Errorf("identity oidc %s: %w", o.Issuer, err)
	}
	if err := o.bindLogin(b); err != nil {
		return fmt.Errorf("identity oidc %s: %w", o.Issuer, err)
	}
	return nil
}

// Cleanup gives back the key set.
func (o *OIDC) Cleanup() error {
	if o.keys == nil {
		return nil
	}
	keys := o.keys
	o.keys = nil
	return keys.Release()
}

// Verifier implements app.Identity.
func (o *OIDC) Verifier() *token.Verifier { return o.verifier }

// IssuerID implements app.Identity.
func (o *OIDC) IssuerID() string { return o.Issuer }

// Rules implements app.Identity.
func (o *OIDC) Rules() caller.Rules {
	return caller.Rules{
		Mapping: caller.Mapping{
			Paths: o.paths, Separator: o.ClaimSeparator, Organization: o.organization, SharedOrganizations: o.SharedOrganizations,
		},
		Roles: caller.RoleNames{
			Admin: cmp.Or(o.AdminRole, "admin"), Auditor: o.AuditorRole, PolicyEditor: o.PolicyEditorRole, Operator: o.OperatorRole,
		},
	}
}

// RequestedScopes implements app.ScopedIdentity.
func (o *OIDC) RequestedScopes() []string { return o.Scopes }

// Interface guards
var (
	_ app.LoginIdentity  = (*OIDC)(nil)
	_ app.ScopedIdentity = (*OIDC)(nil)
	_ caddy.Provisioner  = (*OIDC)(nil)
	_ caddy.CleanerUpper = (*OIDC)(nil)
)
