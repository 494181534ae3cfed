package app

import (
	"context"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/mcp/streams"
)

// lateAnswer is the time for which the answer to a cancelled call may still come. Servers need not send one, and
// clients do not read it (2025-11-25, basic/utilities/cancellation, "Behavior Requirements"); a server that stops its
// work says so at once.
const lateAnswer = 2 * time.Second

// EndTakenBack ends the wait for the answers to calls that the messages of this call cancel. Without that they would
// delay the end of the process, which waits for calls.
func (c *Call) EndTakenBack() {
	in := c.Inbound
	ids := in.TakenBack()
	if ids == nil {
		return
	}
	// One search for all of them: otherwise a batch that cancels a hundred calls would make all streams of the process
	// wait a hundred times.
	c.Core.Streams.EndCalls(c.owner(), streams.Cancelled, func(ctx context.Context) bool {
		other, ok := ctx.Value(callKey{}).(*Call)
		return ok && other.Inbound != nil && other.Caller.Agent == c.Caller.Agent && other.Inbound.SameSession(in) &&
			slices.ContainsFunc(ids, other.Inbound.Asks)
	}, lateAnswer)
}
