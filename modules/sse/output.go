package sse

import (
	"math"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/eventstream"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/proxy/sse"
)

// output writes to the client. A timer writes heartbeats while nothing else is written: a stream that waits needs no
// goroutine for them, and one that writes leaves the timer alone.
type output struct {
	mu     sync.Mutex
	client *forward.Client
	writer *sse.Writer
	timer  *time.Timer
	every  time.Duration // between heartbeats
	closed bool
}

func newOutput(client *forward.Client, heartbeat time.Duration) *output {
	o := &output{client: client, writer: sse.NewSender(client.Send), every: heartbeat}
	o.timer = time.AfterFunc(math.MaxInt64, o.beat) // beat finds it set
	o.timer.Reset(heartbeat)
	return o
}

// beat writes a heartbeat when the timer fires. While another write is running it does not wait for its end: otherwise
// each client that reads nothing would cost one more goroutine (W01).
func (o *output) beat() {
	if !o.mu.TryLock() {
		o.timer.Reset(o.every)
		return
	}
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if rest := o.every - time.Since(o.client.LastWrite()); rest > 0 {
		o.timer.Reset(rest)
		return
	}
	if o.writer.Heartbeat() == nil {
		o.timer.Reset(o.every)
	}
}

// close ends all writing; the handler may return afterwards.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.timer.Stop()
}

// raw writes whole events, and reports whether the client received them.
func (o *output) raw(frame []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.closed && o.writer.Raw(frame) == nil
}

// event does the work of raw for one of the gateway's own events.
func (o *output) event(name string, data any) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.closed && o.writer.Event(name, marshal(data)) == nil
}

// disconnected writes the gateway's own last event.
func (o *output) disconnected(reason streams.Reason) {
	o.event(eventstream.EventStatusChange, map[string]string{"status": "disconnected", "reason": string(reason)})
}

func (o *output) failed(message string) {
	o.event(eventstream.EventError, gateway.UpstreamEvent(message))
}
