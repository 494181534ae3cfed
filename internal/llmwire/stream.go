package llmwire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/durward-gateway/durward/internal/limit"
	"github.com/durward-gateway/durward/internal/ssewire"
)

// MaxEvent is the cap of one event of an upstream, in bytes. The last event of the Responses API holds the whole answer.
const MaxEvent = 16 << 20

// Stream is an upstream's event stream on its way to the client, read as it flies by. The bytes pass as they came, each
// event as soon as it is whole; only the chunk with the usage that [Request.Injects] asked for is left out, and a last event that
// was cut off in the middle of its data, which nobody could use. Not safe for concurrent use.
type Stream struct {
	endpoint limit.Endpoint
	estimate limit.Estimate
	events   *ssewire.Reader
	hide     bool   // the usage chunk
	out      []byte // to be given out, before err
	err      error

	told     told
	final    bool  // the numbers are the last ones
	output   int64 // bytes of text
	done     bool  // the mark of the end
	finished int64 // choices of a chat completion that have a finish_reason
	cut      bool  // the last event that was passed on misses its empty line
	delivers bool  // something came that a model made, or the end of it
	failed   bool
	failure  Failure
	sequence int64 // of the next event of the Responses API
}

// NewStream passes on what upstream answers to r, whose body was made by [Request.Body]. It holds 2 KiB while it waits,
// and more only while an event is longer; r is not kept.
func NewStream(r *Request, upstream io.Reader) *Stream {
	return &Stream{endpoint: r.Endpoint, estimate: r.Estimate, events: ssewire.NewReader(upstream, MaxEvent), hide: r.Injects()}
}

// Read implements io.Reader. It returns as many whole events as are there and fit, at least one or the beginning of one,
// so that whoever flushes after each Read flushes in time. Errors: io.EOF, [ssewire.ErrTooLarge] (wrapped) for an event above
// [MaxEvent], or what upstream failed with.
func (s *Stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n := 0
	for n < len(p) {
		if len(s.out) > 0 {
			m := copy(p[n:], s.out)
			s.out = s.out[m:]
			n += m
			continue
		}
		if s.err != nil || n > 0 && !s.events.Ready() {
			break
		}
		e, err := s.next()
		if err != nil {
			s.err = err
			break
		}
		if s.pass(e) {
			s.out = e.Raw
		}
	}
	if n > 0 {
		return n, nil
	}
	return 0, s.err
}

// pass looks at an event and says whether the client gets it.
func (s *Stream) pass(e *ssewire.Event) bool {
	if e.HasData {
		done := string(bytes.TrimSpace(e.Data)) == "[DONE]"
		if e.Incomplete && !done && !json.Valid(e.Data) {
			return false
		}
		if done {
			s.done = s.done || s.endpoint != limit.Messages
		} else if s.look(e) {
			return false
		}
	}
	s.cut = e.Incomplete
	return true
}

// Usage is what the upstream told so far, Known when these are its final numbers.
func (s *Stream) Usage() Usage {
	u := s.told.usage(s.endpoint)
	u.Known = u.Known && s.final
	return u
}

// Used is what to settle, at any time: [Stream.Usage] when it is known, otherwise an estimate from what was told and the text that
// passed.
func (s *Stream) Used() Usage {
	u := s.Usage()
	if u.Known && (u.Output > 0 || s.output == 0) {
		return u
	}
	return u.or(estimateUsed(s.estimate, s.output))
}

// OutputBytes is how much text of the model passed so far: contents, arguments of tools, reasoning.
func (s *Stream) OutputBytes() int64 { return s.output }

// Ended reports whether the answer is whole: its end was marked, or every choice of a chat completion has a reason to
// be finished (not every server sends [DONE]). A stream that is over without it broke off.
func (s *Stream) Ended() bool {
	return s.done || s.finished > 0 && s.finished >= s.estimate.Choices
}

// Failed reports whether the upstream told of an error within the stream, and as what.
func (s *Stream) Failed() (as Failure, failed bool) { return s.failure, s.failed }

// Delivers reports whether something came of what the client waits for, or whether the upstream said what it used: then an
// error is one in the middle of an answer.
func (s *Stream) Delivers() bool {
	return s.delivers || s.done && !s.failed || s.final && s.told.usage(s.endpoint).Known
}

// mostHeld bounds what Begin holds, in bytes: events that say nothing have no reason to be long.
const mostHeld = 256 << 10

// Begin reads until the answer begins: until something came of what the client waits for, or an error, or the end. What it has
// read is kept for Read. Comments and events that only announce an answer are none, because some providers send them before they
// know whether they can answer; once late says so they are taken for a beginning, so that clients see that somebody works. It
// returns what Read would fail with before any of this, io.EOF for a stream that is over.
func (s *Stream) Begin(late func() bool) error {
	for {
		e, err := s.next()
		if err != nil {
			return err
		}
		passes := s.pass(e)
		begun := s.Delivers() || s.failed || s.done || late()
		switch {
		case passes && begun && s.out == nil:
			s.out = e.Raw
		case passes:
			s.out = append(s.out, e.Raw...)
		}
		if begun || len(s.out) > mostHeld {
			return nil
		}
	}
}

// next is the next event.
func (s *Stream) next() (*ssewire.Event, error) {
	e, err := s.events.Next()
	if err != nil && err != io.EOF { //nolint:errorlint // readers compare io.EOF, and the others stay what they are below
		err = fmt.Errorf("reading an upstream's stream: %w", err)
	}
	return e, err
}

// Break is the event with which to end a stream that broke off; see [ErrorBody].
func (s *Stream) Break(status int, code, message string) []byte {
	b := streamError(s.endpoint, status, code, message, s.sequence)
	if s.cut {
		b = append([]byte("\n\n"), b...)
	}
	return b
}
