package caddyfile

import (
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/arguments"
	"github.com/durward-gateway/durward/modules/app/settings"
)

// parseAuthorizationServer reads `authorization_server on|off { ... }`. The word may be missing before a block.
func parseAuthorizationServer(d *caddyfile.Dispenser, a *app.App) error {
	if a.AuthorizationServer != nil {
		return d.Err("authorization_server may be given once")
	}
	rules := new(settings.AuthorizationServer)
	a.AuthorizationServer = rules
	if d.CountRemainingArgs() > 1 {
		return d.ArgErr()
	}
	if d.NextArg() {
		rules.Mode = d.Val()
	}
	if err := settings.CheckAuthorizationMode(rules.Mode); err != nil {
		return d.Err(err.Error())
	}
	said := rules.Mode != ""
	for nesting := d.Nesting(); d.NextBlock(nesting); said = true {
		var err error
		switch word := d.Val(); word {
		case "lifetime":
			err = parseTime(d, &rules.Lifetime)
		case "idle":
			err = parseTime(d, &rules.Idle)
		case "oauth_clients":
			if err = arguments.Append(d, &rules.Clients); err == nil {
				err = told(d, rules.CheckClients())
			}
		case "oauth_client":
			if err = parseOAuthClient(d, rules); err == nil {
				err = told(d, rules.CheckClients())
			}
		default:
			err = d.Errf("unrecognized word %q in authorization_server; known are idle, lifetime, oauth_client, oauth_clients", word)
		}
		if err != nil {
			return err
		}
	}
	if !said {
		return d.ArgErr()
	}
	return told(d, rules.Check()) // lifetime and idle come in any order
}

// told returns an error with the line at which the dispenser is.
func told(d *caddyfile.Dispenser, err error) error {
	if err == nil {
		return nil
	}
	return d.Err(err.Error())
}

// parseTime reads a word whose value is a duration.
func parseTime(d *caddyfile.Dispenser, to *caddy.Duration) error {
	word, value := d.Val(), ""
	if !d.AllArgs(&value) {
		return d.ArgErr()
	}
	if *to != 0 {
		return d.Errf("%s may be given once", word)
	}
	return setDuration(d, to, value)
}

// parseOAuthClient reads `oauth_client <id> { ... }`.
func parseOAuthClient(d *caddyfile.Dispenser, rules *settings.AuthorizationServer) error {
	var c settings.OAuthClient
	if !d.AllArgs(&c.ID) {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		switch word := d.Val(); word {
		case "name":
			if c.Name != "" || !d.AllArgs(&c.Name) {
				return d.ArgErr()
			}
		case "secret":
			if c.Secret != "" || !d.AllArgs(&c.Secret) {
				return d.ArgErr()
			}
			if !settings.IsReference(c.Secret) {
				return d.Err("secret takes a reference, {env.NAME} or {file./path}: a secret written here would be readable on the admin endpoint")
			}
		case "redirect_uri":
			if err := arguments.Append(d, &c.RedirectURIs); err != nil {
				return err
			}
		default:
			return d.Errf("unrecognized word %q in oauth_client; known are name, redirect_uri, secret", word)
		}
	}
	rules.Known = append(rules.Known, c)
	return nil
}
