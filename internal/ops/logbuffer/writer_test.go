package logbuffer

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// reader is a log's end that may stop to read, and fail.
type reader struct {
	gate sync.RWMutex // held to keep it from reading

	mu     sync.Mutex
	got    []string
	broken error
	closed int
}

func (r *reader) Write(line []byte) (int, error) {
	r.gate.RLock()
	defer r.gate.RUnlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return 0, r.broken
	}
	r.got = append(r.got, string(line))
	return len(line), nil
}

func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed++
	return nil
}

func (r *reader) breaks(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = err
}

// stuck is a reader that does not read until it is let go. In a bubble of synctest, only waiting on channels is
// allowed.
type stuck struct {
	reader
	letGo chan struct{}
}

func (s *stuck) Write(line []byte) (int, error) {
	<-s.letGo
	return s.reader.Write(line)
}

func newStuck() *stuck { return &stuck{letGo: make(chan struct{})} }

// writes sends a line and requires that it is taken.
func writes(t *testing.T, w *Writer, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if n, err := w.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
}

// closes closes w and requires that its goroutine has ended.
func closes(t *testing.T, w *Writer) {
	t.Helper()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.finished:
	default:
		t.Error("the goroutine has not ended")
	}
}

// counter counts dropped lines.
type counter struct {
	mu    sync.Mutex
	lines int
}

func (c *counter) add(lines int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines += lines
}

func TestOrderIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out reader
		var dropped counter
		w := New(&out, dropped.add, nil, nil)
		var want []string
		for i := range 1000 {
			line := fmt.Sprintf("line %d\n", i)
			want = append(want, line)
			writes(t, w, line)
			if i%7 == 0 {
				synctest.Wait()
			}
		}
		closes(t, w)
		if diff := cmp.Diff(want, out.got); diff != "" {
			t.Error(diff)
		}
		if dropped.lines != 0 || out.closed != 1 {
			t.Errorf("%d dropped, closed %d times", dropped.lines, out.closed)
		}
	})
}

// TestLinesAreCopied checks that lines are copied: zap writes every line into the same buffer.
func TestLinesAreCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newStuck()
		w := New(out, nil, nil, nil)
		line := []byte("one\n")
		_, _ = w.Write(line)
		synctest.Wait()
		copy(line, "two\n")
		_, _ = w.Write(line)
		copy(line, "xxx\n")
		close(out.letGo)
		closes(t, w)
		if diff := cmp.Diff([]string{"one\n", "two\n"}, out.got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestBlocked checks fault Z-X03: the log is not read, Write continues, lines without room are dropped and counted,
// and the log says where.
func TestBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newStuck()
		var dropped counter
		w := New(out, dropped.add, nil, func() time.Time { return time.UnixMilli(1_700_000_000_125) })
		writes(t, w, "on its way\n")
		synctest.Wait()
		large := strings.Repeat("x", 1<<20-lineCost)
		writes(t, w, large, large, large, large)
		if dropped.lines != 0 {
			t.Fatalf("%d dropped while there was room", dropped.lines)
		}
		writes(t, w, "a\n", "b\n", "c\n")
		synctest.Wait()
		if len(out.got) != 0 || dropped.lines != 3 {
			t.Fatalf("%d written, %d dropped", len(out.got), dropped.lines)
		}
		out.letGo <- struct{}{} // one line leaves: the waiting ones are taken, and there is room
		synctest.Wait()
		writes(t, w, "d\n")
		close(out.letGo)
		closes(t, w)
		notice := `{"level":"warn","ts":1700000000.125,"logger":"durward.log","msg":"lines are missing here: this log was full, nobody read it","lines":3}` + "\n"
		if diff := cmp.Diff([]string{"on its way\n", large, large, large, large, notice, "d\n"}, out.got); diff != "" {
			t.Error(diff)
		}
		if dropped.lines != 3 {
			t.Errorf("%d dropped", dropped.lines)
		}
	})
}

// TestManySmallLines checks that lines are bounded in number too, because each takes more than its bytes.
func TestManySmallLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newStuck()
		var dropped counter
		w := New(out, dropped.add, nil, nil)
		writes(t, w, "\n")
		synctest.Wait()
		const room = maxWaiting / (1 + lineCost)
		line := []byte("\n")
		for range room + 5 {
			_, _ = w.Write(line)
		}
		if dropped.lines != 5 {
			t.Errorf("%d dropped", dropped.lines)
		}
		close(out.letGo)
		closes(t, w)
		if len(out.got) != 1+room+1 {
			t.Errorf("%d lines", len(out.got))
		}
	})
}

// TestTooLarge checks that a line without room anywhere is a gap like others.
func TestTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out reader
		var dropped counter
		w := New(&out, dropped.add, nil, nil)
		writes(t, w, strings.Repeat("x", maxWaiting))
		synctest.Wait()
		writes(t, w, "next\n")
		closes(t, w)
		if len(out.got) != 2 || !strings.Contains(out.got[0], `"lines":1}`) || out.got[1] != "next\n" || dropped.lines != 1 {
			t.Errorf("%q, %d dropped", out.got, dropped.lines)
		}
	})
}

// TestBroken checks that lines that cannot be written are dropped lines.
func TestBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out reader
		var dropped counter
		out.breaks(errors.New("no space left on device"))
		w := New(&out, dropped.add, nil, nil)
		writes(t, w, "a\n", "b\n")
		synctest.Wait()
		writes(t, w, "c\n")
		synctest.Wait()
		out.breaks(nil)
		writes(t, w, "d\n")
		closes(t, w)
		if len(out.got) != 2 || !strings.Contains(out.got[0], `"lines":3}`) || out.got[1] != "d\n" || dropped.lines != 3 {
			t.Errorf("%q, %d dropped", out.got, dropped.lines)
		}
	})
}

// TestCloseIsBounded checks that the process ends although the log is not read. Nothing is lost when reading resumes
// in time.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newStuck()
		w := New(out, nil, nil, nil)
		writes(t, w, "a\n", "b\n")
		began := time.Now()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != patience {
			t.Errorf("took %v", took)
		}
		writes(t, w, "shutdown complete\n") // does not wait either
		close(out.letGo)
		<-w.finished
		if diff := cmp.Diff([]string{"a\n", "b\n", "shutdown complete\n"}, out.got); diff != "" {
			t.Error(diff)
		}
		if out.closed != 1 {
			t.Errorf("closed %d times", out.closed)
		}
	})
}

// TestCloseWaits checks that a slow reader gets everything, within the time there is.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newStuck()
		w := New(out, nil, nil, nil)
		writes(t, w, "a\n", "b\n")
		time.AfterFunc(patience-time.Millisecond, func() { close(out.letGo) })
		closes(t, w)
		if diff := cmp.Diff([]string{"a\n", "b\n"}, out.got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestFlush checks that the written lines have left, and that the writer continues.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newStuck()
		w := New(out, nil, nil, nil)
		writes(t, w, "a\n", "b\n")
		began := time.Now()
		w.Flush()
		if took := time.Since(began); took != patience || len(out.got) != 0 {
			t.Errorf("nobody reads: took %v, %q", took, out.got)
		}
		close(out.letGo)
		writes(t, w, "c\n")
		w.Flush()
		if diff := cmp.Diff([]string{"a\n", "b\n", "c\n"}, out.got); diff != "" {
			t.Error(diff)
		}
		closes(t, w)
		w.Flush() // there is nothing to wait for
		if took := time.Since(began); took != patience {
			t.Errorf("took %v", took)
		}
	})
}

// TestLastLines checks that a line that may be the process's last has left before Write returns. A stopped reader
// does not make callers wait for every line.
func TestLastLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newStuck()
		last := true
		w := New(out, nil, func() bool { return last }, nil)
		began := time.Now()
		writes(t, w, "a\n", "b\n", "c\n")
		if took := time.Since(began); took != patience {
			t.Errorf("nobody reads: took %v", took)
		}
		close(out.letGo)
		synctest.Wait()
		writes(t, w, "the configuration is refused\n")
		if diff := cmp.Diff([]string{"a\n", "b\n", "c\n", "the configuration is refused\n"}, out.got); diff != "" {
			t.Error(diff)
		}
		last = false
		out.gate.Lock()
		writes(t, w, "serving\n") // and waits for no reader
		out.gate.Unlock()
		closes(t, w)
	})
}

// TestFinishKeepsItOpen checks that the last lines of a process come after its logs were finished.
func TestFinishKeepsItOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out reader
		w := New(&out, nil, nil, nil)
		writes(t, w, "a\n")
		w.Finish()
		writes(t, w, "shutdown complete\n")
		if diff := cmp.Diff([]string{"a\n", "shutdown complete\n"}, out.got); diff != "" || out.closed != 0 {
			t.Errorf("closed %d times, %s", out.closed, diff)
		}
		closes(t, w)
		closes(t, w)
		if out.closed != 1 {
			t.Errorf("closed %d times", out.closed)
		}
	})
}

// TestAfterClose checks that a caller that writes to a closed log gets the error of its writer.
func TestAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out reader
		w := New(&out, nil, nil, nil)
		closes(t, w)
		writes(t, w, "shutdown complete\n")
		if diff := cmp.Diff([]string{"shutdown complete\n"}, out.got); diff != "" {
			t.Error(diff)
		}
		closes(t, w)
	})
}

// TestManyWriters checks, with -race, that every line is there or counted.
func TestManyWriters(t *testing.T) {
	var out reader
	var dropped counter
	w := New(&out, dropped.add, nil, nil)
	out.gate.Lock()
	line := bytes.Repeat([]byte("x"), 1000)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 1000 {
				_, _ = w.Write(line)
			}
		})
	}
	writers.Wait()
	out.gate.Unlock()
	closes(t, w)
	got := 0
	for _, line := range out.got {
		if !strings.HasPrefix(line, "{") {
			got++
		}
	}
	if dropped.lines == 0 || got+dropped.lines != 8000 {
		t.Errorf("%d written, %d dropped", got, dropped.lines)
	}
}

func BenchmarkWrite(b *testing.B) {
	var out discard
	w := New(out, func(int) {}, nil, nil)
	line := bytes.Repeat([]byte("x"), 1000)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = w.Write(line)
	}
	_ = w.Close()
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }
