package policy

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/listfilter"
	mcpmethod "github.com/durward-gateway/durward/internal/mcp/method"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

// decide lets the request go on, and sets the filter for its answer. Only answers that may hold a list, or announce a
// new task, are filtered; all others pass unchanged.
func (q *request) decide(ctx context.Context) {
	d := q.call.Decide()
	d.GuideOnly = q.guideOnly
	modern := q.Modern()
	lists, tasks := q.mayList(modern), q.mayCreate()
	m := q.Single()
	listens := m != nil && m.Method == "subscriptions/listen"
	if !lists && !tasks && (listens || !modern && q.mayMistake()) {
		d.Filter = q.strayFilter(ctx)
	}
	if lists || tasks {
		d.Filter = new(listfilter.Filter)
		q.fill(ctx, d.Filter)
		if tasks {
			d.Filter.Created = q.taskCreated(ctx)
		}
	}
	if d.Filter != nil && m != nil && m.Kind == jsonrpc.Request {
		const text = "The upstream server's list cannot be read"
		d.Filter.Refusal = func() []byte {
			return gateway.RPCError(m.ID, jsonrpc.CodeInternalError, text, gateway.UpstreamError)
		}
	}
	if listens {
		d.Right = q.listenRight(m)
	}
	if q.HTTP.Method == http.MethodGet && q.call.Core.AgentRules.RequireRegistered { // the right ends when the client's agent is deleted
		d.Right = q.handler.right(q.call, func(context.Context, *engine.Set, *engine.Principal) bool { return true })
	}
}

// mayList reports whether the answer may hold a list: the answer to a list's method, and any answer on a stream that
// resumes another one, or that carries the answers of other requests.
func (q *request) mayList(modern bool) bool {
	if q.HTTP.Method == http.MethodGet || q.HTTP.Header.Get("Last-Event-Id") != "" {
		return true
	}
	for i := range q.Message.Messages {
		if method := q.Message.Messages[i].Method; mcpmethod.Of(method, modern) == mcpmethod.List || method == "tasks/list" {
			return true
		}
	}
	return false
}

// mayMistake reports whether the answer may be that of another request of the session, which is possible before
// 2026-07-28. Servers of the official TypeScript SDK find the receiver of an answer by the request's id alone. A client
// that reuses the id of a running list request for another request gets the list as that request's answer (attack M11).
func (q *request) mayMistake() bool {
	for i := range q.Message.Messages {
		if q.Message.Messages[i].Kind == jsonrpc.Request {
			return true
		}
	}
	return false
}

// strayFilter returns the filter for such an answer, and for the notifications in a subscription of 2026-07-28. It
// costs a search for the names of lists, and nothing is looked up before one is found.
func (q *request) strayFilter(ctx context.Context) *listfilter.Filter {
	own, f := *q, &listfilter.Filter{Stray: true}
	f.View = func() (listfilter.Keep, error) {
		own.fill(ctx, f)
		return f.View()
	}
	return f
}

// fill sets the view of the caller in a filter.
func (q *request) fill(ctx context.Context, f *listfilter.Filter) {
	f.View, f.Private = q.viewNow(ctx), q.Modern()
	q.sealCursors(f)
	q.pinTools(ctx, f)
}

// mayCreate reports whether the answer may announce a task: the call asks for one (2025-11-25), or its client accepts
// one (the extension of 2026-07-28). A client that hides the latter with escapes gets a task that it may not ask about.
func (q *request) mayCreate() bool {
	if q.HTTP.Method == http.MethodGet {
		return true // the answer may be delivered there
	}
	for i := range q.Message.Messages {
		m := &q.Message.Messages[i]
		if m.Method == "tools/call" && (m.AsTask || bytes.Contains(m.Meta, []byte("io.modelcontextprotocol/tasks"))) {
			return true
		}
	}
	return false
}

// viewNow returns a function for the caller's view by the present policies, while ctx lives. On a GET stream, which
// lives long, it also uses the client's present agent.
func (q *request) viewNow(ctx context.Context) func() (listfilter.Keep, error) {
	now, asking := q.call.Core.Evaluator.RulesNow(q.call.Party().Asker(), q.call.Known), q.asking
	var askingNow func(context.Context) (*engine.Principal, error)
	if q.HTTP.Method == http.MethodGet {
		askingNow = q.call.Party().PrincipalNow()
	}
	return func() (listfilter.Keep, error) {
		set, err := now(ctx)
		if err != nil {
			return nil, err
		}
		if askingNow != nil {
			if asking, err = askingNow(ctx); err != nil {
				return nil, err
			}
		}
		view, owns := set.View(ctx, asking), q.ownTasks(ctx)
		return func(list listfilter.List, name string, _ []byte) bool {
			switch list {
			case listfilter.Tools:
				return view.Tool(name)
			case listfilter.Resources:
				return view.Resource(name)
			case listfilter.Templates:
				return view.Template(name)
			case listfilter.Prompts:
				return view.Prompt(name)
			case listfilter.Tasks:
				return owns(name)
			}
			return false
		}, nil
	}
}

// listenRight decides whether a subscription may go on: every resource that it names may still be read.
func (q *request) listenRight(m *jsonrpc.Message) streams.Right {
	uris, _ := subscribed(m)
	return q.handler.right(q.call, func(ctx context.Context, set *engine.Set, asking *engine.Principal) bool {
		for _, uri := range uris {
			if set.Decide(ctx, engine.Call{Principal: asking, Kind: engine.ResourcesRead, Name: uri}).Effect != engine.Allow {
				return false
			}
		}
		return true
	})
}

// right returns the right to a stream by the present policies.
func (h *Handler) right(call *app.Call, holds func(context.Context, *engine.Set, *engine.Principal) bool) streams.Right {
	now, asking := call.Core.Evaluator.RulesNow(call.Party().Asker(), call.Known), call.Party().PrincipalNow()
	return func(ctx context.Context) (bool, error) {
		set, err := now(ctx)
		if errors.Is(err, storage.ErrNotFound) {
			return true, nil // the server's deletion ends its streams, with a reason of its own
		}
		if err != nil {
			return false, err
		}
		who, err := asking(ctx)
		if err != nil || who == nil {
			return false, err
		}
		return holds(ctx, set, who), nil
	}
}
