package listfilter

import (
	"bytes"
	"io"

	"github.com/durward-gateway/durward/internal/ssewire"
)

// Reader is an event stream whose events hold filtered messages. An event is passed on once it is whole, with its own
// bytes unless something was taken out of it; its id, name and retry time stay in any case. Not safe for concurrent use.
type Reader struct {
	filter *Filter
	events *ssewire.Reader
	out    []byte // to be given out, before err
	torn   bool   // the last event was written anew, and ended with a CR: an LF that follows is part of it
	err    error
}

// NewReader reads src, whose events have at most limit bytes.
func (f *Filter) NewReader(src io.Reader, limit int) *Reader {
	return &Reader{filter: f, events: ssewire.NewReader(src, limit)}
}

// Read implements io.Reader. Errors: those of the stream, ssewire.ErrTooLarge.
func (r *Reader) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		event, err := r.events.Next()
		if err != nil {
			r.err = err
			continue
		}
		raw := event.Raw
		if r.torn && raw[0] == '\n' {
			raw = raw[1:]
		}
		r.out = r.filter.event(event, raw)
		r.torn = len(r.out) > 0 && &r.out[0] != &raw[0] && raw[len(raw)-1] == '\r'
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

// event is the event as its reader gets it: raw, unless something is taken out of it.
func (f *Filter) event(e *ssewire.Event, raw []byte) []byte {
	if !e.HasData || len(e.Data) == 0 {
		return raw
	}
	data, err := f.Message(e.Data)
	switch {
	case err != nil && f.Refusal == nil:
		return reframe(raw, nil, true)
	case err != nil:
		return reframe(raw, f.Refusal, false)
	case len(data) == len(e.Data) && &data[0] == &e.Data[0]:
		return raw
	}
	return reframe(raw, data, false)
}

// byteOrderMark may stand before the first line of a stream, and means nothing.
var byteOrderMark = []byte("\xef\xbb\xbf")

// reframe is an event with other data in place of its own, or with none: an event without data is nothing to a client but
// the place from which it resumes.
func reframe(raw, data []byte, without bool) []byte {
	out := make([]byte, 0, len(data)+128)
	written := without
	for line := range ssewire.Lines(bytes.TrimPrefix(raw, byteOrderMark)) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) == 0 && len(out) == 0: // the rest of the CRLF that ended the event before
		case string(name) != "data":
			out = append(append(out, line...), '\n')
		case !written:
			written = true
			for part := range ssewire.Lines(data) {
				out = append(append(append(out, "data: "...), part...), '\n')
			}
		}
	}
	return out
}
