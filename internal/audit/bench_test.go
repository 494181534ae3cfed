//go:build unix

package audit

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
)

// processor returns the processor time of the process. On a machine with other users, wall time says little.
func processor(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func reportProcessor(b *testing.B, before time.Duration, each int) {
	b.ReportMetric(float64((processor(b)-before).Nanoseconds())/float64(b.N)/float64(each), "cpu-ns/call")
}

// BenchmarkCall measures one call: the intent, written at once, and the outcome, which shares a record with others.
func BenchmarkCall(b *testing.B) {
	j := openJournal(b, testOptions(b, b.TempDir()))
	e := intent("create_issue")
	out := plainOutcome(e)
	b.ReportAllocs()
	before := processor(b)
	defer func() { reportProcessor(b, before, 1) }()
	for b.Loop() {
		format.Name(e, []byte(`{"repository":"acme/shop","title":"a word"}`))
		if err := j.Append(acme, e); err != nil {
			b.Fatal(err)
		}
		out.Call = e.ID
		j.Outcome(acme, out)
	}
	b.ReportMetric(float64(j.writtenSoFar())/float64(b.N), "journal-B/call")
}

// BenchmarkCallOfMany measures the same as BenchmarkCall, with a thousand users in turn.
func BenchmarkCallOfMany(b *testing.B) {
	j := openJournal(b, testOptions(b, b.TempDir()))
	var users [1000]string
	for i := range users {
		users[i] = fmt.Sprintf("0190bbbb-0000-7000-8000-000000000%03d", i)
	}
	e := intent("create_issue")
	out := plainOutcome(e)
	b.ReportAllocs()
	before := processor(b)
	defer func() { reportProcessor(b, before, 1) }()
	for i := 0; b.Loop(); i++ {
		e.UserID = users[i%len(users)]
		format.Name(e, []byte(`{"repository":"acme/shop","title":"a word"}`))
		if err := j.Append(acme, e); err != nil {
			b.Fatal(err)
		}
		out.Call = e.ID
		j.Outcome(acme, out)
	}
	b.ReportMetric(float64(j.writtenSoFar())/float64(b.N), "journal-B/call")
}

func BenchmarkEncode(b *testing.B) {
	e := intent("create_issue")
	var text []byte
	before := processor(b)
	defer func() { reportProcessor(b, before, 1) }()
	for b.Loop() {
		text = format.AppendEntry(text[:0], e)
	}
}

// BenchmarkShip measures the shipping of one record that is read from the files, without the store.
func BenchmarkShip(b *testing.B) {
	j := openJournal(b, testOptions(b, b.TempDir()))
	const calls = 5000
	for range calls {
		e := intent("create_issue")
		format.Name(e, []byte("{}"))
		j.Later(acme, e)
		j.Outcome(acme, plainOutcome(e))
	}
	if err := j.Flush(); err != nil {
		b.Fatal(err)
	}
	var store *memory
	before := processor(b)
	defer func() { reportProcessor(b, before, calls) }()
	s := fileShipper(j, nil)
	for b.Loop() {
		store = new(memory)
		s.store, s.at = store, position{}
		if err := s.ship(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	size := 0
	for _, c := range store.chunks {
		size += len(c.Data)
	}
	b.ReportMetric(float64(size)/calls, "stored-B/call")
}

// BenchmarkConcurrentCalls measures the same as BenchmarkCall, with sixteen callers at a time.
func BenchmarkConcurrentCalls(b *testing.B) {
	j := openJournal(b, testOptions(b, b.TempDir()))
	before := processor(b)
	defer func() { reportProcessor(b, before, 1) }()
	b.SetParallelism(16)
	b.RunParallel(func(p *testing.PB) {
		e := intent("create_issue")
		out := plainOutcome(e)
		for p.Next() {
			if err := j.Append(acme, e); err != nil {
				b.Error(err)
			}
			j.Outcome(acme, out)
		}
	})
}
