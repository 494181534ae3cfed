// Package logbuffer puts a bounded buffer between the writers of a log and its reader. Lines are dropped and counted
// when the buffer is full, so that a reader that has stopped does not block the writers.
package logbuffer

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// maxWaiting bounds the waiting lines, in bytes. As much again may be in transit.
	maxWaiting = 4 << 20
	// lineCost is the memory that a line takes besides its bytes.
	lineCost = 8
	// maxKept bounds the size of an empty buffer that is kept for reuse.
	maxKept = 256 << 10
	// patience bounds how long Flush, Finish and Close wait for lines to leave.
	patience = 2 * time.Second
)

// Writer passes lines on to another writer, in their order, one Write for each. Its own Write does not wait for the
// reader.
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
	gap       int             // lines dropped after the waiting ones
	flushes   []chan struct{} // each closed when the lines waiting at that time have left
	finishing bool            // the goroutine ends once nothing waits
	closing   bool            // and closes out
	ended     bool            // waiting lines are no longer taken
	stuck     bool            // a caller has waited for lines to leave, and none did
}

// lines holds the bytes of several lines, and the end of each.
type lines struct {
	bytes []byte
	ends  []int
}

// New returns a Writer to out and starts its goroutine. dropped is called for every lost line, from any goroutine.
// last reports whether a line may be the last that the process writes; Write then waits until it has left, like
// Flush. A nil last means no such line. now is the clock of the lines about lost lines; nil means time.Now.
func New(out io.WriteCloser, dropped func(lines int), last func() bool, now func() time.Time) *Writer {
	if now == nil {
		now = time.Now
	}
	w := &Writer{out: out, dropped: dropped, last: last, now: now, wake: make(chan struct{}, 1), finished: make(chan struct{})}
	go w.run()
	return w
}

// Write takes a line, or drops and counts it. A dropped line is no error: zap would write about an error to stderr,
// which may be the very file that is not read. After Finish has emptied the buffer, lines go directly to out: the
// last ones of a process.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	if w.ended {
		w.mu.Unlock()
		return w.out.Write(line)
	}
	// Once a line is dropped all are, until the goroutine takes the waiting ones: so a gap is always behind them.
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

// isStuck reports whether waiting is useless because nothing reads. A caller that writes many lines then waits only
// once.
func (w *Writer) isStuck() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stuck
}

// Flush waits until the waiting lines have left, for two seconds at most.
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

// Finish waits until all lines have left, for two seconds at most. Later lines are written at once. Lines that have
// not left by then may still do so while the process lives.
func (w *Writer) Finish() {
	w.mu.Lock()
	w.finishing = true
	w.mu.Unlock()
	w.rouse()
	w.await(w.finished)
}

// Close does the same as Finish, and then closes out. A stopped reader is no error: Caddy would write about it to the
// log.
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

// await waits for an end, but not for a reader that has stopped. It reports whether the end came.
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

// run passes waiting lines on, until Finish.
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

// take exchanges the waiting lines for the buffers of those that have left. gap is the number of lines dropped behind
// them.
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

// end reports whether the goroutine ends, and whether it closes out: Finish was called and nothing waits. From then
// on Write writes directly.
func (w *Writer) end() (ended, closing bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = w.finishing && len(w.waiting.ends) == 0 && w.gap == 0
	return w.ended, w.closing
}

// pass writes one line, and before it the number of lines missing there. It returns the number of lines missing now.
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

// tell writes how many lines are missing, and returns how many are still unreported.
func (w *Writer) tell(missing int) int {
	_, err := fmt.Fprintf(w.out, `{"level":"warn","ts":%.3f,"logger":"durward.log","msg":"lines are missing here: this log was full, nobody read it","lines":%d}`+"\n",
		float64(w.now().UnixMilli())/1000, missing)
	if err != nil {
		return missing
	}
	return 0
}
