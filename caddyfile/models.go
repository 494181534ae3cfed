package caddyfile

import (
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/arguments"
	"github.com/durward-gateway/durward/modules/app/settings"
)

// parseProvider reads an account at a model provider. Syntax:
//
//	provider <kind> [<name>] {
//		base_url         <url>
//		key              <reference>
//		connect_timeout  <duration>
//		response_timeout <duration>
//		idle_timeout     <duration>
//		stream_options   auto|off
//	}
func parseProvider(d *caddyfile.Dispenser, a *app.App) error {
	var p settings.Provider
	if !d.NextArg() {
		return d.Errf("provider needs a kind: %s", guests("durward.providers"))
	}
	p.Kind = d.Val()
	if _, err := caddy.GetModule("durward.providers." + p.Kind); err != nil {
		return d.Errf("unrecognized provider %q; known are %s", p.Kind, guests("durward.providers"))
	}
	if d.NextArg() {
		p.Name = d.Val()
	}
	if d.NextArg() {
		return d.ArgErr()
	}
	words := providerWords{
		texts: map[string]*string{"base_url": &p.BaseURL, "key": &p.Key, "stream_options": &p.StreamOptions},
		times: map[string]*caddy.Duration{"connect_timeout": &p.ConnectTimeout, "response_timeout": &p.ResponseTimeout, "idle_timeout": &p.IdleTimeout},
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if err := words.read(d); err != nil {
			return err
		}
	}
	if p.StreamOptions != "" && p.StreamOptions != accounts.StreamOptionsAuto && p.StreamOptions != accounts.StreamOptionsOff {
		return d.Errf("stream_options is auto or off, not %q", p.StreamOptions)
	}
	if p.Key != "" && !settings.IsReference(p.Key) {
		return d.Err("key takes a reference, {env.NAME} or {file./path}: a key written here would be readable on the admin endpoint")
	}
	a.Providers = append(a.Providers, p)
	return nil
}

// providerWords holds the places of a provider's values, by their words.
type providerWords struct {
	texts map[string]*string
	times map[string]*caddy.Duration
}

// read reads one word and its value.
func (w providerWords) read(d *caddyfile.Dispenser) error {
	word := d.Val()
	var value string
	if !d.AllArgs(&value) {
		return d.ArgErr()
	}
	text, period := w.texts[word], w.times[word]
	switch {
	case text == nil && period == nil:
		return d.Errf("unrecognized word %q in provider; known are base_url, connect_timeout, idle_timeout, key, response_timeout, stream_options", word)
	case text != nil && *text != "", period != nil && *period != 0:
		return d.Errf("%s may be given once", word)
	case text != nil:
		*text = value
	default:
		return setDuration(d, period, value)
	}
	return nil
}

// setDuration reads a duration above zero.
func setDuration(d *caddyfile.Dispenser, to *caddy.Duration, value string) error {
	duration, err := caddy.ParseDuration(value)
	if err != nil || duration <= 0 {
		return d.Errf("%q is not a duration such as 30s", value)
	}
	*to = caddy.Duration(duration)
	return nil
}

// parseAlias reads a name under which clients ask for models. Syntax:
//
//	alias <name> {
//		target            <provider> <model> [weight <number>]
//		fallback          <alias...>
//		description       <text>
//		max_output_tokens <number>
//	}
func parseAlias(d *caddyfile.Dispenser, a *app.App) error {
	var alias settings.Alias
	if !d.AllArgs(&alias.Name) {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var err error
		switch word := d.Val(); word {
		case "target":
			err = parseTarget(d, &alias)
		case "fallback":
			err = arguments.Append(d, &alias.Fallbacks)
		case "description":
			if alias.Description != "" {
				return d.Err("description may be given once")
			}
			if !d.AllArgs(&alias.Description) {
				return d.ArgErr()
			}
		case "max_output_tokens":
			err = parseMaxOutput(d, &alias)
		default:
			err = d.Errf("unrecognized word %q in alias; known are description, fallback, max_output_tokens, target", word)
		}
		if err != nil {
			return err
		}
	}
	a.Aliases = append(a.Aliases, alias)
	return nil
}

func parseMaxOutput(d *caddyfile.Dispenser, alias *settings.Alias) error {
	var number string
	if alias.MaxOutputTokens != 0 {
		return d.Err("max_output_tokens may be given once")
	}
	if !d.AllArgs(&number) {
		return d.ArgErr()
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || n > accounts.MaxOutput {
		return d.Errf("max_output_tokens: %q is not a number from 1 to %d", number, accounts.MaxOutput)
	}
	alias.MaxOutputTokens = n
	return nil
}

func parseTarget(d *caddyfile.Dispenser, alias *settings.Alias) error {
	arguments := d.RemainingArgs()
	if len(arguments) != 2 && (len(arguments) != 4 || arguments[2] != "weight") {
		return d.Err("target takes a provider, a model and, if wanted, `weight` with a number")
	}
	target := settings.Target{Provider: arguments[0], Model: arguments[1]}
	if len(arguments) == 4 {
		weight, err := strconv.Atoi(arguments[3])
		if err != nil || weight < 0 {
			return d.Errf("weight: %q is not a number of 0 or more", arguments[3])
		}
		target.Weight = weight
	}
	alias.Targets = append(alias.Targets, target)
	return nil
}
