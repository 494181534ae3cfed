package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/durward-gateway/durward/modules/auth"
	"github.com/durward-gateway/durward/modules/console"
	"github.com/durward-gateway/durward/modules/credential"
	"github.com/durward-gateway/durward/modules/gatewayapi"
	"github.com/durward-gateway/durward/modules/limit"
	"github.com/durward-gateway/durward/modules/llm"
	"github.com/durward-gateway/durward/modules/mcp"
	"github.com/durward-gateway/durward/modules/platformapi"
	"github.com/durward-gateway/durward/modules/policy"
	"github.com/durward-gateway/durward/modules/scim"
	"github.com/durward-gateway/durward/modules/session"
	"github.com/durward-gateway/durward/modules/sse"
)

// handler is a handler module that reads its own directive.
type handler interface {
	caddyhttp.MiddlewareHandler
	caddyfile.Unmarshaler
}

// directive describes a handler directive: its name, which is also the last part of the module's id, and the function
// that makes its handler.
type directive struct {
	name string
	make func() handler
}

// pipeline lists the handler directives, in the order in which a request passes them. Caddy sorts the directives of a
// site into this order whatever order they are written in; only `route` and JSON can put them in another.
var pipeline = append(development(), []directive{
	{"durward_session", func() handler { return new(session.Handler) }},
	{"durward_console", func() handler { return new(console.Handler) }},
	{"durward_auth", func() handler { return new(auth.Handler) }},
	{"durward_limit", func() handler { return new(limit.Handler) }},
	{"durward_policy", func() handler { return new(policy.Handler) }},
	{"durward_credential", func() handler { return new(credential.Handler) }},
	{"durward_mcp", func() handler { return new(mcp.Handler) }},
	{"durward_sse", func() handler { return new(sse.Handler) }},
	{"durward_llm", func() handler { return new(llm.Handler) }},
	{"durward_gateway", func() handler { return new(gatewayapi.Handler) }},
	{"durward_scim", func() handler { return new(scim.Handler) }},
	{platformName, func() handler { return new(platformapi.Handler) }},
}...)

func init() {
	httpcaddyfile.RegisterGlobalOption(optionName, parseOption)
	httpcaddyfile.RegisterHandlerDirective(macroName, parseMacro)
	// The pipeline stands in the place of reverse_proxy: after rewriting and access control, before everything that
	// answers. Each directive is put right before it, hence after those already put there.
	for _, d := range pipeline {
		httpcaddyfile.RegisterHandlerDirective(d.name, parseDirective(d))
		httpcaddyfile.RegisterDirectiveOrder(d.name, httpcaddyfile.Before, "reverse_proxy")
	}
	httpcaddyfile.RegisterDirectiveOrder(macroName, httpcaddyfile.Before, "reverse_proxy")
}

func parseDirective(d directive) httpcaddyfile.UnmarshalHandlerFunc {
	return func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		if h.Option(optionName) == nil {
			h.Next() // so that the error names the line
			return nil, h.Errf("%s needs the global option `%s { store ...; identity ... }` at the top of the Caddyfile", d.name, optionName)
		}
		module := d.make()
		if err := module.UnmarshalCaddyfile(h.Dispenser); err != nil {
			return nil, err
		}
		return module, nil
	}
}
