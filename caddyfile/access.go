package caddyfile

import (
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/settings"
)

// parseAgents reads `agents require_registered|auto_register`.
func parseAgents(d *caddyfile.Dispenser, a *app.App) error {
	if a.Agents != nil {
		return d.Err("agents may be given once")
	}
	a.Agents = new(settings.AgentRules)
	return parseFlag(d, map[string]*bool{"require_registered": &a.Agents.RequireRegistered, "auto_register": &a.Agents.AutoRegister})
}

// parseSSE reads `sse require_grant`.
func parseSSE(d *caddyfile.Dispenser, a *app.App) error {
	if a.SSE != nil {
		return d.Err("sse may be given once")
	}
	a.SSE = new(settings.SSERules)
	return parseFlag(d, map[string]*bool{"require_grant": &a.SSE.RequireGrant})
}

// parsePin reads `pin enforce`.
func parsePin(d *caddyfile.Dispenser, a *app.App) error {
	if a.Pinning != nil {
		return d.Err("pin may be given once")
	}
	a.Pinning = new(settings.PinRules)
	return parseFlag(d, map[string]*bool{"enforce": &a.Pinning.Enforce})
}

// parseFlag reads the one argument of a word, which names the flag to switch on.
func parseFlag(d *caddyfile.Dispenser, flags map[string]*bool) error {
	word, flag := d.Val(), ""
	if !d.AllArgs(&flag) {
		return d.ArgErr()
	}
	on, ok := flags[flag]
	if !ok {
		return d.Errf("unrecognized argument %q of %s; known are %s", flag, word, strings.Join(slices.Sorted(maps.Keys(flags)), ", "))
	}
	*on = true
	return nil
}

// parseUnconnected reads `unconnected guide|refuse`.
func parseUnconnected(d *caddyfile.Dispenser, a *app.App) error {
	if a.Unconnected != "" {
		return d.Err("unconnected may be given once")
	}
	if !d.AllArgs(&a.Unconnected) {
		return d.ArgErr()
	}
	if err := settings.CheckUnconnected(a.Unconnected); err != nil {
		return d.Err(err.Error())
	}
	return nil
}
