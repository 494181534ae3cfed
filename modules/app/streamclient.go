package app

import (
	"context"

	"github.com/durward-gateway/durward/internal/handover"
	"github.com/durward-gateway/durward/internal/streams"
)

// endWithClient has the stream with that context end when its client leaves, and returns done with what ends that. The
// request's own context may not end then: net/http's way to learn of it takes a goroutine of each request, and a stream is one
// request for hours.
func endWithClient(ctx context.Context, done func()) func() {
	end := streams.Cancel(ctx)
	stop, ok := handover.Watch(ctx, func() { end(context.Canceled) })
	if !ok {
		return done
	}
	return func() {
		stop()
		done()
	}
}
