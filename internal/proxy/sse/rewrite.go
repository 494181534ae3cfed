package sse

import (
	"bytes"
	"io"
)

// Rewriter is a stream whose events may get other data. An event is passed on once it is whole. Events that keep
// their data pass byte for byte, the others keep their id, name and retry time. Lines that are no field of the
// standard are dropped: a lenient reader may take one for data. It is not safe for concurrent use.
type Rewriter struct {
	events *Reader
	edit   func(*Event) ([]byte, bool)
	whole  bool   // an unfinished event at the stream's end is completed
	out    []byte // to be returned, before err
	torn   bool   // the last event was written anew, and ended with a CR: an LF that follows is part of it
	err    error
}

// Edit returns the replacement of an event's data; ok false keeps the data. Nil data means none: to a client such an
// event is only the place from which it resumes.
type Edit func(data []byte) (changed []byte, ok bool)

// NewRewriter reads src, whose events have at most max bytes. edit is called for each event that has data.
func NewRewriter(src io.Reader, max int, edit Edit) *Rewriter {
	return &Rewriter{events: NewReader(src, max), edit: func(e *Event) ([]byte, bool) {
		if len(e.Data) == 0 {
			return nil, false
		}
		return edit(e.Data)
	}}
}

// NewEventRewriter is like NewRewriter, for an edit that needs the whole event. edit is called for each event that
// has data, an id, a name or strange lines. An event that loses its data loses its name, too. An unfinished last
// event of the stream is completed, or left out when nothing is left of its data.
func NewEventRewriter(src io.Reader, max int, edit func(*Event) (changed []byte, ok bool)) *Rewriter {
	return &Rewriter{events: NewReader(src, max), edit: edit, whole: true}
}

// Read implements io.Reader, by Lend.
func (r *Rewriter) Read(p []byte) (int, error) {
	lent, err := r.Lend(len(p))
	return copy(p, lent), err
}

// Lend returns the next bytes, at most so many, without a copy: they are valid until the next call. Errors are those
// of the stream and ErrTooLarge. The end comes with the last bytes where it is known: so a caller can end its own
// stream in the same write.
func (r *Rewriter) Lend(most int) ([]byte, error) {
	if len(r.out) == 0 {
		r.out = nil // it may be memory that the reader frees
		var err error
		if r.out, err = r.Next(); err != nil {
			return nil, err
		}
	}
	lent := r.out[:min(most, len(r.out))]
	if r.out = r.out[len(lent):]; len(r.out) == 0 && r.events.ended() {
		r.err = io.EOF
		return lent, r.err
	}
	return lent, nil
}

// Next returns a whole event at once, valid until the next call. Errors are those of Lend.
func (r *Rewriter) Next() ([]byte, error) {
	for r.err == nil {
		event, err := r.events.Next()
		if err != nil {
			r.err = err
			break
		}
		raw := event.Raw
		if r.torn && raw[0] == '\n' {
			raw = raw[1:]
		}
		r.torn = false
		switch {
		case r.edits(event):
			data, ok := r.edit(event)
			if !ok && event.HasData {
				data = event.Data
			}
			if ok || event.Strange || r.whole && event.Incomplete {
				raw, r.torn = r.reframe(event, raw, data), raw[len(raw)-1] == '\r'
			}
		case event.Strange, r.whole && event.Incomplete:
			raw, r.torn = r.reframe(event, raw, nil), raw[len(raw)-1] == '\r'
		}
		if len(raw) > 0 {
			return raw, nil
		}
	}
	return nil, r.err
}

// edits reports whether edit must be called for an event.
func (r *Rewriter) edits(e *Event) bool {
	return len(e.Data) > 0 || r.whole && (e.HasID || e.Name != "" || e.Strange)
}

// reframe returns the event with other data in place of its own, or with none.
func (r *Rewriter) reframe(e *Event, raw, data []byte) []byte {
	if r.whole && e.Incomplete && len(data) == 0 {
		return nil
	}
	out := make([]byte, 0, len(data)+128)
	written := data == nil
	for line := range Lines(bytes.TrimPrefix(raw, []byte(bom))) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) == 0 && len(out) == 0: // the rest of the CRLF that ended the event before
		case string(name) == "event" && r.whole && data == nil:
		case string(name) == "data":
			if written {
				continue
			}
			written = true
			for part := range Lines(data) {
				out = append(append(append(out, "data: "...), part...), '\n')
			}
		case standard(name):
			out = append(append(out, line...), '\n')
		}
	}
	if r.whole && e.Incomplete && !bytes.HasSuffix(out, []byte("\n\n")) {
		out = append(out, '\n')
	}
	return out
}

// standard reports whether a line of that name is a field, a comment or the end of an event.
func standard(name []byte) bool {
	switch string(name) {
	case "", "event", "id", "retry", "data":
		return true
	}
	return false
}
