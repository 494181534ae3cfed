package legacysse

import (
	"errors"
	"io"

	"github.com/durward-gateway/durward/internal/proxy/sse"
)

// maxHeld bounds the bytes of a stream that are held while its first event is not complete. A longer event is passed
// on and only watched.
const maxHeld = 8 << 10

// Reader is an event stream whose endpoint event is replaced when it is the first event (a line end that is CR and LF
// may leave an empty line behind it, which means nothing). A stream with such an event at any other place, or with
// one that clients may take for such an event and others may not, ends with [ErrEndpoint]: it would take a client's
// messages wherever the upstream wants, other servers of this gateway included. All other bytes are passed on as they
// come. It is not safe for concurrent use.
type Reader struct {
	rewrite func(announced string) (string, error)
	first   *sse.Reader // nil once the first event has passed
	rest    io.Reader
	out     []byte // to be returned, before err
	err     error
	watch   watch
}

// NewReader reads src. rewrite gets the data of the endpoint event and returns its replacement, which must be visible
// ASCII; its error ends the stream.
func NewReader(src io.Reader, rewrite func(announced string) (string, error)) *Reader {
	return &Reader{rewrite: rewrite, first: sse.NewReader(src, maxHeld)}
}

// Read implements io.Reader. Errors are those of the stream, ErrEndpoint, and those of rewrite.
func (r *Reader) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		switch {
		case r.err != nil:
			return 0, r.err
		case r.first == nil:
			return r.pass(p)
		}
		r.next()
	}
	n := copy(p, r.out)
	if r.out = r.out[n:]; len(r.out) == 0 {
		r.out = nil // it is a part of the first reader's memory
	}
	return n, nil
}

// next reads one block up to the first event: comments and blocks that dispatch no event may come before it.
func (r *Reader) next() {
	event, err := r.first.Next()
	switch {
	case errors.Is(err, sse.ErrTooLarge):
		r.behind()
	case err != nil:
		r.fail(err)
	case event.Name == "endpoint":
		if event.Incomplete || !event.HasData {
			r.fail(ErrEndpoint)
			return
		}
		announced, err := r.rewrite(string(event.Data))
		if err != nil {
			r.fail(err)
			return
		}
		if event.Raw[0] == '\n' { // of a CRLF whose CR is already out
			r.out = append(r.out, '\n')
		}
		r.out = append(r.out, "event: endpoint\ndata: "+announced+"\n\n"...)
		r.behind()
	case r.watch.sees(event.Raw):
		r.fail(ErrEndpoint)
	default:
		r.out = event.Raw
		if event.HasData {
			r.behind()
		}
	}
}

// behind continues without reading events.
func (r *Reader) behind() {
	r.rest, r.first = r.first.Rest(), nil
}

func (r *Reader) fail(err error) {
	if r.err = err; err == io.EOF && r.watch.ended() { //nolint:errorlint // an error that wraps io.EOF is not a stream's end
		r.err = ErrEndpoint
	}
}

func (r *Reader) pass(p []byte) (int, error) {
	n, err := r.rest.Read(p)
	if r.watch.sees(p[:n]) {
		r.fail(ErrEndpoint)
		return 0, r.err
	}
	if err != nil {
		r.fail(err)
	}
	return n, r.err
}

// named is a line that names an endpoint event, without blanks.
const named = "event:endpoint"

// watch looks for lines that any client could take for the name of an endpoint event: some trim blanks, some
// (Python's splitlines) end lines at more than CR and LF. The zero value is the start of a line.
type watch struct {
	length int // of the line's beginning, when it is one of named
	other  bool
}

// sees reports whether a line that began earlier or in p, and ends in p, names an endpoint event.
func (w *watch) sees(p []byte) bool {
	for _, c := range p {
		switch {
		case ends[c]:
			if w.ended() {
				return true
			}
			*w = watch{}
		case w.other, c == ' ', c == '\t', c == 0xc2, c == 0xe2, c == 0x80: // blanks, and beginnings of ends in UTF-8
		case w.length < len(named) && c|0x20 == named[w.length]|0x20:
			w.length++
		default:
			w.other = true
		}
	}
	return false
}

// ended reports whether the line read so far names an endpoint event.
func (w *watch) ended() bool { return !w.other && w.length == len(named) }

// ends holds the bytes with which a line may end: CR, LF, or a line end of Python's splitlines (VT, FF, FS, GS, RS;
// the last byte of NEL, LS and PS in UTF-8).
var ends = [256]bool{'\n': true, '\r': true, '\v': true, '\f': true, 0x1c: true, 0x1d: true, 0x1e: true, 0x85: true, 0xa8: true, 0xa9: true}
