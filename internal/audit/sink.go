package audit

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// Exported is a record as sinks and exports show it: one line of NDJSON.
type Exported struct {
	Organization string          `json:"organization_id"`
	Node         string          `json:"node"`
	Segment      string          `json:"segment"`
	Sequence     int64           `json:"sequence"`
	Previous     string          `json:"previous"` // hex
	Hash         string          `json:"hash"`
	Entry        json.RawMessage `json:"entry"`
	// Text is what is hashed: the entry's short form. "" when Entry itself is.
	Text string `json:"text,omitempty"`
}

// Export shows a record.
func Export(r *storage.AuditRecord) Exported {
	e := Exported{
		Organization: r.OrganizationID, Node: r.Node, Segment: r.Segment, Sequence: r.Sequence,
		Previous: hex.EncodeToString(r.Previous[:]), Hash: hex.EncodeToString(r.Hash[:]), Entry: longText(r.Text),
	}
	if isShort(r.Text) {
		e.Text = string(r.Text)
	}
	return e
}

// Sink gets a copy of every record. What a sink does not take in time is lost to it, and counted; calls never wait for one.
type Sink interface {
	// Name is what the sink is called in logs and metrics.
	Name() string
	// Write takes some records. It should return when ctx ends.
	Write(ctx context.Context, records []Exported) error
	// Close ends the sink.
	Close() error
}

// Bounds of sinks.
const (
	sinkQueue    = 8192
	sinkBatch    = 256
	sinkDeadline = 2 * time.Second
)

// feed is a sink with its queue.
type feed struct {
	sink    Sink
	queue   chan storage.AuditRecord
	stop    chan struct{}
	done    chan struct{}
	lost    atomic.Int64
	passing atomic.Int64           // how many records the sink is given at the moment
	over    atomic.Bool            // nobody waits for the sink any more
	failure atomic.Pointer[string] // the last error
}

func newFeed(s Sink) *feed {
	f := &feed{sink: s, queue: make(chan storage.AuditRecord, sinkQueue), stop: make(chan struct{}), done: make(chan struct{})}
	go f.run()
	return f
}

// offer never blocks.
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
			for !f.over.Load() {
				select {
				case r := <-f.queue:
					f.pass(r)
				default:
					return
				}
			}
			return
		}
	}
}

// pass gives a record, and those that wait behind it, to the sink.
func (f *feed) pass(first storage.AuditRecord) {
	records := []Exported{Export(&first)}
	for more := true; more && len(records) < sinkBatch; {
		select {
		case r := <-f.queue:
			records = append(records, Export(&r))
		default:
			more = false
		}
	}
	f.passing.Store(int64(len(records)))
	ctx, cancel := context.WithTimeout(context.Background(), sinkDeadline)
	defer cancel()
	err := f.sink.Write(ctx, records)
	n := f.passing.Swap(0) // 0: they are lost already, see close
	if err != nil {
		f.lost.Add(n)
		text := err.Error()
		f.failure.Store(&text)
	}
}

// close gives the sink a moment to take what waits. The rest is lost to it.
func (f *feed) close() {
	close(f.stop)
	timer := time.NewTimer(sinkDeadline)
	defer timer.Stop()
	select {
	case <-f.done:
	case <-timer.C:
		f.over.Store(true)
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
	torn bool // it may end with a part of a line
}

// sinkFile is an *os.File.
type sinkFile interface {
	io.WriteCloser
	Stat() (os.FileInfo, error)
	Truncate(size int64) error
	SetWriteDeadline(t time.Time) error
}

// NewFileSink makes a sink for the file at path. The file is opened, and made with mode 0600, at the first record.
func NewFileSink(path string) *FileSink { return &FileSink{path: path} }

// Name implements Sink.
func (s *FileSink) Name() string { return "file " + s.path }

// Write implements Sink.
func (s *FileSink) Write(ctx context.Context, records []Exported) error {
	if s.file == nil {
		// Without O_NONBLOCK a pipe that nobody reads would hold us here (fault Z-X01).
		f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|openNonblocking, 0o600)
		if err != nil {
			return fmt.Errorf("opening audit sink: %w", err)
		}
		s.file = f
		s.torn = s.torn || endsTorn(s.path)
	}
	var lines []byte
	if s.torn {
		lines = append(lines, '\n') // what is torn stays a line of its own
	}
	for _, r := range records {
		lines = append(append(lines, marshal(r)...), '\n')
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = s.file.SetWriteDeadline(deadline) // files on a disk know none
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

// cutBack takes away the last bytes that were written, where that can be done.
func (s *FileSink) cutBack(n int) bool {
	at, err := s.file.Stat()
	return err == nil && at.Mode().IsRegular() && at.Size() >= int64(n) && s.file.Truncate(at.Size()-int64(n)) == nil
}

// endsTorn reports whether a file ends with a part of a line, as when the process was killed while it wrote.
func endsTorn(path string) bool {
	at, err := os.Stat(path)
	if err != nil || !at.Mode().IsRegular() || at.Size() == 0 {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false // it may be only for writing
	}
	defer f.Close()
	var last [1]byte
	_, err = f.ReadAt(last[:], at.Size()-1)
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
