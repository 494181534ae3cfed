package audit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/query"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

// calls makes calls that end one after the other.
func calls(t testing.TB, j *Journal, organization string, n int) (ids []string) {
	t.Helper()
	for range n {
		e := intent("create_issue")
		format.Name(e, []byte("{}"))
		if err := j.Append(organization, e); err != nil {
			t.Fatal(err)
		}
		j.Outcome(organization, plainOutcome(e))
		ids = append(ids, format.WholeID(e.ID, e.At.UnixNano()))
	}
	return ids
}

// completed reads the files of journals, and returns the calls with an outcome and the number of records with outcomes.
func completed(t testing.TB, root string) (ids []string, records int) {
	t.Helper()
	if err := query.Everything(t.Context(), root, new(memory), "*", time.Unix(0, 0), time.Now().AddDate(1, 0, 0), func(r *storage.AuditRecord) error {
		e, err := format.EntryOf(r)
		if err != nil || e.Call == "" && len(e.Outcomes) == 0 {
			return err
		}
		records++
		if len(e.Outcomes) > 0 && e.ID == "" {
			t.Errorf("record %d has no id", r.Sequence)
		}
		if e.Call != "" {
			ids = append(ids, e.Call)
		}
		for _, o := range e.Outcomes {
			ids = append(ids, o.Call)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return ids, records
}

func wantCompleted(t testing.TB, root string, want []string, wantRecords int) {
	t.Helper()
	if ids, records := completed(t, root); !slices.Equal(ids, want) || records != wantRecords {
		t.Errorf("%d records with outcomes of\n%s\nwant %d of\n%s", records, strings.Join(ids, "\n"), wantRecords, strings.Join(want, "\n"))
	}
}

// TestOutcomes checks that outcomes share a record, which intents do not end. The record is written when it is full,
// after a moment, and before anything that covers all records so far.
func TestOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		calls int
		then  func(j *Journal) error
		want  []int // the number of calls with an outcome in the file, and of the records with these
	}{
		"nothing":             {5, func(*Journal) error { return nil }, []int{0, 0}},
		"another call":        {5, func(j *Journal) error { return j.Append(acme, intent("next")) }, []int{0, 0}},
		"a full record":       {format.MaxOutcomes + 5, func(j *Journal) error { return j.Append(acme, intent("next")) }, []int{format.MaxOutcomes, 1}},
		"two full records":    {2*format.MaxOutcomes + 1, func(j *Journal) error { return j.Append(acme, intent("next")) }, []int{2 * format.MaxOutcomes, 2}},
		"a flush":             {5, (*Journal).Flush, []int{5, 1}},
		"a flush of many":     {format.MaxOutcomes + 5, (*Journal).Flush, []int{format.MaxOutcomes + 5, 2}},
		"a flush of a single": {1, (*Journal).Flush, []int{1, 1}},
		"a checkpoint":        {5, (*Journal).Checkpoint, []int{5, 1}},
		"the end":             {5, (*Journal).Close, []int{5, 1}},
		"another segment":     {5, turn, []int{5, 1}},
		"a moment": {5, func(*Journal) error {
			time.Sleep(laterDelay + time.Millisecond) //nolint:forbidigo // the clock of synctest
			synctest.Wait()
			return nil
		}, []int{5, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				root := t.TempDir()
				j := openJournal(t, testOptions(t, root))
				ids := calls(t, j, acme, c.calls)
				if err := c.then(j); err != nil {
					t.Fatal(err)
				}
				wantCompleted(t, root, ids[:c.want[0]], c.want[1])
				if err := j.Close(); err != nil || j.Lost() != 0 || j.grouped != 0 {
					t.Errorf("%v, %d are lost, %d wait", err, j.Lost(), j.grouped)
				}
				if ids, _ := completed(t, root); len(ids) != c.calls {
					t.Errorf("%d of %d calls have an outcome at the end", len(ids), c.calls)
				}
				wantClean(t, root, new(memory))
			})
		})
	}
}

// TestOutcomeAlone checks that an outcome that shares its record with no other has its original form.
func TestOutcomeAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, testOptions(t, t.TempDir()))
		e := intent("create_issue")
		o := plainOutcome(e)
		j.Outcome(acme, o)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`{"i":"%s","t":%d,"c":"","b":"ok","h":1234567,"f":200}`, e.ID, o.At.UnixNano())
		if text := readFile(t, segments.Path(j.dir, 1)); !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	})
}

// TestOutcomesOfOrganizations checks that the outcomes of each organization are in its own chain, and that reused lists
// are empty.
func TestOutcomesOfOrganizations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, store := t.TempDir(), new(memory)
		j := openJournal(t, testOptions(t, root))
		want := make(map[string][]string)
		for range 3 {
			for i := range 2 * spareGroups {
				organization := fmt.Sprint("organization-", i)
				want[organization] = append(want[organization], calls(t, j, organization, 2+i)...)
			}
			if err := j.Flush(); err != nil {
				t.Fatal(err)
			}
			if len(j.spare) > spareGroups || len(j.grouping) > 0 {
				t.Errorf("%d lists are kept, %d chains wait", len(j.spare), len(j.grouping))
			}
		}
		if err := newShipper(j, store).ship(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantClean(t, root, store)
		for organization, ids := range want {
			f := query.Filter{OrganizationID: organization, From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour), Outcome: "ok"}
			page, err := query.Page(t.Context(), store, f, storage.PageRequest{Number: 1})
			if err != nil || page.Total != len(ids) {
				t.Errorf("%d of %d calls have an outcome, %v", page.Total, len(ids), err)
			}
		}
	})
}

// TestOutcomesOfFullDisk checks that outcomes are kept up to a bound while the disk takes no writes, and that each
// outcome beyond the bound is counted.
func TestOutcomesOfFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		o, disk := faultyOptions(t, root)
		j := openJournal(t, o)
		ids := calls(t, j, acme, 3)
		disk().set(func() { disk().write = errDisk })
		if err := j.Flush(); !errors.Is(err, errDisk) {
			t.Fatalf("flushed: %v", err)
		}
		e := intent("create_issue")
		given := 0
		for ; j.Lost() == 0; given++ {
			if given > maxPending {
				t.Fatal("there is no bound")
			}
			j.Outcome(acme, plainOutcome(e))
			ids = append(ids, e.ID)
		}
		if waits := len(j.pending) + outcomeSize*j.grouped; waits < maxPending || waits > maxPending+64<<10 {
			t.Errorf("%d bytes wait", waits)
		}
		var tried, tries int
		d := disk()
		d.set(func() { tried = d.refused })
		for range 9 {
			j.Outcome(acme, plainOutcome(e))
		}
		if d.set(func() { tries = d.refused - tried }); tries != 0 {
			t.Errorf("%d calls wrote all that waits to a disk that takes nothing", tries)
		}
		if j.Lost() != 10 {
			t.Errorf("%d are counted as lost", j.Lost())
		}
		disk().set(func() { disk().write = nil })
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
		if got, _ := completed(t, root); !slices.Equal(got, ids[:len(ids)-1]) {
			t.Errorf("%d calls have an outcome, want %d", len(got), len(ids)-1)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		wantClean(t, root, new(memory))
	})
}

// TestOutcomesOfFailedDisk checks that each unwritten outcome of an abandoned segment is counted, and that none goes into
// the next segment.
func TestOutcomesOfFailedDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		j := openJournal(t, testOptions(t, root))
		calls(t, j, acme, format.MaxOutcomes+5) // outcomes for more than one record, of which one is complete
		j.mu.Lock()
		j.failure = errDisk
		j.mu.Unlock()
		j.Outcome(acme, plainOutcome(intent("refused")))
		j.Later(acme, intent("refused"))
		if err := j.advance(); err != nil {
			t.Fatal(err)
		}
		// The full record went with an intent.
		if j.Lost() != 5+2 || j.grouped != 0 || len(j.grouping) != 0 {
			t.Errorf("%d are lost, %d wait", j.Lost(), j.grouped)
		}
		ids := calls(t, j, acme, 2)
		pass(laterDelay)
		if got, _ := completed(t, root); len(got) != format.MaxOutcomes+2 || !slices.Equal(got[format.MaxOutcomes:], ids) {
			t.Errorf("%d calls have an outcome", len(got))
		}
	})
}

// TestQueryOutcomes checks that an intent is shown with its outcome from any record, unless the outcome is later than the
// queried time.
func TestQueryOutcomes(t *testing.T) {
	store := new(memory)
	trail := newTrail(t, testOptions(t, t.TempDir()), store)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const calls = 300
	for i := range calls {
		e := intent("create_issue")
		e.At = start.Add(time.Duration(i) * time.Millisecond)
		if err := trail.Append(acme, e); err != nil {
			t.Fatal(err)
		}
		o := plainOutcome(e)
		o.At = e.At.Add(time.Duration(calls-i) * time.Microsecond) // in another order than the intents
		o.UpstreamStatus = 200 + i
		trail.Outcome(acme, o)
		if i%7 == 0 {
			if err := trail.Ship(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, n := range []int{1, 2, 149, 150, 151, calls} {
		// The last call's outcome is at that time or later. The earlier ones are before it.
		f := query.Filter{OrganizationID: acme, From: start, To: start.Add(time.Duration(n-1)*time.Millisecond + time.Microsecond)}
		page, err := trail.Query(t.Context(), f, storage.PageRequest{Number: 1})
		if err != nil || page.Total != n {
			t.Fatalf("%d rows, want %d, %v", page.Total, n, err)
		}
		for i, row := range page.Items {
			want := 200 + n - 1 - i
			if i == 0 {
				want = 0 // the call is running at that time
			}
			if row.UpstreamStatus != want || (row.Outcome == "ok") != (want > 0) || (row.Duration == 1234567) != (want > 0) {
				t.Errorf("until call %d: row %d has outcome %q, status %d", n, i, row.Outcome, row.UpstreamStatus)
			}
		}
	}
}

// TestTamperedOutcomes checks that every change within a record of several outcomes is found, in a segment and in the
// store.
func TestTamperedOutcomes(t *testing.T) {
	split := func(text []byte) (before []byte, outcomes [][]byte, after []byte) {
		from, to := bytes.Index(text, []byte(`"B":[`))+len(`"B":[`), bytes.Index(text, []byte("]]}"))+1
		return text[:from], bytes.SplitAfter(text[from:to], []byte("],")), text[to:]
	}
	change := func(change func(outcomes [][]byte) [][]byte) func(text []byte) []byte {
		return func(text []byte) []byte {
			before, outcomes, after := split(text)
			outcomes[len(outcomes)-1] = append(slices.Clone(outcomes[len(outcomes)-1]), ',')
			joined := bytes.Join(change(outcomes), nil)
			return slices.Concat(before, joined[:len(joined)-1], after)
		}
	}
	for name, tamper := range map[string]func(text []byte) []byte{
		"edited": func(text []byte) []byte {
			return bytes.Replace(text, []byte(`,1234567]`), []byte(`,1234568]`), 1)
		},
		"reordered":  change(func(o [][]byte) [][]byte { return slices.Concat(o[1:2], o[:1], o[2:]) }),
		"duplicated": change(func(o [][]byte) [][]byte { return slices.Concat(o[:1], o) }),
		"replaced":   change(func(o [][]byte) [][]byte { return slices.Concat(o[1:2], o[1:]) }),
		"taken away": change(func(o [][]byte) [][]byte { return o[1:] }),
	} {
		t.Run(name, func(t *testing.T) {
			root, store := t.TempDir(), new(memory)
			j := openJournal(t, testOptions(t, root))
			func() { // no record ends between them
				j.mu.Lock()
				defer j.mu.Unlock()
				c, err := j.ready(acme)
				if err != nil {
					t.Fatal(err)
				}
				for range 5 {
					j.group(c, plainOutcome(intent("create_issue")))
				}
			}()
			if err := j.Flush(); err != nil {
				t.Fatal(err)
			}
			if err := newShipper(j, store).ship(t.Context()); err != nil {
				t.Fatal(err)
			}
			kill(t, j)
			wantClean(t, root, store)
			path := segments.Path(j.dir, 1)
			text := []byte(strings.TrimRight(readFile(t, path), "\x00"))
			first := bytes.IndexByte(text, '\n') + 1
			changed := slices.Concat(text[:first], changeText(t, text[first:], tamper))
			if bytes.Equal(changed, text) {
				t.Fatal("nothing is changed")
			}
			if err := os.WriteFile(path, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			if found := findings(t, root, new(memory)); len(found) != 1 || found[0].Sequence != 1 {
				t.Errorf("in the segment %v is found", found)
			}
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			repack(t, &store.chunks[0], func(body []byte) []byte {
				start := headSize + 2 + format.MarkSize + 1 // of the length of the text, which has two bytes
				text := tamper(body[start+2:])
				return append(binary.AppendUvarint(body[:start:start], uint64(len(text))), text...)
			})
			if found := findings(t, root, store); len(found) == 0 || found[0].Sequence != 1 {
				t.Errorf("in the store %v is found", found)
			}
		})
	}
}

// TestOutcomesFormat checks that a durward that does not know records of several outcomes does not take one in the store
// for an empty call: it does not know the format of their chunks.
func TestOutcomesFormat(t *testing.T) {
	j := openJournal(t, testOptions(t, t.TempDir()))
	store := new(memory)
	calls(t, j, acme, 2)
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := newShipper(j, store).ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := readFile(t, segments.Path(j.dir, 1)); !strings.HasPrefix(text, `{"format":7,`) || len(store.chunks) != 1 || store.chunks[0].Data[0] != 7 {
		t.Errorf("other formats: %.20s, %v", text, store.chunks)
	}
}

// TestOutcomesBounded checks that outcomes that wait for a record count towards the bound, however few each organization
// has. At the bound they are written, although the goroutine that writes had no turn: none is lost.
func TestOutcomesBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, testOptions(t, t.TempDir()))
		o := plainOutcome(intent("create_issue"))
		const most = maxPending/outcomeSize + 2
		for i := range most {
			j.Outcome(fmt.Sprint(i), o)
		}
		if j.Lost() != 0 || j.grouped != 1 || len(j.pending) != 0 {
			t.Errorf("%d and %d bytes wait, %d are lost", j.grouped, len(j.pending), j.Lost())
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestOutcomesPassed checks that records are in the order of time, also when intents have overtaken an outcome, which
// keeps its own time, and also after the clock was put back.
func TestOutcomesPassed(t *testing.T) {
	for _, alone := range []bool{false, true} {
		t.Run(fmt.Sprint("the clock goes on, alone: ", alone), func(t *testing.T) { testOutcomesPassed(t, 0, alone) })
		t.Run(fmt.Sprint("the clock was put back, alone: ", alone), func(t *testing.T) { testOutcomesPassed(t, format.GroupSpan, alone) })
	}
}

func testOutcomesPassed(t *testing.T, back time.Duration, alone bool) {
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		j := openJournal(t, testOptions(t, root))
		before := intent("before")
		before.At = before.At.Add(back)
		if err := j.Append(acme, before); err != nil {
			t.Fatal(err)
		}
		first, second := intent("first"), intent("second")
		o := plainOutcome(first)
		second.At = o.At.Add(time.Millisecond)
		for _, e := range []*storage.AuditEntry{first, second} {
			if err := j.Append(acme, e); err != nil {
				t.Fatal(err)
			}
			if alone {
				pass(laterDelay)
			}
			j.Outcome(acme, o)
			o = plainOutcome(second)
			o.At = first.At // not after the intent that overtook it
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		var last time.Time
		if err := query.Everything(t.Context(), root, new(memory), acme, time.Unix(0, 0), time.Now().AddDate(1, 0, 0), func(r *storage.AuditRecord) error {
			if at := format.TimeOf(r.Text); r.Sequence > 2 && at.Before(last) {
				t.Errorf("record %d is of %v, after one of %v", r.Sequence, at, last)
			} else {
				last = at
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestOutcomesApart checks that an outcome with a distant time hides no other outcome. Such a time comes from a changed
// clock or a hanging disk. Query up to a time must show the calls that had ended by then.
func TestOutcomesApart(t *testing.T) {
	for _, apart := range []time.Duration{time.Hour, -time.Hour, format.GroupSpan / 2, -format.GroupSpan / 2} {
		synctest.Test(t, func(t *testing.T) {
			j := openJournal(t, testOptions(t, t.TempDir()))
			store := new(memory)
			var odd string
			for i := range 3 {
				e := intent("pay")
				if err := j.Append(acme, e); err != nil {
					t.Fatal(err)
				}
				o := plainOutcome(e)
				if i == 1 {
					o.At, odd = o.At.Add(apart), e.ID
				}
				j.Outcome(acme, o)
			}
			to := time.Now().Add(10 * time.Millisecond)
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if err := newShipper(j, store).ship(t.Context()); err != nil {
				t.Fatal(err)
			}
			page, err := query.Page(t.Context(), store, query.Filter{OrganizationID: acme, From: time.Unix(0, 0), To: to}, storage.PageRequest{Number: 1})
			if err != nil || len(page.Items) != 3 {
				t.Fatalf("%d calls, %v", len(page.Items), err)
			}
			for _, row := range page.Items {
				if row.ID != odd && row.Outcome != "ok" {
					t.Errorf("%v apart: the outcome of another is %q", apart, row.Outcome)
				}
			}
		})
	}
}

// TestOutcomesOfABrokenDisk checks that waiting outcomes are counted as lost when the journal is closed and cannot be
// written.
func TestOutcomesOfABrokenDisk(t *testing.T) {
	o, disk := faultyOptions(t, t.TempDir())
	j := openJournal(t, o)
	e := intent("pay")
	if err := j.Append(acme, e); err != nil {
		t.Fatal(err)
	}
	disk().set(func() { disk().write = errDisk })
	j.Outcome(acme, plainOutcome(e))
	j.Outcome(acme, plainOutcome(e))
	if err := j.Close(); !errors.Is(err, errDisk) || j.Lost() != 2 {
		t.Errorf("%v, %d lost", err, j.Lost())
	}
}
