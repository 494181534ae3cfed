package sse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Bare is a stream of events whose server may have forgotten to frame them. When it begins like JSON, each JSON text
// in it is returned as an event. Otherwise readers of events would find nothing in it, and other readers would take
// the text for an answer that no filter has seen. It is not safe for concurrent use.
type Bare struct {
	src    io.Reader
	max    int
	begun  bool // the first significant byte has passed
	values *json.Decoder
	left   io.LimitedReader // of src, for one text
	out    []byte           // to be returned, before err
	err    error
}

// ErrUnframed says that a stream that began like JSON continued as something else.
var ErrUnframed = errors.New("stream is neither JSON nor events")

// NewBare reads src, in which a JSON text has at most max bytes.
func NewBare(src io.Reader, max int) *Bare { return &Bare{src: src, max: max} }

// Read implements io.Reader. Errors are those of src, ErrTooLarge and ErrUnframed.
func (b *Bare) Read(p []byte) (int, error) {
	for len(b.out) == 0 && b.err == nil {
		switch {
		case !b.begun:
			b.begin()
		case b.values == nil:
			return b.src.Read(p)
		default:
			b.next()
		}
	}
	if len(b.out) == 0 {
		return 0, b.err
	}
	n := copy(p, b.out)
	if b.out = b.out[n:]; len(b.out) == 0 {
		b.out = nil
	}
	return n, nil
}

// begin reads until the kind of the stream is known. A stream with more blanks than any server sends is not JSON.
func (b *Bare) begin() {
	part := make([]byte, firstBuffer)
	for {
		n, err := b.src.Read(part[len(b.out):])
		b.out = part[:len(b.out)+n]
		said := bytes.TrimLeft(b.out, " \t\r\n"+bom)
		torn := len(said) < len(bom) && bytes.HasPrefix([]byte(bom), said)
		switch {
		case IsJSON(said):
			b.begun, b.left.R = true, after(b.src, err)
			b.values, b.out = json.NewDecoder(io.MultiReader(bytes.NewReader(said), &b.left)), nil
			return
		case !torn, len(b.out) == len(part):
			b.begun, b.src = true, after(b.src, err)
			return
		case err != nil:
			b.err = err
			return
		}
	}
}

// after returns the rest of a stream after a read that ended with err.
func after(src io.Reader, err error) io.Reader {
	if err != nil {
		return failed{err}
	}
	return src
}

// next frames the next text.
func (b *Bare) next() {
	b.left.N = int64(b.max)
	var text json.RawMessage
	err, syntax := b.values.Decode(&text), (*json.SyntaxError)(nil)
	switch {
	case err == nil:
		b.out, b.err = AppendEvent(nil, "", text)
	case b.left.N <= 0:
		b.err = ErrTooLarge
	case errors.As(err, &syntax):
		b.err = fmt.Errorf("%w: %w", ErrUnframed, err)
	default:
		b.err = err
	}
}

// IsJSON reports whether a text without blanks before it begins like a JSON object or array, as no line of a stream of events
// does.
func IsJSON(text []byte) bool { return len(text) > 0 && (text[0] == '{' || text[0] == '[') }

// IsEvents reports whether a text without blanks before it begins like a stream of events.
func IsEvents(text []byte) bool {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	name, _, colon := bytes.Cut(bytes.TrimSuffix(line, []byte("\r")), []byte(":"))
	return colon && standard(name)
}
