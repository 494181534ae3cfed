package policy

import (
	"context"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/listfilter"
	"github.com/durward-gateway/durward/internal/mcp/pinning"
	"github.com/durward-gateway/durward/internal/mcp/toolpin"
	"github.com/durward-gateway/durward/internal/policy/engine"
)

// rulePins is the name in the audit log of the rule for calls that `pin enforce` refuses.
const rulePins = "pin enforce"

// withheld refuses a call of a tool that is not the one that was pinned (attack M13), with the text for a tool that
// does not exist: no list shows it.
func (q *request) withheld(ctx context.Context, m *jsonrpc.Message) verdict {
	if !q.call.Core.Pins.Enforced() {
		return verdict{}
	}
	is, err := q.call.Core.Pins.Of(q.call.Server).Withheld(ctx, m.Name)
	switch {
	case err != nil:
		q.call.Core.LogFailure(q.handler.logger, "judging a call", err, zap.String("server", q.call.Server.Slug))
		return verdict{code: jsonrpc.CodeInternalError, text: "Whether this tool may be called cannot be read at the moment", service: gateway.Unavailable}
	case !is:
		return verdict{}
	}
	q.call.Note(engine.Call{Principal: q.asking, Kind: engine.ToolsCall, Name: m.Name, Arguments: arguments(m)},
		engine.Decision{Effect: engine.Deny, Hidden: true, Rule: rulePins})
	return q.unknown(engine.ToolsCall, m.Name)
}

// pinTools makes a filter note the tools of the lists that pass it, and withhold those that `pin enforce` does not show.
func (q *request) pinTools(ctx context.Context, f *listfilter.Filter) {
	p := &pinnedLists{ctx: ctx, pins: q.call.Core.Pins.Of(q.call.Server), view: f.View, logger: q.handler.logger, server: q.call.Server.Slug}
	f.View, f.Seen = p.decide, p.seen
}

// pinnedLists reads the lists of one answer, one after the other.
type pinnedLists struct {
	ctx    context.Context //nolint:containedctx // of the request, whose answer is read
	pins   *pinning.Tools
	view   func() (listfilter.Keep, error)
	logger *zap.Logger // of the handler: a logger with the server in it would be kept as long as the answer
	server string

	list  *toolpin.Observation // nil: the tools are not observed
	again bool                 // the list is read once more
}

// decide is a filter's View. When the pins cannot be read, no tool is shown with `pin enforce`, and none is noted
// without it.
func (p *pinnedLists) decide() (listfilter.Keep, error) {
	keep, err := p.view()
	if err != nil {
		return nil, err
	}
	if p.list, err = p.pins.Observe(p.ctx); err != nil {
		p.logger.Error("reading a list of tools", zap.String("server", p.server), zap.Error(err))
		if p.pins.Enforced() {
			return nil, err
		}
		return keep, nil
	}
	return func(list listfilter.List, name string, definition []byte) bool {
		// Pins are the same for all callers, so a caller who may not see a tool must not influence its pin: an upstream that
		// shows each of its users another definition would let such a user withhold the tool from everybody.
		return keep(list, name, definition) && (list != listfilter.Tools || p.list.Tool(name, definition))
	}, nil
}

// seen is a filter's Seen: with `pin enforce`, new tools are pinned before they are shown.
func (p *pinnedLists) seen() (again bool, err error) {
	if p.list == nil || p.again {
		p.again = false
		return false, nil
	}
	p.again, err = p.pins.Note(p.ctx, p.list)
	if err != nil {
		p.logger.Error("pinning the tools of a list", zap.String("server", p.server), zap.Error(err))
	}
	return p.again, err
}
