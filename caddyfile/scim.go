package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/settings"
)

// parseSCIM reads the rules for provisioned users. Syntax:
//
//	scim {
//		match   user_name|subject|email|external_id
//		groups  token|scim...
//		require
//	}
func parseSCIM(d *caddyfile.Dispenser, a *app.App) error {
	if a.SCIM != nil {
		return d.Err("scim may be given once")
	}
	rules := new(settings.Provisioning)
	a.SCIM = rules
	if d.NextArg() {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		word, values := d.Val(), d.RemainingArgs()
		switch word {
		case "match":
			if rules.Match != "" {
				return d.Err("match may be given once")
			}
			if len(values) != 1 {
				return d.ArgErr()
			}
			rules.Match = values[0]
		case "groups":
			if rules.Groups != nil {
				return d.Err("groups may be given once")
			}
			if len(values) == 0 {
				return d.ArgErr()
			}
			rules.Groups = values
		case "require":
			if rules.Require {
				return d.Err("require may be given once")
			}
			if len(values) != 0 {
				return d.ArgErr()
			}
			rules.Require = true
		default:
			return d.Errf("unrecognized word %q in scim; known are groups, match, require", word)
		}
		if err := told(d, rules.Check()); err != nil {
			return err
		}
	}
	if !rules.Require && rules.Match == "" && rules.Groups == nil {
		return d.Err("scim needs a block with groups, match or require; provisioning works without the option")
	}
	return nil
}
