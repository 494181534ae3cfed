package legacysse

import (
	"errors"
	"io"
	"sync"

	"github.com/durward-gateway/durward/internal/proxy/sse"
)

// Desk delivers the gateway's own answers to the open streams of this process: in revision 2024-11-05 clients read an
// answer on their session's stream, and nowhere else. The zero value is ready.
type Desk struct {
	mu    sync.Mutex
	boxes map[string]*Box
}

// waiting bounds the answers that wait for a stream; a further one is refused.
const waiting = 16

// Box holds the messages that wait for one stream.
type Box struct {
	desk   *Desk
	key    string
	frames chan []byte
}

// NewBox makes a box for a stream that has no address yet.
func (d *Desk) NewBox() *Box { return &Box{desk: d, frames: make(chan []byte, waiting)} }

// Open gives the box the messages that are delivered to a key, which no other box has.
func (b *Box) Open(key string) {
	b.desk.mu.Lock()
	defer b.desk.mu.Unlock()
	if b.desk.boxes == nil {
		b.desk.boxes = make(map[string]*Box)
	}
	b.key = key
	b.desk.boxes[key] = b
}

// Opened reports whether the stream has an address for messages: then it is one of 2024-11-05.
func (b *Box) Opened() bool {
	b.desk.mu.Lock()
	defer b.desk.mu.Unlock()
	return b.key != ""
}

// Close ends the box.
func (b *Box) Close() {
	b.desk.mu.Lock()
	defer b.desk.mu.Unlock()
	delete(b.desk.boxes, b.key)
}

// Deliver puts a message on the stream of a key. It returns false when that stream is not open here, or too many
// messages wait for it.
func (d *Desk) Deliver(key string, message []byte) bool {
	frame, err := sse.AppendEvent(nil, "message", message)
	if err != nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	box := d.boxes[key]
	if box == nil {
		return false
	}
	select {
	case box.frames <- frame:
		return true
	default:
		return false
	}
}

// Merged is a stream with the messages of a box between its events. It is not safe for concurrent use.
type Merged struct {
	box    *Box
	events chan []byte   // each is lent until it is taken
	taken  chan struct{} // the last one is no longer used
	ended  chan struct{} // closed when the stream was read to its end, after err is set
	done   chan struct{}
	err    error
	out    []byte
	lent   bool // out is an event
}

var errPanicked = errors.New("reading the stream panicked")

// Merge reads src, whose events have at most limit bytes, on its own goroutine. The caller must call Close.
func (b *Box) Merge(src io.Reader, limit int) *Merged {
	m := &Merged{box: b, events: make(chan []byte), taken: make(chan struct{}), ended: make(chan struct{}), done: make(chan struct{})}
	go m.read(split(src, limit))
	return m
}

// split returns the events of src one after the other. A rewriter splits them: a stalled stream would hold each
// twice.
func split(src io.Reader, limit int) func() ([]byte, error) {
	if rewriter, ok := src.(*sse.Rewriter); ok {
		return rewriter.Next
	}
	events := sse.NewReader(src, limit)
	return func() ([]byte, error) {
		event, err := events.Next()
		if err != nil {
			return nil, err
		}
		return event.Raw, nil
	}
}

func (m *Merged) read(next func() ([]byte, error)) {
	defer close(m.ended)
	defer func() {
		if recover() != nil {
			m.err = errPanicked // on a goroutine of its own it would end the process
		}
	}()
	for {
		event, err := next()
		if err != nil {
			m.err = err
			return
		}
		if !m.lend(event) {
			m.err = io.ErrClosedPipe
			return
		}
	}
}

// lend gives an event to Lend, without a copy of it, and waits until it was taken. It returns false when the stream
// was closed before.
func (m *Merged) lend(event []byte) bool {
	select {
	case m.events <- event:
	case <-m.done:
		return false
	}
	select {
	case <-m.taken:
		return true
	case <-m.done:
		return false
	}
}

// Read implements io.Reader. Its error is the stream's.
func (m *Merged) Read(p []byte) (int, error) {
	lent, err := m.Lend(len(p))
	n := copy(p, lent)
	if len(m.out) == 0 {
		m.giveBack()
	}
	return n, err
}

// Lend returns the next bytes, at most so many, without a copy: they are valid until the next call. Its error is the
// stream's.
func (m *Merged) Lend(most int) ([]byte, error) {
	for len(m.out) == 0 {
		m.out = nil // it is a part of the reader's memory
		m.giveBack()
		select {
		case m.out = <-m.events:
			m.lent = true
		case m.out = <-m.box.frames:
		case <-m.ended:
			return nil, m.err
		}
	}
	lent := m.out[:min(most, len(m.out))]
	m.out = m.out[len(lent):]
	return lent, nil
}

// giveBack allows the next event to be read when the last one was lent.
func (m *Merged) giveBack() {
	if !m.lent {
		return
	}
	m.lent = false
	select {
	case m.taken <- struct{}{}:
	case <-m.ended:
	}
}

// Close ends the box and waits until no goroutine reads the stream any more. The stream must have been closed before.
func (m *Merged) Close() {
	close(m.done)
	<-m.ended
	m.box.Close()
}
