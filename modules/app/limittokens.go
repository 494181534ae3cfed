package app

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
	"github.com/durward-gateway/durward/storage"
)

// EndLimits settles the call's reservations, whatever its outcome: the tokens are those that reached the caller.
func (c *Call) EndLimits() {
	if c.limits.permit != nil {
		c.limits.permit.Settle(c.limits.used)
	}
}

// delivered counts the tokens of a tool's result that is on its way to the caller.
func (c *Call) delivered(ctx context.Context, tokens int64) {
	c.Core.Admitter.Results().Add(c.Caller.OrganizationID, c.Server.ID, tokens, 0)
	if c.limits.permit != nil && c.limits.results > 0 {
		c.limits.used += tokens
		if c.limits.results--; c.limits.results == 0 {
			c.limits.permit.Settle(c.limits.used)
		}
		return
	}
	// The result is of another call than this one: streams of GET bring results of revision 2024-11-05, and results of
	// streams that broke off.
	m, err := c.matched(ctx)
	if err != nil {
		c.Core.Log.Warn("counting the tokens of a result", slog.Any("error", err))
		return
	}
	c.Core.Admitter.Engine().Add(m, tokens)
}

// MeterAnswer counts the tokens of tool results in an answer of /mcp while it is passed on. When no limit counts tokens
// for the caller the answer stays unchanged. done is called when the answer has ended, also after an error.
//
// Each event of a metered stream passes once it is complete; maxEvent limits its size.
func (c *Call) MeterAnswer(ctx context.Context, answer *forward.Response, maxEvent int64) (done func()) {
	none := func() {}
	if answer.Kind != forward.Events && answer.Kind != forward.JSON || !c.countsTokens(ctx) {
		return none
	}
	if whole := answer.Whole(); whole != nil {
		return func() { c.meter(ctx, whole) }
	}
	if answer.Kind == forward.Events {
		answer.Body = sse.NewRewriter(answer.Body, int(maxEvent), func(data []byte) ([]byte, bool) {
			c.meter(ctx, data)
			return nil, false
		})
		return none
	}
	copied := &copyReader{src: answer.Body, most: maxEvent}
	answer.Body = copied
	return func() { c.meter(ctx, copied.text) }
}

// MeterText does the work of MeterAnswer for an answer that was read.
func (c *Call) MeterText(ctx context.Context, text []byte) {
	if c.countsTokens(ctx) {
		c.meter(ctx, text)
	}
}

// countsTokens reports whether a limit counts tokens for the caller. The call itself has been counted before: when the
// limits cannot be read any more, it goes on.
func (c *Call) countsTokens(ctx context.Context) bool {
	if !c.limits.on {
		return false
	}
	m, err := c.matched(ctx)
	if err != nil {
		c.Core.Log.Warn("counting the tokens of results", slog.Any("error", err))
		return false
	}
	_, counts := m.SmallestTokens()
	return counts
}

// meter counts the results in a text: a message or a batch of them. A text that is no message counts by its length, for
// example an answer that broke off.
func (c *Call) meter(ctx context.Context, text []byte) {
	if len(text) == 0 {
		return
	}
	if tokens, ok := limit.OfAnswer(text); ok {
		if tokens > 0 {
			c.delivered(ctx, tokens)
		}
		return
	}
	answer, err := jsonrpc.Parse(text, strictjson.Limits{MaxBytes: math.MaxInt, MaxDepth: 1 << 10, MaxMembers: len(text) + 1})
	if err != nil {
		c.delivered(ctx, limit.OfBytes(int64(len(text))))
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
			c.delivered(ctx, tokens)
		}
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

// ChargeDelivered counts data of a stream of /sse before it is passed on. A refusal or an error ends the stream.
func (c *Call) ChargeDelivered(ctx context.Context, data []byte) (*limit.Refusal, error) {
	if !c.limits.on || len(data) == 0 {
		return nil, nil
	}
	m, err := c.matched(ctx)
	if err != nil {
		return nil, err
	}
	refused, err := c.Core.Admitter.Engine().Take(ctx, m, limit.OfBytes(int64(len(data))))
	if refused != nil {
		countLimited(storage.TrafficMCP, limitedInStream, refused.Measure)
	}
	return refused, err
}
