package app

import (
	"github.com/durward-gateway/durward/internal/forward"
	"github.com/durward-gateway/durward/internal/listfilter"
	"github.com/durward-gateway/durward/internal/rules"
	"github.com/durward-gateway/durward/internal/streams"
)

// Decision is what durward_policy decided about a call, before anything of it left. A call without one is carried
// nowhere.
type Decision struct {
	// Off: the configuration says `durward_policy off`, and nothing was judged.
	Off bool
	// Filter is what the answer goes through; nil for an answer that passes as it is.
	Filter *listfilter.Filter
	// GuideOnly: the call goes no further than to the gateway, which leads its user to connect their account. Policies do not
	// let it pass, or have not been asked about it.
	GuideOnly bool
	// Right tells whether a stream may go on when policies have changed; nil for what is not judged again.
	Right streams.Right
	// ApprovalID is the approval that the call used up; "" for one that needed none.
	ApprovalID string
	// EditAnswer changes the upstream's answer before it is looked at or passed on; nil: it stays. Errors are those of
	// reading it.
	EditAnswer func(*forward.Response) error
}

// Judged is what policies said to one message, or to the opening of a stream of /sse.
type Judged struct {
	Call     rules.Call
	Decision rules.Decision
}

// Decide lets the call go on. What the decision holds is for the caller to fill in.
func (c *Call) Decide() *Decision {
	c.Decision = &c.decision
	return c.Decision
}

// Note keeps what policies said to something of the call.
func (c *Call) Note(asked rules.Call, said rules.Decision) {
	if c.Judged == nil {
		c.Judged = c.judged[:0]
	}
	c.Judged = append(c.Judged, Judged{Call: asked, Decision: said})
}
