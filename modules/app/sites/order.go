package sites

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// A configuration in which one of the gateway's handlers can never do its work is refused before it is loaded: it would answer
// nothing, or count nothing, and nobody would know why.

// step is a stage that a request has passed when it comes to a handler.
type step string

const (
	stepSession  step = "durward_session"
	stepAuth     step = "durward_auth"
	stepLimitMCP step = "durward_limit mcp"
	stepLimitLLM step = "durward_limit llm"
	stepPolicy   step = "durward_policy"
	// stepCredential comes with durward_credential behind durward_policy and durward_limit: it charges calls that both
	// have let pass.
	stepCredential step = "durward_credential" //nolint:gosec // the name of a handler
	stepPlatform   step = "durward_platform"
)

// nameConsole is the name of the handler of the console.
const nameConsole = "durward_console"

// want is a step that a handler needs before it, and the advice when it is missing.
type want struct {
	step step
	mend string
}

var (
	wantAuth   = want{stepAuth, "durward_auth has to come before it"}
	wantPolicy = want{stepPolicy, "durward_policy has to come before it (`durward_policy off` judges nothing)"}
	wantLimit  = want{stepLimitMCP, "durward_limit has to come before it, for mcp (`durward_limit off` counts nothing)"}
	wantGrant  = want{stepCredential, "durward_credential has to come before it, behind durward_policy and durward_limit"}
)

// wants are the steps that the gateway's handlers need.
var wants = map[string][]want{
	"durward_limit":      {wantAuth},
	"durward_policy":     {wantAuth},
	"durward_credential": {wantAuth},
	"durward_mcp":        {wantAuth, wantPolicy, wantLimit, wantGrant},
	"durward_sse":        {wantAuth, wantPolicy, wantLimit, wantGrant},
	"durward_llm":        {wantAuth, {stepLimitLLM, "durward_limit has to come before it, for llm (`durward_limit off` counts nothing)"}},
	"durward_gateway":    {wantAuth},
	"durward_scim":       {wantAuth},
	"durward_platform":   {wantAuth},
}

// CheckOrder returns the errors in the order of the gateway's handlers; ctx belongs to the first of them. At that time
// all handlers are still in the JSON, except those that were provisioned before and are not the gateway's. When one of
// those invokes a named route, the order in that route is not checked: the handlers themselves refuse requests that
// lack a step.
func CheckOrder(ctx caddy.Context) error {
	for _, server := range servers(ctx) {
		w := orderWalk{named: server.NamedRoutes}
		if _, err := w.routes(server.Routes, passed{}); err != nil {
			return err
		}
	}
	return nil
}

// HavePages reports whether requests come through durward_session before durward_auth, as far as that is known before there
// are any. Where they are told apart by their addresses before, durward_session gets those that the Caddyfile names for it, and
// nobody knows whether that are all.
func HavePages(ctx caddy.Context) bool {
	for _, server := range servers(ctx) {
		w := orderWalk{named: server.NamedRoutes}
		if _, err := w.routes(server.Routes, passed{}); err == nil && w.pages {
			return true
		}
	}
	return false
}

// HasConsole reports whether durward_console is in a site.
func HasConsole(ctx caddy.Context) bool {
	for _, server := range servers(ctx) {
		w := orderWalk{named: server.NamedRoutes}
		if _, err := w.routes(server.Routes, passed{}); err == nil && w.console {
			return true
		}
	}
	return false
}

// passed holds the steps behind a request: those that it may have passed, on some way through the matchers, and those
// that it has passed for sure.
type passed struct{ may, sure map[step]bool }

func (p passed) clone() passed { return passed{maps.Clone(p.may), maps.Clone(p.sure)} }

func (p *passed) add(s step, sure bool) {
	if p.may == nil {
		p.may, p.sure = make(map[step]bool), make(map[step]bool)
	}
	p.may[s] = true
	if sure {
		p.sure[s] = true
	}
}

// orderWalk follows a request through the routes of a server.
type orderWalk struct {
	named map[string]*caddyhttp.Route
	depth int
	pages bool // a request has come through durward_session to durward_auth

	console bool // there is a durward_console
}

// maxOrderDepth bounds routes in routes: named routes may invoke themselves.
const maxOrderDepth = 16

// routes returns the steps behind a request that has come through a list of routes.
func (w *orderWalk) routes(routes caddyhttp.RouteList, before passed) (passed, error) {
	if w.depth++; w.depth > maxOrderDepth {
		return before, nil
	}
	defer func() { w.depth-- }()
	ends := make([]passed, len(routes))
	after := before.clone()
	for i := range routes {
		route := &routes[i]
		in := before.clone()
		for j := range i {
			// A request that an earlier route of the same group, or a terminal one, has taken does not come here.
			if earlier := &routes[j]; !earlier.Terminal && (route.Group == "" || earlier.Group != route.Group) {
				in = join(in, ends[j], isSure(earlier))
			}
		}
		out, err := w.handlers(route.HandlersRaw, in)
		if err != nil {
			return after, err
		}
		ends[i] = out
		after = join(after, out, isSure(route))
	}
	return after, nil
}

// isSure reports whether every request passes a route.
func isSure(route *caddyhttp.Route) bool {
	return route.Group == "" && len(route.MatcherSetsRaw) == 0 && len(route.MatcherSets) == 0
}

func join(p, more passed, sure bool) passed {
	out := p.clone()
	for s := range more.may {
		out.add(s, sure && more.sure[s])
	}
	return out
}

// handlers returns the steps behind a request that has come through handlers.
func (w *orderWalk) handlers(handlers []json.RawMessage, in passed) (passed, error) {
	for _, raw := range handlers {
		var err error
		if in, err = w.handler(raw, in); err != nil {
			return in, err
		}
	}
	return in, nil
}

func (w *orderWalk) handler(raw json.RawMessage, in passed) (passed, error) {
	var h struct {
		Handler    string              `json:"handler"`
		Routes     caddyhttp.RouteList `json:"routes"`
		Handle     []json.RawMessage   `json:"handle"`
		Name       string              `json:"name"`
		Traffic    []string            `json:"traffic"`
		HealthOnly bool                `json:"health_only"`
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		return in, nil //nolint:nilerr // the handler itself says it better
	}
	switch {
	case h.Handler == "subroute":
		return w.routes(h.Routes, in)
	case h.Handler == "durward_pipeline":
		return w.handlers(h.Handle, in)
	case h.Handler == "invoke" && w.named[h.Name] != nil:
		return w.routes(caddyhttp.RouteList{*w.named[h.Name]}, in)
	case !strings.HasPrefix(h.Handler, "durward_"):
		return through(raw, in), nil
	}
	if err := fits(h.Handler, h.HealthOnly, in); err != nil {
		return in, err
	}
	w.console = w.console || h.Handler == nameConsole
	w.pages = w.pages || h.Handler == string(stepAuth) && in.may[stepSession]
	out := in.clone()
	for _, s := range steps(h.Handler, h.Traffic, in) {
		out.add(s, true)
	}
	return out, nil
}

// fits returns an error when a handler lacks a step at its place.
func fits(name string, healthOnly bool, in passed) error {
	switch {
	case in.sure[stepPlatform]:
		return fmt.Errorf("%s: durward_platform answers every request before it; durward_platform has to be the last", name)
	case (name == string(stepSession) || name == nameConsole) && in.sure[stepAuth]:
		return fmt.Errorf("%s: it has to come before durward_auth, which would refuse browsers", name)
	case healthOnly:
		return nil
	}
	for _, w := range wants[name] {
		if !in.may[w.step] {
			return fmt.Errorf("%s: %s", name, w.mend)
		}
	}
	return nil
}

// steps returns the steps that a handler adds.
func steps(name string, traffic []string, in passed) []step {
	switch name {
	case "durward_limit":
		var out []step
		if len(traffic) == 0 || slices.Contains(traffic, "mcp") {
			out = append(out, stepLimitMCP)
		}
		if len(traffic) == 0 || slices.Contains(traffic, "llm") {
			out = append(out, stepLimitLLM)
		}
		return out
	case string(stepCredential):
		if !in.may[stepPolicy] || !in.may[stepLimitMCP] {
			return nil
		}
	}
	return []step{step(name)}
}

// through returns the steps behind a request that has come through another project's handler: the gateway's handlers
// inside it may have run.
func through(raw json.RawMessage, in passed) passed {
	if !strings.Contains(string(raw), handlerMarker) {
		return in
	}
	out := in.clone()
	for _, s := range []step{stepSession, stepAuth, stepLimitMCP, stepLimitLLM, stepPolicy, stepCredential} {
		out.add(s, false)
	}
	return out
}
