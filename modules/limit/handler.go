// Package limit is the handler durward_limit: calls count against the rate limits of their organization, and are refused
// early when one is full.
package limit

import (
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/tracing"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/paths"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler enforces rate limits. It needs durward_auth before it, and stands before durward_policy.
//
// When a limit of the caller is full already, the request is answered 429 before its body is read; nothing is charged
// by that. Calls to servers (`/mcp/{name}`, `/sse/{name}`) are charged after the policies' decision, right before the
// caller's credential is asked for, and calls to models once their alias is known. Every matching limit is charged, or
// none.
//
// Counters outlive a reload of the configuration. Those that nodes share (`coordinate`) outlive a node, too; those of a
// node that counts alone end with its process.
type Handler struct {
	// The kinds of traffic that count: `mcp` (which is `/mcp` and `/sse`) and `llm`. Default: both. Calls of a kind that is not
	// named here, nor by another durward_limit, are refused.
	Traffic []string `json:"traffic,omitempty"`
	// Off counts nothing, and lets calls of the kinds in `traffic` pass. Default: false.
	Off bool `json:"off,omitempty"`

	app    *app.App
	logger *zap.Logger
	mcp    bool
	llm    bool
}

// These are the kinds of traffic.
const (
	trafficMCP = "mcp"
	trafficLLM = "llm"
)

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.durward_limit", New: func() caddy.Module { return new(Handler) }}
}

// Provision finds the app.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	h.mcp = len(h.Traffic) == 0 || slices.Contains(h.Traffic, trafficMCP)
	h.llm = len(h.Traffic) == 0 || slices.Contains(h.Traffic, trafficLLM)
	var err error
	h.app, err = app.Attach(ctx)
	return err
}

// Validate refuses unknown kinds of traffic.
func (h *Handler) Validate() error {
	for _, kind := range h.Traffic {
		if err := known(kind); err != nil {
			return err
		}
	}
	return nil
}

// ServeHTTP checks the limits of calls, and passes on allowed calls and all other requests.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	switch {
	case h.mcp && (strings.HasPrefix(r.URL.Path, paths.MCPPrefix) || strings.HasPrefix(r.URL.Path, paths.SSEPrefix)):
		if !h.admitCall(w, r) {
			return nil
		}
	case h.llm && strings.HasPrefix(r.URL.Path, paths.ModelsPrefix):
		if !h.admitPrompt(w, r) {
			return nil
		}
	}
	return next.ServeHTTP(w, r)
}

// admitCall checks the limits of a call to a server. GET and DELETE of MCP count nothing, so no limit refuses them.
func (h *Handler) admitCall(w http.ResponseWriter, r *http.Request) bool {
	if _, _, ok := paths.ProxiedName(r.URL.Path); !ok {
		return true // no address of a server
	}
	call, ok := app.AuthenticatedCall(w, r)
	if !ok {
		return false
	}
	if call.Server == nil {
		gateway.RefuseNoServerSet(w, "durward_limit")
		return false
	}
	if h.Off {
		call.Limits.Exempt()
		return true
	}
	call.Limits.Count()
	if r.Method != http.MethodPost && strings.HasPrefix(r.URL.Path, paths.MCPPrefix) {
		return true
	}
	step := call.Trace.Limit()
	refused, err := call.Core.Admitter.Look(r.Context(), call.Admission().Described())
	step.Limited(tracing.Look, refused != nil, err)
	return call.Admission().Pass(w, r, refused, err)
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	durward_limit [mcp] [llm] [off]
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	for d.NextArg() {
		if d.Val() == "off" && !h.Off {
			h.Off = true
			continue
		}
		if err := known(d.Val()); err != nil {
			return d.WrapErr(err)
		}
		if slices.Contains(h.Traffic, d.Val()) {
			return d.Errf("%s may be given once", d.Val())
		}
		h.Traffic = append(h.Traffic, d.Val())
	}
	if d.NextBlock(0) {
		return d.Errf("unrecognized word %q: this directive takes no block", d.Val())
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.Validator             = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
