package admission

import (
	"context"
	"io"
	"log/slog"
	"math"
	"strings"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/proxy/sse"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// MeterAnswer counts the tokens of tool results in an answer of /mcp while it is passed on. When no limit counts tokens
// for the caller the answer stays unchanged. done is called when the answer has ended, also after an error.
//
// Each event of a metered stream passes once it is complete; maxEvent limits its size.
func (a *Admitter) MeterAnswer(ctx context.Context, c *Call, answer *forward.Response, maxEvent int64) (done func()) {
	if answer.Kind != forward.Events && answer.Kind != forward.JSON || !a.countsTokens(ctx, c) {
		return func() {}
	}
	return a.meterAnswer(ctx, *c, answer, maxEvent)
}

// MeterStream does the work of MeterAnswer for an event stream that waits for events. Each event counts by the limits of
// its own moment, because a limit may be made while the stream is open.
func (a *Admitter) MeterStream(ctx context.Context, c *Call, answer *forward.Response, maxEvent int64) {
	if c.State.on {
		a.meterStream(ctx, *c, answer, maxEvent)
	}
}

// meterStream takes a copy for the same reason as meterAnswer.
func (a *Admitter) meterStream(ctx context.Context, c Call, answer *forward.Response, maxEvent int64) {
	answer.Body = sse.NewRewriter(answer.Body, int(maxEvent), func(data []byte) ([]byte, bool) {
		a.MeterText(ctx, &c, data)
		return nil, false
	})
}

// meterAnswer takes a copy of the description, which the answer keeps: other descriptions stay on the stack.
func (a *Admitter) meterAnswer(ctx context.Context, c Call, answer *forward.Response, maxEvent int64) (done func()) {
	if whole := answer.Whole(); whole != nil {
		return func() { a.meter(ctx, c, whole) }
	}
	if answer.Kind == forward.Events {
		answer.Body = sse.NewRewriter(answer.Body, int(maxEvent), func(data []byte) ([]byte, bool) {
			a.meter(ctx, c, data)
			return nil, false
		})
		return func() {}
	}
	copied := &copyReader{src: answer.Body, most: maxEvent}
	answer.Body = copied
	return func() { a.meter(ctx, c, copied.text) }
}

// MeterText does the work of MeterAnswer for an answer that was read.
func (a *Admitter) MeterText(ctx context.Context, c *Call, text []byte) {
	if a.countsTokens(ctx, c) {
		a.meter(ctx, *c, text)
	}
}

// countsTokens reports whether a limit counts tokens for the caller.
func (a *Admitter) countsTokens(ctx context.Context, c *Call) bool {
	if !c.State.on {
		return false
	}
	m := a.present(ctx, c)
	if m == nil {
		return false
	}
	_, counts := m.SmallestTokens()
	return counts
}

// present returns the limits that count a result now. The call itself has been counted before: when the limits cannot be
// read any more, it goes on, and they are those of before. nil: there were none before.
func (a *Admitter) present(ctx context.Context, c *Call) *limit.Matched {
	m, err := a.matched(ctx, c)
	if err != nil {
		a.log.Warn("counting the tokens of results", slog.Any("error", err))
		return c.State.matched
	}
	return m
}

// meter counts the results in a text: a message or a batch of them. A text that is no message counts by its length, for
// example an answer that broke off.
func (a *Admitter) meter(ctx context.Context, c Call, text []byte) {
	if len(text) == 0 {
		return
	}
	if tokens, ok := limit.OfAnswer(text); ok {
		if tokens > 0 {
			a.delivered(ctx, &c, tokens)
		}
		return
	}
	answer, err := jsonrpc.Parse(text, strictjson.Limits{MaxBytes: math.MaxInt, MaxDepth: 1 << 10, MaxMembers: len(text) + 1})
	if err != nil {
		a.delivered(ctx, &c, limit.OfBytes(int64(len(text))))
		return
	}
	for i := range answer.Messages {
		m := &answer.Messages[i]
		read := m.Result
		if m.Kind == jsonrpc.Notification && strings.HasPrefix(m.Method, "notifications/tasks") {
			read = m.Params // a task that has ended, with its result
		}
		if read == nil {
			continue
		}
		if tokens := limit.OfToolResult(read); tokens > 0 {
			a.delivered(ctx, &c, tokens)
		}
	}
}

// delivered counts the tokens of a tool's result that is on its way to the caller.
func (a *Admitter) delivered(ctx context.Context, c *Call, tokens int64) {
	a.book.results.Add(c.Organization, c.Server.ID, tokens, 0)
	if s := c.State; s.permit != nil && s.results > 0 {
		s.used += tokens
		if s.results--; s.results == 0 {
			s.permit.Settle(s.used)
		}
		return
	}
	// The result is of another call than this one: streams of GET bring results of revision 2024-11-05, and results of
	// streams that broke off.
	if m := a.present(ctx, c); m != nil {
		a.engine.Add(m, tokens)
	}
}

// copyReader keeps a copy of the bytes that were read from it.
type copyReader struct {
	src  io.Reader
	text []byte
	most int64
}

// Read implements io.Reader.
func (r *copyReader) Read(p []byte) (int, error) {
	n, err := r.src.Read(p)
	if room := r.most - int64(len(r.text)); int64(n) <= room { // beyond, the answer is refused
		r.text = append(r.text, p[:n]...)
	}
	return n, err
}
