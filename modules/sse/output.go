package sse

import (
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/forward"
	"github.com/durward-gateway/durward/internal/ssewire"
	"github.com/durward-gateway/durward/internal/streams"
	"github.com/durward-gateway/durward/modules/app"
)

// output writes to the client. A timer writes heartbeats while nothing else is written: a stream that waits needs no
// goroutine for them.
type output struct {
	mu     sync.Mutex
	writer *ssewire.Writer
	timer  *time.Timer
	every  time.Duration // between heartbeats
	closed bool
}

func newOutput(client *forward.Client, heartbeat time.Duration) *output {
	o := &output{writer: ssewire.NewWriter(client, client.Flush), every: heartbeat}
	o.timer = time.AfterFunc(heartbeat, o.beat)
	return o
}

func (o *output) beat() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
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

// write runs f and reports whether the client took it.
func (o *output) write(f func() error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || f() != nil {
		return false
	}
	o.timer.Reset(o.every)
	return true
}

func (o *output) raw(frame []byte) bool {
	return o.write(func() error { return o.writer.Raw(frame) })
}

func (o *output) event(name string, data any) bool {
	return o.write(func() error { return o.writer.Event(name, marshal(data)) })
}

// disconnected is the gateway's own last event.
func (o *output) disconnected(reason streams.Reason) {
	o.event(app.EventStatusChange, map[string]string{"status": "disconnected", "reason": string(reason)})
}

func (o *output) failed(message string) {
	o.event(app.EventError, app.ServiceError{Name: app.UpstreamError, Message: message})
}
