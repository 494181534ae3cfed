// Package sse reads and writes server-sent events (WHATWG HTML, section 9.2) within bounds. The reader returns
// each event both as it came, byte for byte, and parsed.
package sse

import (
	"bytes"
	"errors"
	"io"
	"strconv"
)

// DefaultMaxEvent is the cap of one event when none is given, in bytes as they come.
const DefaultMaxEvent = 1 << 20

// ErrTooLarge says that an event did not end within the cap. The stream cannot be used any more.
var ErrTooLarge = errors.New("event is larger than its cap")

// Event holds one block of a stream. It is valid until the next call of [Reader.Next].
type Event struct {
	// Raw is the block as it came, line ends included. The Raw of all events of a stream, joined, are the stream. (The LF
	// of a CRLF whose CR ended an event, and that came later, is the start of the next one's Raw.)
	Raw []byte
	// Name is the event field's value; "" means "message".
	Name string
	// Data is the data lines joined by LF. HasData distinguishes `data:` from no data line: a block without a data
	// line dispatches no event, and servers prime a resumable stream with an empty data line.
	Data    []byte
	HasData bool
	// ID is the id field's value. HasID distinguishes `id:`, which resets the cursor, from no id field. Ids with NUL
	// are ignored.
	ID    string
	HasID bool
	// Retry is the retry field in milliseconds, -1 when there is none (or not of digits only, at most 18 of them).
	Retry int64
	// Comment says that the block is a single comment line outside any event: a sign of life.
	Comment bool
	// Strange says that the block has a line that is neither a field of the standard nor a comment: readers that follow the
	// standard leave it out.
	Strange bool
	// Incomplete says that the stream ended before the block's empty line. Browsers drop such an event, some MCP
	// clients act on it, so a filter must check it too.
	Incomplete bool
}

// Reader splits a stream into events. It is not safe for concurrent use.
type Reader struct {
	src        io.Reader
	max        int
	buf        []byte // buf[start:end] is unread
	start, end int
	used       int  // length of the block that Next returned last
	begun      bool // the place of a byte order mark has passed
	busy       bool // there was more at a time than a small buffer holds
	afterCR    bool // the last block ended with a CR: an LF at start belongs to it
	err        error
	event      Event
	joined     []byte // data of events with more than one data line
	name       string // of an earlier event, for the next one's
}

const (
	firstBuffer = 512     // size for a stream with little data
	keptBuffer  = 2 << 10 // size for one that once had more at a time than that
	bom         = "\xef\xbb\xbf"
)

// NewReader reads events of at most max bytes from src; max <= 0 means [DefaultMaxEvent]. It holds 512 B while it
// waits, 2 KiB once the stream had more at a time, and more only while an event is longer.
func NewReader(src io.Reader, max int) *Reader {
	if max <= 0 {
		max = DefaultMaxEvent
	}
	return &Reader{src: src, max: max}
}

// Next returns the next block: an event, a comment line between events, or a stray empty line (an Event with only
// Raw). It returns as soon as the block's last line end is there. Errors are io.EOF at the stream's end,
// [ErrTooLarge], and the errors of src; an unfinished event comes before io.EOF (Incomplete) but not before other
// errors.
func (r *Reader) Next() (*Event, error) {
	r.release()
	e := &r.event
	*e = Event{Retry: -1}
	lead, err := r.lead()
	if err != nil {
		return nil, err
	}
	n, err := r.block(lead, e)
	if err != nil {
		return nil, err
	}
	r.used = n
	e.Raw = r.buf[r.start : r.start+n : r.start+n]
	if !e.Comment {
		r.parse(e.Raw[lead:], e)
	}
	return e, nil
}

// Rest returns the stream after the block that Next returned last, or, after [ErrTooLarge], from the block that was
// too large. The Reader must not be used any more; the last Event stays valid.
func (r *Reader) Rest() io.Reader {
	unread := bytes.NewReader(r.buf[r.start+r.used : r.end])
	if r.err != nil {
		return io.MultiReader(unread, failed{r.err})
	}
	return io.MultiReader(unread, r.src)
}

// failed is a stream that has ended.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }

// release forgets the last returned block, and frees the memory of a long one.
func (r *Reader) release() {
	r.start += r.used
	r.used = 0
	if r.start == r.end {
		r.start, r.end = 0, 0
		if cap(r.buf) > keptBuffer || r.busy && cap(r.buf) < keptBuffer {
			r.buf = nil
		}
	}
	if cap(r.joined) > keptBuffer {
		r.joined = nil
	}
}

// lead returns how many bytes at start belong to no line of the block: a byte order mark at the start of the stream, or
// the LF of the CRLF that ended the last block.
func (r *Reader) lead() (int, error) {
	if !r.begun {
		for r.end-r.start < len(bom) && bytes.HasPrefix([]byte(bom), r.buf[r.start:r.end]) && r.fill() {
		}
		r.begun = true
		if bytes.HasPrefix(r.buf[r.start:r.end], []byte(bom)) {
			return len(bom), nil
		}
	}
	if r.start == r.end && !r.fill() {
		return 0, r.err
	}
	if r.afterCR {
		r.afterCR = false
		if r.buf[r.start] == '\n' {
			return 1, nil
		}
	}
	return 0, nil
}

// block returns the length of the block at start, reading as much as necessary. All positions are relative to start,
// because fill moves the buffer's contents.
func (r *Reader) block(lead int, e *Event) (int, error) {
	line, search := lead, lineSearch{pos: lead, lf: -1, searched: lead} // line: first byte of the current line
	for {
		b := r.buf[r.start:r.end]
		stop := search.end(b)
		if stop == len(b) {
			search.pos = stop
			if len(b) >= r.max {
				return 0, ErrTooLarge
			}
			if r.fill() {
				continue
			}
			if r.err == io.EOF && len(b) > 0 { //nolint:errorlint // an error that wraps io.EOF is not a stream's end
				e.Incomplete = true
				return len(b), nil
			}
			return 0, r.err
		}
		next := stop + 1
		e.Comment = line == lead && b[line] == ':'
		last := stop == line || e.Comment
		if b[stop] == '\r' {
			next = r.pastLF(next, last)
		}
		if next > r.max {
			return 0, ErrTooLarge
		}
		if last {
			return next, nil
		}
		search.pos, line = next, next
	}
}

// lineSearch searches a block for the ends of its lines. Every byte is searched once for LF and once for CR, so that a
// stream of empty lines or of bare CRs costs no more than any other.
type lineSearch struct {
	pos      int // first byte not yet searched
	lf       int // next LF at or after pos if any
	searched int // how far lf was searched for
}

// end returns the place of the next line end in b, or b's length if there is none.
func (l *lineSearch) end(b []byte) int {
	if l.lf < l.pos && l.searched < len(b) {
		if i := bytes.IndexByte(b[max(l.pos, l.searched):], '\n'); i >= 0 {
			l.lf = max(l.pos, l.searched) + i
			l.searched = l.lf + 1
		} else {
			l.searched = len(b)
		}
	}
	stop := len(b)
	if l.lf >= l.pos {
		stop = l.lf
	}
	if i := bytes.IndexByte(b[l.pos:stop], '\r'); i >= 0 {
		stop = l.pos + i
	}
	return stop
}

// pastLF returns the place after the LF that may follow a CR, whose place is before next.
func (r *Reader) pastLF(next int, last bool) int {
	b := r.buf[r.start:r.end]
	if next == len(b) && !last && r.fill() {
		b = r.buf[r.start:r.end]
	}
	switch {
	case next < len(b):
		if b[next] == '\n' {
			next++
		}
	case last:
		// It is not waited for: otherwise a stream of bare CRs would always be one event late.
		r.afterCR = true
	}
	return next
}

// fill reads more, and reports whether there is more.
func (r *Reader) fill() bool {
	if r.err != nil {
		return false
	}
	if r.end == cap(r.buf) {
		unread := r.end - r.start
		switch {
		case unread == cap(r.buf):
			size := firstBuffer
			if unread > 0 || r.busy {
				size = max(unread+unread/2, keptBuffer) // not twice: a stream whose reader is slow holds it
			}
			// One byte above the cap is enough to know that an event is too large.
			grown := make([]byte, min(size, max(r.max+1, firstBuffer)))
			copy(grown, r.buf[r.start:r.end])
			r.buf = grown
		default:
			copy(r.buf, r.buf[r.start:r.end])
		}
		r.start, r.end = 0, unread
	}
	for range 100 {
		n, err := r.src.Read(r.buf[r.end:cap(r.buf)])
		r.end += n
		r.busy = r.busy || r.end == cap(r.buf)
		r.err = err
		if n > 0 {
			return true
		}
		if err != nil {
			return false
		}
	}
	r.err = io.ErrNoProgress
	return false
}

// parse reads the fields of a block into e.
func (r *Reader) parse(block []byte, e *Event) {
	several := false
	for line := range Lines(block) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
		switch string(name) {
		case "data":
			switch {
			case !e.HasData:
				e.Data, e.HasData = value, true
			case !several:
				several = true
				r.joined = append(append(append(r.joined[:0], e.Data...), '\n'), value...)
			default:
				r.joined = append(append(r.joined, '\n'), value...)
			}
		case "event":
			e.Name = r.named(value)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				e.ID, e.HasID = string(value), true
			}
		case "retry":
			if n, ok := digits(value); ok {
				e.Retry = n
			}
		default:
			e.Strange = e.Strange || len(name) > 0
		}
	}
	if several {
		e.Data = r.joined
	}
}

// named returns a name as a string. A stream has few names: the last one is kept, unless it is long.
func (r *Reader) named(name []byte) string {
	if len(name) > 64 {
		return string(name)
	}
	if r.name != string(name) {
		r.name = string(name)
	}
	return r.name
}

// Lines yields the lines of b without their ends; non-empty text after the last line end is a line too.
func Lines(b []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			line, rest, ended := bytes.Cut(b, []byte("\n"))
			for {
				i := bytes.IndexByte(line, '\r')
				if i < 0 {
					break
				}
				if i == len(line)-1 && ended {
					line = line[:i]
					break
				}
				if !yield(line[:i]) {
					return
				}
				line = line[i+1:]
			}
			if (ended || len(line) > 0) && !yield(line) {
				return
			}
			b = rest
		}
	}
}

func digits(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil
}
