package integration

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

// event is one server-sent event.
type event struct{ name, data string }

// eventStream is an open event stream. It is closed with the test.
type eventStream struct {
	t      testing.TB
	close  context.CancelFunc
	events chan event // closed when the stream ends
}

// listen opens an event stream.
func (g *gateway) listen(method, path, token string, body any, header ...string) *eventStream {
	g.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	client := g.client
	// A stream outlives every time-out of a call.
	g.client = &http.Client{Transport: client.Transport, CheckRedirect: client.CheckRedirect}
	response := g.open(ctx, method, path, token, body, header...)
	g.client = client
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || kind != "text/event-stream" {
		cancel()
		g.t.Fatalf("%s %s: status %d, %q instead of an event stream", method, path, response.StatusCode, kind)
	}
	s := &eventStream{t: g.t, close: cancel, events: make(chan event, 256)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(s.events)
		defer response.Body.Close()
		read(response, s.events)
	}()
	g.t.Cleanup(func() { cancel(); <-done })
	return s
}

func read(response *http.Response, events chan<- event) {
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	var e event
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		switch value = strings.TrimPrefix(value, " "); {
		case lines.Text() == "" && e != event{}:
			events <- e
			e = event{}
		case field == "event":
			e.name = value
		case field == "data":
			e.data += value
		}
	}
}

// next returns the next event, or ends the test when there is none.
func (s *eventStream) next() event {
	s.t.Helper()
	select {
	case e, ok := <-s.events:
		if !ok {
			s.t.Fatal("the stream has ended")
		}
		return e
	case <-time.After(callTimeout):
		s.t.Fatal("no event came")
	}
	return event{}
}

// want ends the test unless the next event is the given one.
func (s *eventStream) want(name, data string) {
	s.t.Helper()
	if e := s.next(); e.name != name || e.data != data {
		s.t.Fatalf("event %q %q instead of %q %q", e.name, e.data, name, data)
	}
}

// ended waits for the end of the stream and returns the events before it.
func (s *eventStream) ended() []event {
	s.t.Helper()
	var rest []event
	deadline := time.After(callTimeout)
	for {
		select {
		case e, ok := <-s.events:
			if !ok {
				return rest
			}
			rest = append(rest, e)
		case <-deadline:
			s.t.Fatal("the stream does not end")
		}
	}
}
