package caddyfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/arguments"
	"github.com/durward-gateway/durward/modules/app/settings"
)

// optionName is the global option that configures the app, and the app's name.
const optionName = "durward"

// words maps the words of the global option to their readers. Every reader consumes its own line and block.
var words = map[string]func(*caddyfile.Dispenser, *app.App) error{
	"public_url": parsePublicURL,
	"store":      parseStore,
	"master_key": parseMasterKey,
	"identity":   parseIdentity,
	"origins":    func(d *caddyfile.Dispenser, a *app.App) error { return arguments.Append(d, &a.Origins) },
	"return_url": func(d *caddyfile.Dispenser, a *app.App) error { return arguments.Append(d, &a.ReturnURLs) },
	"egress":     parseEgress,
	"directory":  parseDirectory,
	"sizes":      parseSizes,
	"streams":    parseStreams,
	"agents":     parseAgents,
	"sse":        parseSSE,
	"pin":        parsePin,
	"audit":      parseAudit,

	"provider": parseProvider,
	"alias":    parseAlias,

	"unconnected": parseUnconnected,

	"authorization_server": parseAuthorizationServer,

	"approval_clients": func(d *caddyfile.Dispenser, a *app.App) error { return arguments.Append(d, &a.ApprovalClients) },

	"notify": parseNotify,

	"coordinate": parseCoordinate,
	"limits":     parseLimits,

	"prices":       parsePrices,
	"memory_limit": parseMemoryLimit,

	"branding": parseBranding,

	"scim": parseSCIM,
}

// parseOption sets up the app from the global option. Syntax:
//
//	durward {
//		public_url <url>
//		store      <driver> <args...>
//		master_key <reference...>
//		identity   <kind> <args...> { ... }
//		origins    <origin...>
//		return_url <url...>
//		egress {
//			allow <cidr...>
//			http  <cidr...>
//		}
//		directory <reference>
//		directory <name> { ... }
//		sizes {
//			api|meta|mcp|sse|llm|event <size>
//		}
//		streams {
//			max_per_user|max <number>
//			idle|drain|exit_delay|heartbeat <duration>
//		}
//		coordinate local|postgres|valkey [<reference>]
//		limits {
//			on_store_failure local|closed|open
//			mode             exact|share
//			nodes            <number>
//		}
//		prices       <reference>
//		memory_limit <size>
//		branding {
//			name   <name>
//			logo   <path or data URL>
//			accent <colour>
//		}
//		provider <kind> [<name>] { ... }
//		alias    <name> { ... }
//		agents           require_registered|auto_register
//		approval_clients <client...>
//		notify {
//			webhook <url> { ... }
//			slack   <reference...>
//			teams   <reference...>
//			email   <host:port> { ... }
//		}
//		scim {
//			match   user_name|subject|email|external_id
//			groups  token|scim...
//			require
//		}
//		sse              require_grant
//		pin              enforce
//		unconnected      guide|refuse
//		authorization_server [on|off] {
//			lifetime|idle <duration>
//			oauth_clients any|known|<host...>
//			oauth_client  <id> {
//				name         <name>
//				redirect_uri <url...>
//				secret       <reference>
//			}
//		}
//		audit {
//			required|best_effort <mcp|sse|llm...>
//			sync                 always
//			sink                 file <path> | log
//			arguments            on
//			redact               <name...>
//		}
//	}
func parseOption(d *caddyfile.Dispenser, existing any) (any, error) {
	d.Next()    // the option's name
	start := *d // for errors about the option as a whole: it names its line
	if existing != nil {
		return nil, d.Err("the durward option may be given once")
	}
	if d.NextArg() {
		return nil, d.ArgErr()
	}
	config := new(app.App)
	for d.NextBlock(0) {
		word := d.Val()
		parse, ok := words[word]
		if !ok {
			return nil, d.Errf("unrecognized word %q in the durward option; known are %s", word, strings.Join(slices.Sorted(maps.Keys(words)), ", "))
		}
		if config.Written == nil {
			config.Written = make(map[string][]string)
		}
		config.Written[word] = append(config.Written[word], fmt.Sprintf("%s:%d", d.File(), d.Line()))
		if err := parse(d, config); err != nil {
			return nil, err
		}
	}
	if err := requireGuests(&start, config); err != nil {
		return nil, err
	}
	return httpcaddyfile.App{Name: optionName, Value: caddyconfig.JSON(config, nil)}, nil
}

// requireGuests refuses an option that lacks a part that every gateway needs. The app refuses it too, but where Caddy
// begins with the HTTP app, the app's error comes through every route and handler on the way to the first of ours.
func requireGuests(d *caddyfile.Dispenser, config *app.App) error {
	switch {
	case config.StoreRaw == nil:
		return d.Err("no store is configured; add `store sqlite PATH` to the durward option")
	case len(config.IdentitiesRaw) == 0:
		return d.Err("no identity provider is configured; add `identity oidc ISSUER` to the durward option")
	}
	return nil
}

func parsePublicURL(d *caddyfile.Dispenser, a *app.App) error {
	if a.PublicURL != "" {
		return d.Err("public_url may be given once")
	}
	if !d.AllArgs(&a.PublicURL) {
		return d.ArgErr()
	}
	return nil
}

func parseStore(d *caddyfile.Dispenser, a *app.App) error {
	if a.StoreRaw != nil {
		return d.Err("store may be given once")
	}
	raw, err := parseGuest(d, "durward.stores", "driver")
	a.StoreRaw = raw
	return err
}

func parseIdentity(d *caddyfile.Dispenser, a *app.App) error {
	raw, err := parseGuest(d, "durward.identities", "kind")
	a.IdentitiesRaw = append(a.IdentitiesRaw, raw)
	return err
}

// parseGuest lets the guest module that the first argument names read the rest of the line and its block.
func parseGuest(d *caddyfile.Dispenser, namespace, inlineKey string) (json.RawMessage, error) {
	word := d.Val()
	if !d.NextArg() {
		return nil, d.Errf("%s needs a kind: %s", word, guests(namespace))
	}
	kind := d.Val()
	if _, err := caddy.GetModule(namespace + "." + kind); err != nil {
		return nil, d.Errf("unrecognized %s %q; known are %s", word, kind, guests(namespace))
	}
	guest, err := caddyfile.UnmarshalModule(d, namespace+"."+kind)
	if err != nil {
		return nil, err
	}
	return caddyconfig.JSONModuleObject(guest, inlineKey, kind, nil), nil
}

// guests lists the kinds of a namespace that this binary has.
func guests(namespace string) string {
	var kinds []string
	for _, module := range caddy.GetModules(namespace) {
		kinds = append(kinds, module.ID.Name())
	}
	return strings.Join(kinds, ", ")
}

func parseMasterKey(d *caddyfile.Dispenser, a *app.App) error {
	if err := arguments.Append(d, &a.MasterKey); err != nil {
		return err
	}
	for _, key := range a.MasterKey {
		if !settings.IsReference(key) {
			return d.Err("master_key takes references, {env.NAME} or {file./path}: a key written here would be readable on the admin endpoint")
		}
	}
	return nil
}

func parseEgress(d *caddyfile.Dispenser, a *app.App) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	if a.Egress == nil {
		a.Egress = new(settings.Egress)
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var err error
		switch word := d.Val(); word {
		case "allow":
			err = arguments.Append(d, &a.Egress.Allow)
		case "http":
			err = arguments.Append(d, &a.Egress.HTTP)
		default:
			err = d.Errf("unrecognized word %q in egress; known are allow, http", word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func parseSizes(d *caddyfile.Dispenser, a *app.App) error {
	if a.Sizes == nil {
		a.Sizes = new(settings.Sizes)
	}
	return parseSettings(d, a.Sizes.Set)
}

func parseStreams(d *caddyfile.Dispenser, a *app.App) error {
	if a.Streams == nil {
		a.Streams = new(settings.Streams)
	}
	return parseSettings(d, a.Streams.Set)
}

// parseSettings reads a block of words with one value each.
func parseSettings(d *caddyfile.Dispenser, set func(word, value string) error) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		word := d.Val()
		var value string
		if !d.AllArgs(&value) {
			return d.ArgErr()
		}
		if err := set(word, value); err != nil {
			return d.WrapErr(err)
		}
	}
	return nil
}

func parseMemoryLimit(d *caddyfile.Dispenser, a *app.App) error {
	if a.MemoryLimit != 0 {
		return d.Err("memory_limit may be given once")
	}
	var size string
	if !d.AllArgs(&size) {
		return d.ArgErr()
	}
	limit, err := settings.ParseMemoryLimit(size)
	if err != nil {
		return d.WrapErr(err)
	}
	a.MemoryLimit = limit
	return nil
}
