package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/arguments"
	"github.com/durward-gateway/durward/modules/app/settings"
)

// parseAudit reads the settings of the audit log. Syntax:
//
//	audit {
//		required    <mcp|sse|llm...>
//		best_effort <mcp|sse|llm...>
//		sync        always
//		sink        file <path>
//		sink        log
//		arguments   on
//		redact      <name...>
//	}
func parseAudit(d *caddyfile.Dispenser, a *app.App) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	if a.Audit == nil {
		a.Audit = new(settings.AuditRules)
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var err error
		switch word := d.Val(); word {
		case "required":
			err = arguments.Append(d, &a.Audit.Required)
		case "best_effort":
			err = arguments.Append(d, &a.Audit.BestEffort)
		case "redact":
			err = arguments.Append(d, &a.Audit.Redact)
		case "sync":
			err = parseAuditSync(d, a.Audit)
		case "sink":
			err = parseAuditSink(d, a.Audit)
		case "arguments":
			err = parseArgumentsOn(d, &a.Audit.Arguments)
		default:
			err = d.Errf("unrecognized word %q in audit; known are arguments, best_effort, redact, required, sink, sync", word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func parseAuditSync(d *caddyfile.Dispenser, r *settings.AuditRules) error {
	if r.Sync != "" {
		return d.Err("sync may be given once")
	}
	if !d.AllArgs(&r.Sync) {
		return d.ArgErr()
	}
	if r.Sync != settings.SyncAlways {
		return d.Errf("unrecognized argument %q of sync; the only one is %s", r.Sync, settings.SyncAlways)
	}
	return nil
}

func parseAuditSink(d *caddyfile.Dispenser, r *settings.AuditRules) error {
	var s settings.AuditSink
	if !d.NextArg() {
		return d.ArgErr()
	}
	switch s.Kind = d.Val(); s.Kind {
	case "file":
		if !d.AllArgs(&s.Path) {
			return d.ArgErr()
		}
	case "log":
		if d.NextArg() {
			return d.ArgErr()
		}
	default:
		return d.Errf("unrecognized sink %q; known are file, log", s.Kind)
	}
	r.Sinks = append(r.Sinks, s)
	return nil
}

// parseArgumentsOn reads the line `arguments on`.
func parseArgumentsOn(d *caddyfile.Dispenser, to *bool) error {
	if *to {
		return d.Err("arguments may be given once")
	}
	var on string
	if !d.AllArgs(&on) {
		return d.ArgErr()
	}
	if on != "on" {
		return d.Errf("unrecognized argument %q of arguments; the only one is on", on)
	}
	*to = true
	return nil
}
