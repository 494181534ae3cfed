package llm

import (
	"context"
	"errors"
	"time"

	"github.com/durward-gateway/durward/internal/llm/wire"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/proxy/forward"
)

const (
	// untilStopped is the time for which a provider may work on after it is told to stop.
	untilStopped = 2 * time.Second
	// mostChoices is the greatest number of choices that a model is assumed to work on at one time.
	mostChoices = 128
)

// silence returns the time for which the target may have worked since a moment without sending anything. The target is
// told to stop at once when the client leaves or the gateway ends the call; err is the reason why nothing comes any
// more, nil for a complete answer.
func (x *run) silence(ctx context.Context, err error, since time.Time) time.Duration {
	lasted := x.handler.now().Sub(since)
	if _, ended := streams.EndedFor(ctx); ended || ctx.Err() != nil || errors.Is(err, forward.ErrClientGone) {
		return min(lasted, untilStopped)
	}
	return lasted
}

// makes returns the tokens that the model makes in a time, by the mean rate of its alias.
func (x *run) makes(in time.Duration) int64 {
	e := &x.request.Estimate
	if !e.Output {
		return 0
	}
	return x.call.Core.Admitter.Means().In(in, x.call.Caller.OrganizationID, x.model.Alias) * min(e.Choices, mostChoices)
}

// guess estimates the usage of a call when the provider does not report it. It uses the part that was seen and the
// output that may have been made: no more than was reserved, unless more was seen. The reservation itself is no
// estimate: a client may ask for a million tokens and leave, and an organization's limits and budgets would be gone
// (attack T07).
func (x *run) guess(seen wire.Usage, output int64) wire.Usage {
	if !seen.Known {
		seen.Output = max(seen.Output, min(output, x.reserved-seen.Input))
	}
	return seen
}

// lose notes that the target, from which nothing came, may have worked and will not report its usage.
func (x *run) lose(ctx context.Context, err error) {
	x.unknown = true
	x.taken = x.guess(wire.EstimateUsed(x.request, 0), x.makes(x.silence(ctx, err, x.sent)))
}

// cut settles a stream that broke off.
func (x *run) cut(ctx context.Context, stream *wire.Stream, err error) {
	seen := stream.Used()
	x.settle(x.guess(seen, seen.Output+x.makes(x.silence(ctx, err, x.heard))))
}

// untold settles a stream that came to its end without a usage report: the model may have thought without output, for
// as long as the stream took.
func (x *run) untold(ctx context.Context, stream *wire.Stream) {
	x.settle(x.guess(stream.Used(), x.makes(x.silence(ctx, nil, x.sent))))
}

// listener notes the time at which a part of a stream comes.
type listener struct {
	*wire.Stream
	run *run
}

// Read implements io.Reader.
func (l listener) Read(p []byte) (int, error) {
	n, err := l.Stream.Read(p)
	if n > 0 {
		l.run.heard = l.run.handler.now()
	}
	return n, err
}
