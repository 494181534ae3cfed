package identities

import (
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/durward-gateway/durward/modules/app/arguments"
)

// UnmarshalCaddyfile sets up the identity from Caddyfile tokens. Syntax:
//
//	oidc <issuer> {
//		audience <audience...>
//		audience any
//		algorithms <name...>
//		leeway <duration>
//		max_lifetime <duration>
//		max_token_age <duration>
//		require_typ
//		aud_single
//		claim <name> <path...>
//		claim_separator <character>
//		organization <slug>
//		scopes <scope...>
//		admin_role <name>
//		auditor_role <name>
//		policy_editor_role <name>
//		operator_role <name>
//		shared_organizations <id...>
//		login_client <id> [<secret reference>]
//		id_jag
//		connect_check login|state
//	}
func (o *OIDC) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the kind's name
	if !d.AllArgs(&o.Issuer) {
		return d.ArgErr()
	}
	seen := make(map[string]bool)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		word := d.Val()
		if seen[word] && !slices.Contains(lists, word) {
			return d.Errf("%s may be given once", word)
		}
		seen[word] = true
		if err := o.unmarshalWord(d); err != nil {
			return err
		}
	}
	return nil
}

// lists holds the words that add to their earlier values.
var lists = []string{"audience", "algorithms", "claim", "scopes", "shared_organizations"}

func (o *OIDC) unmarshalWord(d *caddyfile.Dispenser) error {
	word := d.Val()
	switch word {
	case "audience":
		return o.unmarshalAudience(d)
	case "algorithms":
		return arguments.Append(d, &o.Algorithms)
	case "shared_organizations":
		return arguments.Append(d, &o.SharedOrganizations)
	case "claim":
		return o.unmarshalClaim(d)
	case "claim_separator":
		return unmarshalText(d, &o.ClaimSeparator)
	case "organization":
		return unmarshalText(d, &o.Organization)
	case "scopes":
		return arguments.Append(d, &o.Scopes)
	case "admin_role":
		return unmarshalText(d, &o.AdminRole)
	case "auditor_role":
		return unmarshalText(d, &o.AuditorRole)
	case "policy_editor_role":
		return unmarshalText(d, &o.PolicyEditorRole)
	case "operator_role":
		return unmarshalText(d, &o.OperatorRole)
	case "leeway":
		return unmarshalDuration(d, &o.Leeway)
	case "max_lifetime":
		return unmarshalDuration(d, &o.MaxLifetime)
	case "max_token_age":
		return unmarshalDuration(d, &o.MaxTokenAge)
	case "require_typ":
		return unmarshalSwitch(d, &o.RequireType)
	case "aud_single":
		return unmarshalSwitch(d, &o.SoleAudience)
	case "login_client":
		return o.unmarshalLoginClient(d)
	case "id_jag":
		return unmarshalSwitch(d, &o.Assertions)
	case "connect_check":
		return unmarshalText(d, &o.ConnectCheck)
	}
	return d.Errf("unrecognized word %q in identity oidc; known are admin_role, algorithms, aud_single, audience, auditor_role, claim, "+
		"claim_separator, connect_check, id_jag, leeway, login_client, max_lifetime, max_token_age, operator_role, organization, policy_editor_role, require_typ, scopes, shared_organizations", word)
}

func (o *OIDC) unmarshalAudience(d *caddyfile.Dispenser) error {
	arguments := d.RemainingArgs()
	switch {
	case len(arguments) == 0:
		return d.ArgErr()
	case slices.Equal(arguments, []string{"any"}):
		o.AnyAudience = true
	default:
		o.Audiences = append(o.Audiences, arguments...)
	}
	if o.AnyAudience && len(o.Audiences) > 0 {
		return d.Err("`audience any` stands alone")
	}
	return nil
}

func (o *OIDC) unmarshalClaim(d *caddyfile.Dispenser) error {
	arguments := d.RemainingArgs()
	if len(arguments) < 2 {
		return d.ArgErr()
	}
	name, paths := arguments[0], arguments[1:]
	if !slices.Contains(claimNames(), name) {
		return d.Errf("unrecognized claim %q; known are %s", name, strings.Join(claimNames(), ", "))
	}
	if o.Claims == nil {
		o.Claims = make(map[string][]string)
	}
	o.Claims[name] = append(o.Claims[name], paths...)
	return nil
}

func unmarshalText(d *caddyfile.Dispenser, target *string) error {
	if !d.AllArgs(target) {
		return d.ArgErr()
	}
	return nil
}

func unmarshalDuration(d *caddyfile.Dispenser, target *caddy.Duration) error {
	var text string
	if !d.AllArgs(&text) {
		return d.ArgErr()
	}
	duration, err := caddy.ParseDuration(text)
	if err != nil || duration <= 0 {
		return d.Errf("%q is not a duration such as 30s", text)
	}
	*target = caddy.Duration(duration)
	return nil
}

func unmarshalSwitch(d *caddyfile.Dispenser, target *bool) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	*target = true
	return nil
}

var _ caddyfile.Unmarshaler = (*OIDC)(nil)
