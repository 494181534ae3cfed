// Package logbuffer stands between who writes a log and who reads it: lines wait in a bounded buffer, and are dropped and
// counted when it is full, so that a reader who has stopped holds nobody up.
package logbuffer

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// maxWaiting is how much may wait, in bytes. As much again may be on its way.
	maxWaiting = 4 << 20
	// lineCost is what a line takes besides its bytes.
	lineCost = 8
	// maxKept is how large a buffer may be that is kept although it is empty.
	maxKept = 256 << 10
	// patience bounds how long Flush, Finish and Close wait for lines to leave.
	patience = 2 * time.Second
)

// Writer passes lines on to another writer, in their order, one Write for each. Its own Write waits for nobody who is being
// served.
//
// Where lines are missing, one line of JSON says how many, as soon as it can be written.
type Writer struct {
	out     io.WriteCloser
	dropped func(lines int)
	last    func() bool // nil: never
	now     func() time.Time

	wake     chan struct{} // holds one value when there is something to do
	finished chan struct{} // closed when the goroutine has ended

	mu        sync.Mutex
	waiting   lines
	gap       int             // lines dropped after those that wait
	flushes   []chan struct{} // closed when those that wait have left
	finishing bool            // the goroutine ends once nothing waits
	closing   bool            // and closes out
	ended     bool            // nobody takes what waits any more
	stuck     bool            // somebody has waited for lines to leave, and none did
}

// lines are the bytes of several lines, and where each of them ends.
type lines struct {
	bytes []byte
	ends  []int
}

// New returns a Writer to out and starts its goroutine. dropped is told of every line that is lost, from
// any goroutine. last says whether a line may be the last that the process writes, so that Write waits until it has left, like
// Flush; nil: none is. now is nil or the clock of the lines about those that are lost.
func New(out io.WriteCloser, dropped func(lines int), last func() bool, now func() time.Time) *Writer {
	if now == nil {
		now = time.Now
	}
	w := &Writer{out: out, dropped: dropped, last: last, now: now, wake: make(chan struct{}, 1), finished: make(chan struct{})}
	go w.run()
	return w
}

// Write takes a line, or drops and counts it: that is no error, for zap would write about it to a stderr that may be what
// nobody reads. After Finish has emptied the buffer, lines go straight to where they belong: the last ones of a process.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	if w.ended {
		w.mu.Unlock()
		return w.out.Write(line)
	}
	// Once one is dropped all are, until the goroutine takes what waits: so a gap is always behind it.
	full := w.gap > 0 || len(w.waiting.bytes)+lineCost*len(w.waiting.ends)+lineCost+len(line) > maxWaiting
	if full {
		w.gap++
	} else {
		w.waiting.bytes = append(w.waiting.bytes, line...)
		w.waiting.ends = append(w.waiting.ends, len(w.waiting.bytes))
	}
	w.mu.Unlock()
	if full {
		w.dropped(1)
	}
	w.rouse()
	if w.last != nil && w.last() && !w.isStuck() {
		w.Flush()
	}
	return len(line), nil
}

// isStuck reports whether waiting is of no use: nobody reads. Who writes many lines waits for that once.
func (w *Writer) isStuck() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stuck
}

// Flush waits until the lines that wait have left, for two seconds at most.
func (w *Writer) Flush() {
	flushed := make(chan struct{})
	w.mu.Lock()
	w.flushes = append(w.flushes, flushed)
	w.mu.Unlock()
	w.rouse()
	if w.await(flushed) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stuck = true
}

// Finish waits until all lines have left, for two seconds at most. What comes then is written at once, and what has not
// left by then may still do so while the process lives.
func (w *Writer) Finish() {
	w.mu.Lock()
	w.finishing = true
	w.mu.Unlock()
	w.rouse()
	w.await(w.finished)
}

// Close is Finish, after which out is closed. That nobody reads is no error: Caddy would write about it to the log.
func (w *Writer) Close() error {
	w.mu.Lock()
	closing, ended := w.closing, w.ended
	w.closing = true
	w.mu.Unlock()
	switch {
	case closing:
		return nil
	case ended:
		return w.out.Close()
	}
	w.Finish()
	return nil
}

// await waits for an end, but not for a reader who has stopped. It reports whether the end came.
func (w *Writer) await(end <-chan struct{}) bool {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-end:
	case <-w.finished:
	case <-timeout.C:
		return false
	}
	return true
}

func (w *Writer) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run passes on what waits, until Finish.
func (w *Writer) run() {
	defer close(w.finished)
	var leaving lines
	missing := 0
	for range w.wake {
		for {
			var gap int
			var flushes []chan struct{}
			leaving, gap, flushes = w.take(leaving)
			if len(leaving.ends) == 0 && gap == 0 && flushes == nil {
				break
			}
			start := 0
			for _, end := range leaving.ends {
				missing = w.pass(leaving.bytes[start:end], missing)
				start = end
			}
			if missing += gap; missing > 0 {
				missing = w.tell(missing)
			}
			for _, flushed := range flushes {
				close(flushed)
			}
		}
		if ended, closing := w.end(); ended {
			if closing {
				_ = w.out.Close() // here: many writers cannot be closed while they write
			}
			return
		}
	}
}

// take exchanges what waits for the buffers of what has left. gap is how many lines were dropped behind it.
func (w *Writer) take(left lines) (waiting lines, gap int, flushes []chan struct{}) {
	left.bytes, left.ends = left.bytes[:0], left.ends[:0]
	if cap(left.bytes)+lineCost*cap(left.ends) > maxKept {
		left = lines{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting, gap, flushes = w.waiting, w.gap, w.flushes
	w.waiting, w.gap, w.flushes = left, 0, nil
	w.stuck = false // what was taken before has left
	return waiting, gap, flushes
}

// end reports whether the goroutine ends, and closes out: Finish was called and nothing waits. From then on Write writes by itself.
func (w *Writer) end() (ended, closing bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = w.finishing && len(w.waiting.ends) == 0 && w.gap == 0
	return w.ended, w.closing
}

// pass writes one line, and before it how many are missing there. It returns how many are now.
func (w *Writer) pass(line []byte, missing int) int {
	if missing > 0 {
		missing = w.tell(missing)
	}
	if _, err := w.out.Write(line); err != nil {
		w.dropped(1)
		missing++
	}
	return missing
}

// tell writes how many lines are missing, and returns how many nobody has been told of.
func (w *Writer) tell(missing int) int {
	_, err := fmt.Fprintf(w.out, `{"level":"warn","ts":%.3f,"logger":"durward.log","msg":"lines are missing here: this log was full, nobody read it","lines":%d}`+"\n",
		float64(w.now().UnixMilli())/1000, missing)
	if err != nil {
		return missing
	}
	return 0
}
