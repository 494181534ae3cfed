package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/durward-gateway/durward/internal/proxy/sse"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
)

// MaxEvent is the greatest size of one upstream event in bytes. The last event of the Responses API holds the whole
// answer.
const MaxEvent = 16 << 20

// Stream passes an upstream's event stream to the client and reads it on the way. The bytes pass unchanged, each event
// as soon as it is complete. It leaves out only the chunk with the usage that [Request.Injects] asked for, and a last
// event that was cut off in the middle of its data, which nobody could use. Not safe for concurrent use.
type Stream struct {
	endpoint limit.Endpoint
	estimate limit.Estimate
	events   *sse.Reader
	hide     bool   // the usage chunk
	out      []byte // to be returned before err
	err      error

	told     told
	final    bool  // the numbers are the last ones
	output   int64 // bytes of text
	done     bool  // the end was marked
	finished int64 // choices of a chat completion that have a finish_reason
	cut      bool  // the last event that was passed on lacks its empty line
	delivers bool  // output of a model, or the end of it, has come
	failed   bool
	failure  Failure
	sequence int64 // of the next event of the Responses API
	noted    bool  // the model's name is wanted
	model    string
}

// NewStream passes on the upstream's answer to r, whose body was made by [Request.Body]. It holds 2 KiB while it waits,
// and more only while an event is longer. It does not keep r.
func NewStream(r *Request, upstream io.Reader) *Stream {
	return &Stream{endpoint: r.Endpoint, estimate: r.Estimate, events: sse.NewReader(upstream, MaxEvent), hide: r.Injects()}
}

// Read implements io.Reader. It returns as many complete events as are there and fit, at least one or the beginning of
// one. So a caller that flushes after each Read flushes in time. Errors: io.EOF, [sse.ErrTooLarge] (wrapped) for an
// event above [MaxEvent], or the error of the upstream.
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

// pass reads an event and reports whether the client gets it.
func (s *Stream) pass(e *sse.Event) bool {
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

// Usage returns the numbers that the upstream sent so far. It is Known when these are its final numbers.
func (s *Stream) Usage() Usage {
	u := s.told.usage(s.endpoint)
	u.Known = u.Known && s.final
	return u
}

// Used returns the usage to settle, at any time: [Stream.Usage] when it is known, otherwise an estimate from the
// numbers so far and the text that passed.
func (s *Stream) Used() Usage {
	u := s.Usage()
	if u.Known && (u.Output > 0 || s.output == 0) {
		return u
	}
	return u.or(estimateUsed(s.estimate, s.output))
}

// NoteModel makes the stream remember the name of the model that answers, for [Stream.Model].
func (s *Stream) NoteModel() { s.noted = true }

// Model returns the provider's name of the model that answers; "" when it was not told, or is not remembered.
func (s *Stream) Model() string { return s.model }

// named reads the name of the model.
func (s *Stream) named(c *cursor) {
	name := c.text()
	if s.noted && s.model == "" {
		s.model = string(name)
	}
}

// OutputBytes returns the bytes of model text that passed so far: contents, arguments of tools, reasoning.
func (s *Stream) OutputBytes() int64 { return s.output }

// Ended reports whether the answer is complete: its end was marked, or every choice of a chat completion has a
// finish_reason (not every server sends [DONE]). A stream that is over without this broke off.
func (s *Stream) Ended() bool {
	return s.done || s.finished > 0 && s.finished >= s.estimate.Choices
}

// Failed reports whether the upstream sent an error within the stream, and which one.
func (s *Stream) Failed() (as Failure, failed bool) { return s.failure, s.failed }

// Delivers reports whether a part of the expected answer has come, or the upstream has sent the usage. An error after
// that is one in the middle of an answer.
func (s *Stream) Delivers() bool {
	return s.delivers || s.done && !s.failed || s.final && s.told.usage(s.endpoint).Known
}

// mostHeld bounds the bytes that Begin holds: events without content have no reason to be long.
const mostHeld = 256 << 10

// Begin reads until the answer begins, with a part of the expected answer, an error, or the end. It keeps the bytes for
// Read. Comments and events that only announce an answer do not count as a beginning, because some providers send them
// before they know whether they can answer. Once late returns true they do count, so that clients see a sign of work.
// Begin returns the error that Read would return before any content, io.EOF for a stream that is over.
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

// next returns the next event.
func (s *Stream) next() (*sse.Event, error) {
	e, err := s.events.Next()
	if err != nil && err != io.EOF { //nolint:errorlint // readers compare io.EOF, and the others stay what they are below
		err = fmt.Errorf("reading an upstream's stream: %w", err)
	}
	return e, err
}

// Break returns the event that ends a stream after it broke off; see [ErrorBody].
func (s *Stream) Break(status int, code, message string) []byte {
	b := streamError(s.endpoint, status, code, message, s.sequence)
	if s.cut {
		b = append([]byte("\n\n"), b...)
	}
	return b
}
