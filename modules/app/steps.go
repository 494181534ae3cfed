package app

import (
	"context"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/mcp/listfilter"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/internal/policy/evaluator"
	"github.com/durward-gateway/durward/internal/proxy/forward"
)

// Decision is the decision of durward_policy on a call, made before anything of the call left. A call without one is
// not carried anywhere.
type Decision struct {
	// Off reports that the configuration says `durward_policy off`, and that nothing was judged.
	Off bool
	// Filter is applied to the answer; nil for an answer that passes unchanged.
	Filter *listfilter.Filter
	// GuideOnly reports whether the call goes no further than to the gateway, which leads its user to connect their
	// account. Policies refuse such a call, or have not been asked about it.
	GuideOnly bool
	// Right decides whether a stream may go on when policies have changed; nil for calls that are not judged again.
	Right streams.Right
	// ApprovalID is the approval that the call used up; "" for a call that needed none.
	ApprovalID string
	// EditAnswer changes the upstream's answer before it is inspected or passed on; nil: it stays unchanged. Errors are
	// those of reading it.
	EditAnswer func(*forward.Response) error
}

// Decide lets the call go on. The caller fills in the returned decision.
func (c *Call) Decide() *Decision {
	c.Decision = &c.decision
	return c.Decision
}

// Note keeps the verdict of the policies on a part of the call.
func (c *Call) Note(asked engine.Call, said engine.Decision) {
	if c.Judged == nil {
		c.Judged = c.judged[:0]
	}
	c.Judged = append(c.Judged, evaluator.Judged{Call: asked, Decision: said})
}

// CredentialSource provides the caller's credential for the call's server, at the last moment. durward_credential sets
// it.
type CredentialSource interface {
	// Credential returns the credential, refreshed when it is about to expire. Errors are the broker's (ErrNotConnected,
	// ErrUnavailable), the store's, and *streams.Ended when the server is gone.
	Credential(ctx context.Context) (connection.Credential, error)
	// Rejected reports to the source that the upstream answered 401 to the credential. It returns a fresh one when a
	// refresh gave one.
	Rejected(ctx context.Context, used connection.Credential) (connection.Credential, error)
}
