package ssewire

import (
	"bytes"
	"io"
)

// Rewriter is a stream whose events may get other data. Events that keep theirs pass byte for byte; the others keep their
// id, name and retry time. Not safe for concurrent use.
type Rewriter struct {
	events *Reader
	edit   func(data []byte) []byte
	out    []byte // to be given out, before err
	err    error
}

// NewRewriter reads src, whose events have at most max bytes. edit gets the data of each event that has any, and returns
// what stands in its place; nil: it stays.
func NewRewriter(src io.Reader, max int, edit func(data []byte) []byte) *Rewriter {
	return &Rewriter{events: NewReader(src, max), edit: edit}
}

// Read implements io.Reader. Errors: those of the stream, ErrTooLarge.
func (r *Rewriter) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		event, err := r.events.Next()
		if err != nil {
			r.err = err
			continue
		}
		r.out = event.Raw
		if !event.HasData || len(event.Data) == 0 {
			continue
		}
		if data := r.edit(event.Data); data != nil {
			r.out = event.with(data)
		}
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

// with is the event with other data.
func (e *Event) with(data []byte) []byte {
	out := make([]byte, 0, len(data)+128)
	written := false
	for line := range Lines(bytes.TrimPrefix(e.Raw, []byte(bom))) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) == 0 && len(out) == 0: // the rest of the CRLF that ended the event before
		case string(name) != "data":
			out = append(append(out, line...), '\n')
		case !written:
			written = true
			for part := range Lines(data) {
				out = append(append(append(out, "data: "...), part...), '\n')
			}
		}
	}
	return out
}
