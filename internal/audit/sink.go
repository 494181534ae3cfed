package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

// Sink receives a copy of every record. Records that a sink does not take in time are lost to it, and counted. Calls
// never wait for a sink.
type Sink interface {
	// Name returns the name of the sink in logs and metrics.
	Name() string
	// Write writes some records. It should return when ctx ends.
	Write(ctx context.Context, records []format.Exported) error
	// Close closes the sink.
	Close() error
}

// These are the bounds of sinks.
const (
	sinkQueue    = 8192
	sinkBatch    = 256
	sinkDeadline = 2 * time.Second
)

// feed holds a sink and its queue.
type feed struct {
	sink    Sink
	queue   chan storage.AuditRecord
	stop    chan struct{}
	done    chan struct{}
	lost    atomic.Int64
	passing atomic.Int64           // number of records that the sink is writing
	failure atomic.Pointer[string] // the last error
}

func newFeed(s Sink) *feed {
	f := &feed{sink: s, queue: make(chan storage.AuditRecord, sinkQueue), stop: make(chan struct{}), done: make(chan struct{})}
	go f.run()
	return f
}

// offer puts a record into the queue, or counts it as lost. It never blocks.
func (f *feed) offer(r storage.AuditRecord) {
	select {
	case f.queue <- r:
	default:
		f.lost.Add(1)
	}
}

func (f *feed) run() {
	defer close(f.done)
	defer func() { _ = f.sink.Close() }()
	for {
		select {
		case r := <-f.queue:
			f.pass(r)
		case <-f.stop:
			for {
				select {
				case r := <-f.queue:
					f.pass(r)
				default:
					return
				}
			}
		}
	}
}

// pass writes a record, and those that wait after it, to the sink.
func (f *feed) pass(first storage.AuditRecord) {
	records := []format.Exported{format.Export(&first)}
	for more := true; more && len(records) < sinkBatch; {
		select {
		case r := <-f.queue:
			records = append(records, format.Export(&r))
		default:
			more = false
		}
	}
	f.passing.Store(int64(len(records)))
	ctx, cancel := context.WithTimeout(context.Background(), sinkDeadline)
	defer cancel()
	err := f.sink.Write(ctx, records)
	n := f.passing.Swap(0) // 0: close has counted them as lost
	if err != nil {
		f.lost.Add(n)
		text := err.Error()
		f.failure.Store(&text)
	}
}

// close gives the sink a short time to take the waiting records. The rest is lost to it.
func (f *feed) close() {
	close(f.stop)
	timer := time.NewTimer(sinkDeadline)
	defer timer.Stop()
	select {
	case <-f.done:
	case <-timer.C:
		f.lost.Add(f.passing.Swap(0))
	}
	for {
		select {
		case <-f.queue:
			f.lost.Add(1)
		default:
			return
		}
	}
}

// FileSink appends NDJSON to a file, which may be a pipe.
type FileSink struct {
	path string
	file sinkFile
	torn bool // the file may end with a part of a line
}

// sinkFile is the part of *os.File that a FileSink uses.
type sinkFile interface {
	io.WriteCloser
	Stat() (os.FileInfo, error)
	Truncate(size int64) error
	SetWriteDeadline(t time.Time) error
}

// NewFileSink returns a sink for the file at path. The first record opens the file, or makes it with mode 0600.
func NewFileSink(path string) *FileSink { return &FileSink{path: path} }

// Name implements Sink.
func (s *FileSink) Name() string { return "file " + s.path }

// Write implements Sink.
func (s *FileSink) Write(ctx context.Context, records []format.Exported) error {
	if s.file == nil {
		// Without O_NONBLOCK a pipe that nobody reads would hold us here (fault Z-X01).
		f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|segments.Nonblocking, 0o600)
		if err != nil {
			return fmt.Errorf("opening audit sink: %w", err)
		}
		s.file = f
		s.torn = s.torn || endsTorn(s.path)
	}
	var lines []byte
	if s.torn {
		lines = append(lines, '\n') // the part of a line stays a line of its own
	}
	for _, r := range records {
		lines = append(append(lines, format.Marshal(r)...), '\n')
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = s.file.SetWriteDeadline(deadline) // files on a disk have no deadlines
	}
	if n, err := s.file.Write(lines); err != nil {
		if n > 0 && !s.cutBack(n) {
			s.torn = lines[n-1] != '\n'
		}
		return errors.Join(fmt.Errorf("writing audit sink: %w", err), s.Close())
	}
	s.torn = false
	return nil
}

// cutBack removes the last n bytes, which were just written, where that is possible.
func (s *FileSink) cutBack(n int) bool {
	at, err := s.file.Stat()
	return err == nil && s.file.Truncate(at.Size()-int64(n)) == nil // not where nothing has a size, as in a pipe
}

// endsTorn reports whether a file ends with a part of a line, for example after the process was killed while it wrote.
func endsTorn(path string) bool {
	at, err := os.Stat(path)
	if err != nil || !at.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false // the file may be write-only
	}
	defer f.Close()
	var last [1]byte
	_, err = f.ReadAt(last[:], at.Size()-1) // an empty file has none
	return err == nil && last[0] != '\n'
}

// Close implements Sink.
func (s *FileSink) Close() error {
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.Close()
}
