package policy

import (
	"context"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

// confirmed returns the decision of the policies on a call as the agent's write_confirmations_required changes it: a tool
// that does not say of itself that it only reads needs a human's approval. The stricter of the two holds. Without an agent
// there is no such demand. On an error it is not known whether the call needs approval.
func (q *request) confirmed(ctx context.Context, agent *storage.Agent, asked *engine.Call, d engine.Decision) (engine.Decision, error) {
	if agent == nil || !agent.WriteConfirmationsRequired || asked.Kind != engine.ToolsCall {
		return d, nil
	}
	reads, err := q.call.Core.Pins.Of(q.call.Server).ReadOnly(ctx, asked.Name)
	if err != nil || reads {
		return d, err
	}
	return d.Confirmed(), nil
}

// agentNow reads the agent of a call again: a call that was held may have waited long.
func (q *request) agentNow(ctx context.Context) (*storage.Agent, error) {
	if q.call.Agent == nil {
		return nil, nil //nolint:nilnil // no agent is a fact like any other
	}
	a, err := q.call.Core.Store.Agent(ctx, q.call.Caller.OrganizationID, q.call.Agent.ID)
	if err != nil {
		return nil, err
	}
	return &a, nil
}

// unconfirmable refuses a call of which it is not known whether it needs approval.
func unconfirmable() verdict {
	return verdict{code: jsonrpc.CodeInternalError, text: "Whether this call needs approval cannot be read at the moment", service: gateway.Unavailable}
}
