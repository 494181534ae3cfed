package audit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// shortFile is a file that takes some bytes and then none.
type shortFile struct {
	sinkFile
	room int
	keep bool  // written bytes cannot be removed
	stat error // of the question how long it is
}

func (f *shortFile) Stat() (os.FileInfo, error) {
	if f.stat != nil {
		return nil, f.stat
	}
	return f.sinkFile.Stat()
}

func (f *shortFile) Write(b []byte) (int, error) {
	n, err := f.sinkFile.Write(b[:min(f.room, len(b))])
	if f.room -= n; err == nil && n < len(b) {
		err = errDisk
	}
	return n, err
}

func (f *shortFile) Truncate(size int64) error {
	if f.keep {
		return errDisk
	}
	return f.sinkFile.Truncate(size)
}

func exported(tool string, n int) (all []format.Exported) {
	for range n {
		all = append(all, format.Export(&storage.AuditRecord{OrganizationID: acme, Text: format.AppendEntry(nil, intent(tool))}))
	}
	return all
}

// TestSinkShort checks that a partial write is removed again, or stays a line of its own. No line is appended to a part
// of another.
func TestSinkShort(t *testing.T) {
	for name, c := range map[string]struct {
		keep, killed, full bool
		stat               error
		torn               int
	}{
		"cut back": {}, "kept": {keep: true, torn: 1}, "killed": {keep: true, killed: true, torn: 1},
		"of unknown length": {stat: errDisk, torn: 1}, "nothing fits": {keep: true, full: true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sink")
			s := NewFileSink(path)
			write := func(n int) error { return s.Write(t.Context(), exported("create_issue", n)) }
			if err := write(2); err != nil {
				t.Fatal(err)
			}
			size := len(readFile(t, path))
			room, want := size/2+10, 4+c.torn // one of the lines fits
			if c.full {
				room = 0
			}
			s.file = &shortFile{sinkFile: s.file, room: room, keep: c.keep, stat: c.stat}
			if err := write(2); err == nil {
				t.Fatal("a part of it is taken for all")
			}
			if c.killed {
				s = NewFileSink(path)
			}
			if err := errors.Join(write(1), write(1)); err != nil {
				t.Fatal(err)
			}
			_ = s.Close()
			whole, torn := 0, 0
			for line := range strings.SplitSeq(strings.TrimSuffix(readFile(t, path), "\n"), "\n") {
				if strings.HasPrefix(line, `{"organization_id":`) && strings.HasSuffix(line, "}") && strings.Count(line, `"organization_id"`) == 1 {
					whole++
				} else {
					torn++
				}
			}
			if whole != want || torn != c.torn {
				t.Errorf("%d lines are whole and %d are not", whole, torn)
			}
		})
	}
}

// TestSinkPipe checks that the next record is a line of its own after a pipe was full in the middle of a line.
func TestSinkPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	// A sink closes a file that it could not write to. Without a second writer the reader could see the end of the pipe then.
	writer, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	s := NewFileSink(path)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Write(ctx, exported("create_issue", 256)); err == nil {
		t.Fatal("more is taken than there is room for")
	}
	var got bytes.Buffer
	drained := make(chan struct{})
	go func() { defer close(drained); _, _ = io.Copy(&got, reader) }()
	if err := s.Write(t.Context(), exported("last", 1)); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	_ = writer.Close()
	<-drained
	text := got.String()
	if at := strings.LastIndex(text, `{"organization_id":`); at < 0 || at > 0 && text[at-1] != '\n' || !strings.Contains(text[at:], `"last"`) {
		t.Errorf("%.300s", text[max(0, at-100):])
	}
}

// lockedBuffer is a buffer with a lock to which a log is written.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// TestSinkLosses checks that records that a sink has not taken at the end are counted and logged, and that no count falls
// when sinks are replaced.
func TestSinkLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told lockedBuffer
		o := testOptions(t, t.TempDir())
		o.Log = slog.New(slog.NewTextHandler(&told, nil))
		trail := &Trail{log: o.Log, past: make(map[string]int64), stop: make(chan struct{}), refusals: newRefusals(time.Now), journal: new(Journal)}
		hangs := &stuck{release: make(chan struct{})}
		give := func(n int) {
			for range n {
				trail.offer(storage.AuditRecord{OrganizationID: acme, Text: format.AppendEntry(nil, intent("create_issue"))})
			}
		}
		trail.SetSinks([]Sink{hangs})
		give(1)
		synctest.Wait() // the sink has the record
		give(sinkQueue + 5)
		trail.SetSinks([]Sink{hangs})
		if n := trail.Losses()["stuck"]; n != 5 {
			t.Errorf("%d are lost when sinks are replaced", n)
		}
		give(3)
		time.Sleep(2 * sinkDeadline) //nolint:forbidigo // the clock of synctest
		if n := trail.Losses()["stuck"]; n != 5+sinkQueue+1 {
			t.Errorf("%d are lost of the former one", n)
		}
		trail.report()
		trail.SetSinks(nil)
		trail.work.Wait()
		trail.report()
		if n := trail.Losses()["stuck"]; n != 5+sinkQueue+1+3 {
			t.Errorf("%d are lost in the end", n)
		}
		if text := told.String(); strings.Count(text, "audit records are lost") != 2 || !strings.Contains(text, "records=3") {
			t.Errorf("%s", text)
		}
		close(hangs.release)
	})
}

// TestEndsTorn checks that endsTorn is true only for a file that ends within a line.
func TestEndsTorn(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]bool{"": false, "a": true, "\n": false, "a\n": false, "a\nb": true} {
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if endsTorn(path) != want {
			t.Errorf("%q ends within a line: %v", text, !want)
		}
	}
	if endsTorn(dir) || endsTorn(filepath.Join(dir, "none")) || endsTorn(os.DevNull) {
		t.Error("what is no file ends within a line")
	}
}

// TestSinkOpened checks that a sink's file is opened at the first record, and once more after an error.
func TestSinkOpened(t *testing.T) {
	dir := t.TempDir()
	s := NewFileSink(filepath.Join(dir, "later", "sink"))
	if err := s.Write(t.Context(), exported("one", 1)); err == nil {
		t.Error("written nowhere")
	}
	if err := s.Close(); err != nil {
		t.Errorf("what was never opened: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "later"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Write(t.Context(), exported("two", 2)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil || s.file != nil {
		t.Error(err)
	}
	if err := s.Write(t.Context(), exported("three", 1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if text := readFile(t, s.path); strings.Count(text, "\n") != 5 || strings.Contains(text, "\n\n") || s.Name() != "file "+s.path {
		t.Errorf("%s: %q", s.Name(), text)
	}
}

// counting is a sink that counts the records of each write, and fails on request.
type counting struct {
	name  string
	mu    sync.Mutex
	given []int
	err   error
	ended int
}

func (s *counting) Name() string { return s.name }

func (s *counting) total() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n1 := range s.given {
		n += n1
	}
	return n
}

func (s *counting) Write(ctx context.Context, records []format.Exported) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := ctx.Deadline(); !ok {
		s.given = append(s.given, -1)
	}
	s.given = append(s.given, len(records))
	return s.err
}

func (s *counting) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended++
	return nil
}

// TestFeed checks that a sink gets the waiting records, no more than a bound at once, also when it is closed. Records of
// a failed write are counted as lost.
func TestFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, fails := range []error{nil, errDisk} {
			s := &counting{err: fails}
			f := &feed{sink: s, queue: make(chan storage.AuditRecord, sinkQueue), stop: make(chan struct{}), done: make(chan struct{})}
			const n = 2*sinkBatch + 7
			for range n {
				f.offer(storage.AuditRecord{Text: []byte(`{}`)})
			}
			go f.run()
			began := time.Now()
			f.close()
			if waited := time.Since(began); waited > 0 {
				t.Errorf("closing takes %v, although the sink has taken all", waited)
			}
			if want := []int{sinkBatch, sinkBatch, 7}; !slices.Equal(s.given, want) {
				t.Errorf("the sink is given %v, want %v", s.given, want)
			}
			lost, text := int64(0), f.failure.Load()
			if fails != nil {
				lost = n
			}
			if s.ended != 1 {
				t.Errorf("the sink is closed %d times", s.ended)
			}
			if f.lost.Load() != lost || (text != nil) != (fails != nil) || text != nil && *text != errDisk.Error() || f.passing.Load() != 0 {
				t.Errorf("%d are lost", f.lost.Load())
			}
		}
	})
}
