package app

import (
	"context"

	"github.com/durward-gateway/durward/internal/handover"
	"github.com/durward-gateway/durward/internal/streams"
)

// endWithClient ends the stream with that context when its client leaves. It returns a function that calls done and
// stops watching the client. The request's own context may not end then: net/http needs a goroutine of each request to
// notice it, and a stream is one request for hours.
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
