package policy

import (
	"context"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/internal/gateway/tracing"
	"github.com/durward-gateway/durward/internal/mcp/conversation"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/method"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

// request is one request on /mcp that is being judged.
type request struct {
	*inbound.Request
	handler *Handler
	call    *app.Call
	set     *engine.Set
	asking  *engine.Principal
	view    *engine.View // of the request for approval, made when needed
	paged   bool         // the request has a cursor of the gateway
	// guideOnly reports that the call goes no further than to the gateway, see app.Decision.
	guideOnly bool
}

func (h *Handler) serveMCP(w http.ResponseWriter, r *http.Request, call *app.Call, next caddyhttp.Handler) error {
	in, ok := call.ReadInbound(w, r)
	if !ok {
		return nil
	}
	set, err := call.Known.Rules()
	if err != nil {
		h.count(call, "unavailable")
		call.Trace.Policy().Decided(tracing.Unavailable, "", 0, "")
		h.unreadable(w, call, err)
		return nil
	}
	q := request{Request: in, handler: h, call: call, set: set, asking: call.Party().Principal()}
	if in.Message.Batch {
		step := call.Trace.Policy()
		body := q.judgeBatch(r.Context())
		traced(call, step, (&verdict{text: string(body)}).word())
		if body != nil {
			h.count(call, "denied")
			in.Reply(w, http.StatusOK, body)
			return nil
		}
	} else if m := in.Single(); m != nil {
		if m.Kind == jsonrpc.Response && call.Core.Asks.Asked(m.ID) {
			q.answered(w, r, m)
			return nil
		}
		step := call.Trace.Policy()
		v := q.judge(r.Context(), m)
		traced(call, step, v.word())
		switch {
		case v.ask && q.unconnected(r.Context()):
			q.guideOnly = true // no user is asked about a call that cannot be made
		case v.ask:
			return q.hold(w, r, next, v.decision) //nolint:contextcheck // what is held goes with its request
		case v.refused():
			h.count(call, "denied")
			v.write(w, in, m)
			return nil
		case !q.allowed(w, r, m):
			return nil
		}
	}
	q.takenBack(r.Context())
	if q.paged {
		if err := q.openCursors(); err != nil {
			invalidCursor.write(w, in, &in.Message.Messages[0])
			return nil
		}
	}
	q.decide(r.Context())
	return next.ServeHTTP(w, r)
}

// count counts a call that goes no further than this handler.
func (h *Handler) count(call *app.Call, outcome string) {
	call.Core.Metrics.Calls.WithLabelValues("mcp", outcome).Inc()
}

// judge returns the verdict on one message.
func (q *request) judge(ctx context.Context, m *jsonrpc.Message) verdict {
	if m.Kind == jsonrpc.Response {
		return verdict{} // it answers the server; only the server knows whether it asked
	}
	class := method.Of(m.Method, q.Modern())
	if (class == method.Notification) != (m.Kind == jsonrpc.Notification) {
		// A request without an id would run although no client waits for its answer; with an id, a notification is no known
		// method.
		return unknownMethod()
	}
	switch class {
	case method.Session, method.Notification:
		return verdict{}
	case method.List:
		return q.page(m)
	case method.Call:
		if q.leadsOnly(ctx, m) {
			q.guideOnly = true
			return verdict{}
		}
		if v := q.withheld(ctx, m); v.refused() {
			return v
		}
		return q.decided(ctx, m, engine.Call{Principal: q.asking, Kind: engine.ToolsCall, Name: m.Name, Arguments: arguments(m), Checked: true})
	case method.Read:
		switch m.Method {
		case "prompts/get":
			return q.decided(ctx, m, engine.Call{Principal: q.asking, Kind: engine.PromptsGet, Name: m.Name, Arguments: arguments(m), Checked: true})
		case "resources/read":
			return q.resource(ctx, m, m.URI)
		}
	case method.Completion:
		return q.completion(ctx, m)
	case method.Subscription:
		switch {
		case m.Method == "subscriptions/listen":
			return q.listen(ctx, m)
		case m.Method == "resources/unsubscribe" && engine.ResourceURI(m.URI):
			return verdict{} // a task or stream that was begun with a right may be ended without it
		case m.Method == "resources/subscribe", m.Method == "resources/unsubscribe":
			return q.resource(ctx, m, m.URI)
		}
	case method.Task:
		return q.task(ctx, m)
	}
	return unknownMethod()
}

// leadsOnly reports whether a call is for the gateway's own tool, which is listed when a server's tools are not known.
// When the server has a tool of that name, it is an ordinary tool for callers to whom policies grant it. Models go on
// calling the gateway's tool when the account is connected already, and the server does not know it.
func (q *request) leadsOnly(ctx context.Context, m *jsonrpc.Message) bool {
	if m.Name != conversation.ConnectTool || q.Message.Batch || !q.call.Account().Led() {
		return false
	}
	d := q.set.Decide(ctx, engine.Call{Principal: q.asking, Kind: engine.ToolsCall, Name: m.Name, Arguments: arguments(m), Checked: true})
	if d.Effect == engine.Deny {
		return d.Hidden
	}
	pins, err := q.call.Core.Store.ToolPins(ctx, q.call.Caller.OrganizationID, q.call.Server.ID)
	return err == nil && !slices.ContainsFunc(pins, func(p storage.ToolPin) bool { return p.Name == m.Name })
}

// unconnected reports whether the caller is led to connect their account first. When that cannot be read, the call is
// held like any other.
func (q *request) unconnected(ctx context.Context) bool {
	if !q.call.Account().Led() {
		return false
	}
	connected, err := q.call.Account().Connected(ctx)
	return err == nil && !connected
}

// arguments returns the arguments for conditions: null counts as absent.
func arguments(m *jsonrpc.Message) []byte {
	if string(m.Arguments) == "null" {
		return nil
	}
	return m.Arguments
}

// decided asks the policies about a message.
func (q *request) decided(ctx context.Context, m *jsonrpc.Message, asked engine.Call) verdict {
	d, err := q.confirmed(ctx, q.call.Agent, &asked, q.set.Decide(ctx, asked))
	if err != nil {
		q.call.Core.LogFailure(q.handler.logger, "judging a call", err, zap.String("server", q.call.Server.Slug))
		return unconfirmable()
	}
	q.call.Note(asked, d)
	switch {
	case d.Effect == engine.Allow:
		return verdict{}
	case d.Effect == engine.Ask && asked.Kind == engine.ToolsCall && !q.call.Caller.Machine:
		return verdict{ask: true, decision: d}
	}
	if d.Effect == engine.Deny && d.Hidden {
		return q.unknown(asked.Kind, asked.Name)
	}
	if asked.Kind == engine.ToolsCall {
		if d.Effect == engine.Ask {
			return verdict{text: textNobody}
		}
		return verdict{text: gateway.TextDenied}
	}
	return verdict{code: jsonrpc.CodeForbidden, text: gateway.TextDenied, service: gateway.Forbidden}
}

// resource judges a message that reads a resource or asks for its notifications.
func (q *request) resource(ctx context.Context, m *jsonrpc.Message, uri string) verdict {
	return q.decided(ctx, m, engine.Call{Principal: q.asking, Kind: engine.ResourcesRead, Name: uri})
}

// visible returns the caller's view of lists.
func (q *request) visible(ctx context.Context) *engine.View {
	if q.view == nil {
		q.view = q.set.View(ctx, q.asking)
	}
	return q.view
}

// completion judges a completion by its target: arguments of a prompt, or of a resource template, which are not known
// yet.
func (q *request) completion(ctx context.Context, m *jsonrpc.Message) verdict {
	ref, bad := reference(m)
	switch {
	case bad != nil:
		return *bad
	case ref.prompt && q.visible(ctx).Prompt(ref.name), !ref.prompt && q.visible(ctx).Template(ref.name):
		return verdict{}
	case ref.prompt:
		return q.unknown(engine.PromptsGet, ref.name)
	}
	return q.unknown(engine.ResourcesRead, ref.name)
}

// listen judges each resource for which a subscription of 2026-07-28 asks for notifications.
func (q *request) listen(ctx context.Context, m *jsonrpc.Message) verdict {
	uris, bad := subscribed(m)
	if bad != nil {
		return *bad
	}
	for _, uri := range uris {
		if v := q.resource(ctx, m, uri); v.refused() {
			return v
		}
	}
	return verdict{}
}

// task judges a request about a task. The policies decided about the task with the call that created it, and it belongs
// to the caller of that call. Lists of tasks are filtered.
func (q *request) task(ctx context.Context, m *jsonrpc.Message) verdict {
	if m.Method == "tasks/list" {
		return q.page(m)
	}
	owns, err := q.call.Core.Tasks.Owns(ctx, q.call.Binding(), m.TaskID)
	switch {
	case err != nil:
		q.call.Core.LogFailure(q.handler.logger, "finding out whose a task is", err)
		return verdict{code: jsonrpc.CodeInternalError, text: "The gateway cannot find out whose this task is at the moment", service: gateway.Unavailable}
	case owns:
		return verdict{}
	}
	return verdict{code: jsonrpc.CodeInvalidParams, text: "Task not found", service: gateway.NotFound}
}
