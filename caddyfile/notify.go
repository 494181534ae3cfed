package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/arguments"
	"github.com/durward-gateway/durward/modules/app/settings"
)

// parseNotify reads the receivers of announcements. Syntax:
//
//	notify {
//		webhook <url> {
//			secret    <reference...>
//			arguments on
//		}
//		slack <reference...>
//		teams <reference...>
//		email <host:port> {
//			from     <address>
//			user     <name>
//			password <reference>
//			tls      starttls|implicit|off
//		}
//	}
func parseNotify(d *caddyfile.Dispenser, a *app.App) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	if a.Notify == nil {
		a.Notify = new(settings.Notify)
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var err error
		switch word := d.Val(); word {
		case "webhook":
			err = parseNotifyWebhook(d, a.Notify)
		case "slack":
			err = parseReferences(d, &a.Notify.Slack)
		case "teams":
			err = parseReferences(d, &a.Notify.Teams)
		case "email":
			err = parseNotifyEmail(d, a.Notify)
		default:
			err = d.Errf("unrecognized word %q in notify; known are email, slack, teams, webhook", word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parseReferences reads the references of a line.
func parseReferences(d *caddyfile.Dispenser, list *[]string) error {
	word := d.Val()
	if err := arguments.Append(d, list); err != nil {
		return err
	}
	for _, text := range *list {
		if !settings.IsReference(text) {
			return d.Errf("%s takes references, {env.NAME} or {file./path}: a secret written here would be readable on the admin endpoint", word)
		}
	}
	return nil
}

func parseNotifyWebhook(d *caddyfile.Dispenser, n *settings.Notify) error {
	var w settings.NotifyWebhook
	if !d.AllArgs(&w.URL) {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var err error
		switch word := d.Val(); word {
		case "secret":
			err = parseReferences(d, &w.Secrets)
		case "arguments":
			err = parseArgumentsOn(d, &w.Arguments)
		default:
			err = d.Errf("unrecognized word %q in webhook; known are arguments, secret", word)
		}
		if err != nil {
			return err
		}
	}
	if len(w.Secrets) == 0 {
		return d.Errf("webhook %s needs a secret", w.URL)
	}
	n.Webhooks = append(n.Webhooks, w)
	return nil
}

func parseNotifyEmail(d *caddyfile.Dispenser, n *settings.Notify) error {
	if n.Email != nil {
		return d.Err("email may be given once")
	}
	e := new(settings.NotifyEmail)
	if !d.AllArgs(&e.Server) {
		return d.ArgErr()
	}
	texts := map[string]*string{"from": &e.From, "user": &e.User, "password": &e.Password, "tls": &e.TLS}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		word := d.Val()
		text := texts[word]
		switch {
		case text == nil:
			return d.Errf("unrecognized word %q in email; known are from, password, tls, user", word)
		case *text != "":
			return d.Errf("%s may be given once", word)
		case !d.AllArgs(text):
			return d.ArgErr()
		}
	}
	if e.Password != "" && !settings.IsReference(e.Password) {
		return d.Err("password takes a reference, {env.NAME} or {file./path}: a password written here would be readable on the admin endpoint")
	}
	if e.From == "" {
		return d.Err("email needs from, the address of the sender")
	}
	n.Email = e
	return nil
}
