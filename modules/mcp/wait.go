package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/proxy/sse"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// writeTime is the longest time for a client to receive a piece that the gateway writes to a stream of its own.
const writeTime = 30 * time.Second

// watchConnection ends the stream's right when its user connects, once the stream waits for that.
func (x *exchange) watchConnection() {
	if x.Kind() != streams.Listen || !x.call.Account().Led() {
		return
	}
	hasConnected, right := x.call.Account().AsksConnected(), x.call.Decision.Right
	x.call.Decision.Right = func(ctx context.Context) (bool, error) {
		if x.waits.Load() {
			connected, err := hasConnected(ctx)
			if err != nil {
				return false, err
			}
			if connected {
				return false, &streams.Ended{Reason: streams.Connected}
			}
		}
		if right == nil {
			return true, nil
		}
		return right(ctx)
	}
}

// wait keeps a stream open until its user has connected, then announces that the tools have changed, and lets the
// stream go on with the upstream. ctx is the stream's context.
func (x *exchange) wait(ctx context.Context) bool {
	x.waits.Store(true)
	defer x.waits.Store(false)
	asked, forget := x.noteAsked()
	defer forget()
	client, listen := x.commence(), x.Single() // of 2026-07-28
	if listen != nil {
		if client.message(subscription(listen, "notifications/subscriptions/acknowledged", offered(listen))) != nil {
			return true
		}
	}
	// The user may have connected since the credential was asked for.
	connected, err := x.call.Account().Connected(ctx)
	if err == nil && !connected && !x.keepAlive(ctx, client) {
		return true
	}
	if reason, ended := streams.EndedFor(ctx); !connected && (!ended || reason != streams.Connected) {
		x.outcome = "ended"
		return true
	}
	switch {
	case listen == nil:
		forget() // requests from now on have another answer
		x.again = x.complete(client, asked) == nil && client.message(jsonrpc.NotificationOf("notifications/tools/list_changed", nil)) == nil
		x.w = &begun{client: client, header: make(http.Header)}
	case wantsTools(listen):
		_ = client.message(subscription(listen, "notifications/tools/list_changed", nil))
		fallthrough
	default: // the client subscribes again, at the upstream
		_ = client.message(x.result(listen, map[string]any{}))
	}
	return true
}

// keepAlive sends heartbeats until the stream ends, and reports whether the gateway has ended it.
func (x *exchange) keepAlive(ctx context.Context, client *ownStream) bool {
	alive := time.NewTicker(time.Duration(x.call.Core.StreamBounds.Heartbeat))
	defer alive.Stop()
	for {
		select {
		case <-ctx.Done():
			_, ended := streams.EndedFor(ctx)
			return ended
		case <-alive.C:
			if client.bounded(client.out.Heartbeat) != nil {
				return false
			}
		}
	}
}

// subscription returns a notification for the stream of subscriptions/listen.
func subscription(listen *jsonrpc.Message, method string, more map[string]any) []byte {
	params := map[string]any{"_meta": map[string]any{"io.modelcontextprotocol/subscriptionId": json.RawMessage(listen.ID)}}
	for name, value := range more {
		params[name] = value
	}
	return jsonrpc.NotificationOf(method, params)
}

// notifications lists the kinds that a subscription asks for.
func notifications(listen *jsonrpc.Message) strictjson.Value {
	n := len(listen.Params) + 1
	params, _ := strictjson.Parse(listen.Params, strictjson.Limits{MaxBytes: n, MaxDepth: n, MaxMembers: n})
	wanted, _ := params.Get("notifications")
	return wanted
}

func wantsTools(listen *jsonrpc.Message) bool {
	wanted, ok := notifications(listen).Get("toolsListChanged")
	return ok && string(wanted.Raw()) == "true"
}

// offered lists the kinds of a subscription that the gateway sends.
func offered(listen *jsonrpc.Message) map[string]any {
	if !wantsTools(listen) {
		return map[string]any{"notifications": map[string]any{}}
	}
	return map[string]any{"notifications": map[string]any{"toolsListChanged": true}}
}

// ownStream is an event stream that the gateway began.
type ownStream struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	out *sse.Writer
}

// commence begins the stream.
func (x *exchange) commence() *ownStream {
	header := x.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	x.w.WriteHeader(http.StatusOK)
	s := &ownStream{w: x.w, rc: http.NewResponseController(x.w)}
	s.out = sse.NewWriter(x.w, s.rc.Flush)
	_ = s.bounded(s.out.Heartbeat) // clients and proxies see that the stream exists
	return s
}

func (s *ownStream) message(text []byte) error {
	return s.bounded(func() error { return s.out.Event("message", text) })
}

// bounded sets a deadline for a write. Writers without deadlines, such as those of tests, get none.
func (s *ownStream) bounded(write func() error) error {
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeTime))
	defer func() { _ = s.rc.SetWriteDeadline(time.Time{}) }()
	return write()
}

// begun writes the answer on a stream that the gateway began. An answer that is not an event stream is not written: a
// server may have none, and the client's stream stays open.
type begun struct {
	client *ownStream
	header http.Header // is not sent: the stream's own header was sent
	status int
	events bool
}

// Header implements http.ResponseWriter.
func (b *begun) Header() http.Header { return b.header }

// WriteHeader implements http.ResponseWriter.
func (b *begun) WriteHeader(status int) {
	if b.status != 0 || status < http.StatusOK {
		return
	}
	b.status = status
	b.events = status == http.StatusOK && strings.HasPrefix(strings.ToLower(b.header.Get("Content-Type")), "text/event-stream")
}

// Write implements http.ResponseWriter.
func (b *begun) Write(p []byte) (int, error) {
	b.WriteHeader(http.StatusOK)
	if !b.events {
		return len(p), nil
	}
	return b.client.w.Write(p)
}

// FlushError implements what http.ResponseController calls.
func (b *begun) FlushError() error {
	if !b.events {
		return nil
	}
	return b.client.rc.Flush()
}

// Unwrap lets http.ResponseController reach the connection's deadlines.
func (b *begun) Unwrap() http.ResponseWriter { return b.client.w }

// keepBegun keeps a stream that the gateway began open although the upstream has none: some clients take its end for
// the end of the conversation.
func (x *exchange) keepBegun() {
	b, ok := x.w.(*begun)
	if !ok || b.events || b.status == 0 {
		return
	}
	ctx, done := x.call.Streams().Open(x.r.Context(), streams.Listen)
	defer done()
	if ctx.Err() == nil {
		x.keepAlive(ctx, b.client)
	}
	x.outcome = "ok"
}

var _ interface{ FlushError() error } = (*begun)(nil)
