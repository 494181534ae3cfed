package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/settings"
)

// parseCoordinate reads the place where nodes count rate limits together. Syntax:
//
//	coordinate local
//	coordinate postgres [<reference>]
//	coordinate valkey <reference>
func parseCoordinate(d *caddyfile.Dispenser, a *app.App) error {
	if a.CoordinatorRaw != nil {
		return d.Err("coordinate may be given once")
	}
	raw, err := parseGuest(d, "durward.coordinators", "kind")
	a.CoordinatorRaw = raw
	return err
}

// parseLimits reads the way in which rate limits are counted. Syntax:
//
//	limits {
//		on_store_failure local|closed|open
//		mode             exact|share
//		nodes            <number>
//	}
func parseLimits(d *caddyfile.Dispenser, a *app.App) error {
	if a.LimitRules == nil {
		a.LimitRules = new(settings.LimitRules)
	}
	return parseSettings(d, a.LimitRules.Set)
}
