package admission

import (
	"context"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/method"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
)

// These are the places at which a limit refuses a call, for the metrics.
const (
	atLook   = "look"
	atCharge = "charge"
	inStream = "stream"
)

// Look returns a refusal when a limit on the call to a server is full already, before anything of the call is read.
// Nothing is charged. On an error the call must not pass.
func (a *Admitter) Look(ctx context.Context, c *Call) (*limit.Refusal, error) {
	m, err := a.matched(ctx, c)
	if err != nil {
		return nil, err
	}
	return a.look(ctx, storage.TrafficMCP, m)
}

func (a *Admitter) look(ctx context.Context, traffic storage.TrafficType, m *limit.Matched) (*limit.Refusal, error) {
	refused, err := a.engine.Look(ctx, m)
	if refused != nil {
		a.refused(traffic, atLook, refused.Measure)
	}
	return refused, err
}

// Work is the part of a call to a server that limits count.
type Work struct {
	Requests int64
	Results  int64 // of tools: the answers that have one
}

// OfMessages returns the work of the messages of a request on /mcp. These count: every request of a batch, and
// notifications. These do not: notifications that begin a session or cancel a request, and answers. unasked reports
// whether the answers are to a question that nobody asked, and repeated is the number of answers that were given before.
func OfMessages(messages []jsonrpc.Message, unasked bool, repeated int64) (w Work) {
	for i := range messages {
		switch m := &messages[i]; m.Kind {
		case jsonrpc.Request:
			w.Requests++
			if m.Method == "tools/call" {
				w.Results++
			}
		case jsonrpc.Notification:
			if !method.FreeNotification(m.Method) {
				w.Requests++
			}
		case jsonrpc.Response:
			if unasked {
				w.Requests++
			}
		}
	}
	// Servers ignore a second answer. A client sends one when it does not know whether the first arrived. The second
	// answer is charged too.
	w.Requests += repeated
	return w
}

// Charge counts a call to a server, once, after the decision about it. Where it has results of tools, it reserves the
// average tokens of the server's results. On an error the call must not pass.
func (a *Admitter) Charge(ctx context.Context, c *Call, w Work) (*limit.Refusal, error) {
	s := c.State
	if !s.on || s.charged || w.Requests == 0 {
		return nil, nil
	}
	m, err := a.matched(ctx, c)
	if err != nil {
		return nil, err
	}
	if m.Len() == 0 {
		s.charged = true
		return nil, nil
	}
	cost := limit.Cost{Requests: w.Requests}
	if most, ok := m.SmallestTokens(); ok && w.Results > 0 {
		mean := a.book.results.Of(c.Organization, c.Server.ID)
		cost.Tokens = limit.Estimate{Choices: w.Results, Output: true}.Reserve(mean, 0, most, true)
	}
	var refused *limit.Refusal
	s.permit, refused, err = a.engine.Charge(ctx, m, cost)
	s.charged, s.results = s.permit != nil, w.Results // a call that was refused does not pass when it is asked about again
	if refused != nil {
		a.refused(storage.TrafficMCP, atCharge, refused.Measure)
	}
	return refused, err
}

// ChargeDelivered counts data of a stream of /sse before it is passed on. A refusal or an error ends the stream.
func (a *Admitter) ChargeDelivered(ctx context.Context, c *Call, data []byte) (*limit.Refusal, error) {
	if !c.State.on || len(data) == 0 {
		return nil, nil
	}
	m, err := a.matched(ctx, c)
	if err != nil {
		return nil, err
	}
	refused, err := a.engine.Take(ctx, m, limit.OfBytes(int64(len(data))))
	if refused != nil {
		a.refused(storage.TrafficMCP, inStream, refused.Measure)
	}
	return refused, err
}
