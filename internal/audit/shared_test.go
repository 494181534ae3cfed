package audit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/storage"
)

// TestShared checks that each record is read back unchanged and verifies, for any callers, any disk errors, and shipping
// from memory or from files.
func TestShared(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // the same in every run
		root, store := t.TempDir(), new(memory)
		o, last := faultyOptions(t, root)
		j := openJournal(t, o)
		ship, lastShip := newShipper(j, store), newShipper(j, store)
		want := make(map[string]storage.AuditEntry)
		for range 150 {
			organization := []string{acme, other, ""}[random.IntN(3)]
			e := intent("create_issue")
			e.At = e.At.UTC()
			e.UserID = fmt.Sprint("user ", random.IntN(4))
			switch random.IntN(6) {
			case 0:
				e.Roles, e.Groups = []string{}, []string{fmt.Sprint(random.IntN(2))}
			case 1:
				e.Roles = nil
				e.Client = "ä\xff" // no valid JSON string
			case 2:
				e.Rule, e.Detail = "another", map[string]any{"0": "x"}
			}
			kept := *e
			kept.Client = strings.ToValidUTF8(e.Client, "\ufffd")
			switch random.IntN(12) {
			default:
				if err := j.Append(organization, e); err != nil {
					t.Fatal(err)
				}
				want[e.ID] = kept
			case 0, 1, 2:
				j.Later(organization, e)
				want[e.ID] = kept
			case 3:
				last().set(func() { last().write = errDisk })
				if err := j.Append(organization, e); !errors.Is(err, ErrUnavailable) {
					t.Fatal(err)
				}
				last().set(func() { last().write = nil })
			case 4:
				if err := j.Checkpoint(); err != nil {
					t.Fatal(err)
				}
			case 5:
				if err := turn(j); err != nil {
					t.Fatal(err)
				}
			case 6:
				if err := ship.ship(t.Context()); err != nil {
					t.Fatal(err)
				}
			case 7:
				j.mu.Lock()
				j.dropFresh()
				j.mu.Unlock()
			}
		}
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
		wantClean(t, root, store)
		found := make(map[string]storage.AuditEntry)
		read := func(r *storage.AuditRecord) error {
			e, err := EntryOf(r)
			found[e.ID] = e
			return err
		}
		if err := Everything(t.Context(), root, store, "*", time.Now().Add(-time.Hour), time.Now().Add(time.Hour), read); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Fatalf("seed %d, from journal and store: %s", seed, diff)
		}
		if err := errors.Join(j.Close(), lastShip.ship(t.Context())); err != nil {
			t.Fatal(err)
		}
		clear(found)
		for i := range store.chunks {
			records, err := ReadChunk(&store.chunks[i])
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				_ = read(&r)
			}
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Fatalf("seed %d, from the store: %s", seed, diff)
		}
		wantClean(t, root, store)
	}
}

// TestSharedBounded checks that records are read back unchanged when there are more callers than kept shared parts.
func TestSharedBounded(t *testing.T) {
	for name, rule := range map[string]string{"too many": "", "too long": strings.Repeat("x", 400)} {
		t.Run(name, func(t *testing.T) {
			root, store := t.TempDir(), new(memory)
			j := openJournal(t, testOptions(t, root))
			const callers = maxShared + 100
			for range 2 {
				for i := range callers {
					e := intent("create_issue")
					e.UserID, e.PolicyID, e.Rule = fmt.Sprint(i), "", rule
					j.Later(acme, e)
				}
				if err := j.Flush(); err != nil {
					t.Fatal(err)
				}
				parts := &j.segment.chains[acme].parts
				if full := len(parts.byText) == maxShared || parts.size+500 > maxSharedSize; !full || len(parts.byText) > maxShared || parts.size > maxSharedSize {
					t.Fatalf("%d parts, %d bytes", len(parts.byText), parts.size)
				}
			}
			wantClean(t, root, store)
			if err := fileShipper(j, store).ship(t.Context()); err != nil {
				t.Fatal(err)
			}
			if report := wantClean(t, root, store); report.Records != 2*callers {
				t.Errorf("%d records", report.Records)
			}
		})
	}
}

// TestSharedRoom checks that a shared part is only once in the segment when a failed write makes room for it again.
func TestSharedRoom(t *testing.T) {
	root := t.TempDir()
	o, last := faultyOptions(t, root)
	j := openJournal(t, o)
	by := func(user string) *storage.AuditEntry {
		e := intent("create_issue")
		e.UserID = user
		return e
	}
	for i := range maxShared - 1 {
		j.Later(acme, by(fmt.Sprint(i)))
	}
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	last().set(func() { last().write = errDisk })
	j.mu.Lock()
	c, err := j.ready(acme)
	if err != nil {
		t.Fatal(err)
	}
	j.add(c, by("who takes the last place"), 0)
	for range 3 {
		j.add(c, by("who finds none"), 1)
	}
	failed := j.flush()
	j.mu.Unlock()
	if failed == nil {
		t.Fatal("the disk took it")
	}
	last().set(func() { last().write = nil })
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	if report := wantClean(t, root, new(memory)); report.Records != maxShared+2 {
		t.Errorf("%d records", report.Records)
	}
	if parts := &j.segment.chains[acme].parts; len(parts.byText) != maxShared {
		t.Errorf("%d parts", len(parts.byText))
	}
}

// TestRecentOfRequest checks that a cached shared part does not change with the request's body, of which the method is a
// piece.
func TestRecentOfRequest(t *testing.T) {
	j := openJournal(t, testOptions(t, t.TempDir()))
	body := []byte("tools/call")
	var methods []string
	j.Observe(func(r storage.AuditRecord) {
		e, err := EntryOf(&r)
		if err != nil {
			t.Error(err)
		}
		methods = append(methods, e.Method)
	})
	for _, method := range []string{"tools/call", "tools/list", "tools/list", "tools/call"} {
		e := intent("create_issue")
		copy(body, method)
		e.Method = unsafe.String(unsafe.SliceData(body), len(body)) //nolint:gosec // as the parser of requests does it
		if err := j.Append(acme, e); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"tools/call", "tools/list", "tools/list", "tools/call"}; !slices.Equal(methods, want) {
		t.Error(methods)
	}
}

// TestRecentOfSegment checks that a segment that has ended is not kept in memory.
func TestRecentOfSegment(t *testing.T) {
	j := openJournal(t, testOptions(t, t.TempDir()))
	if err := j.Append(acme, intent("create_issue")); err != nil {
		t.Fatal(err)
	}
	if err := turn(j); err != nil {
		t.Fatal(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.recent {
		if j.recent[i][0].chain != nil || j.recent[i][1].chain != nil {
			t.Error("a chain of the former segment is kept")
		}
	}
}

// TestRecentOfTwo checks that two callers whose shared parts have the same place do not evict each other at each call.
func TestRecentOfTwo(t *testing.T) {
	var recent recentShared
	c, first := new(chain), intent("create_issue")
	second := intent("create_issue")
	for n := 0; recent.place(second) != recent.place(first) || second.UserID == first.UserID; n++ {
		second.UserID = fmt.Sprint("user ", n)
	}
	parts := []*shared{{sequence: 1}, {sequence: 2}}
	recent.remember(c, first, parts[0])
	recent.remember(c, second, parts[1])
	for i, e := range []*storage.AuditEntry{first, second} {
		if got := recent.find(c, e); got != parts[i] {
			t.Errorf("part %d: got %+v", i, got)
		}
	}
}

// TestRecentOfMany checks that users whose ids differ only in their last characters are spread over many places.
func TestRecentOfMany(t *testing.T) {
	var recent recentShared
	places := make(map[*[2]recentPart]bool)
	for n := range 256 {
		e := intent("create_issue")
		e.UserID = fmt.Sprintf("0190bbbb-0000-7000-8000-0000000000%02x", n)
		places[recent.place(e)] = true
	}
	if len(places) < len(recent)/2 {
		t.Errorf("256 people have %d of %d places", len(places), len(recent))
	}
}

// TestChunkOfLongParts checks that a chunk holds no more than can be read, however much its records share.
func TestChunkOfLongParts(t *testing.T) {
	root, store := t.TempDir(), new(memory)
	j := openJournal(t, testOptions(t, root))
	e := intent("create_issue")
	e.Rule = strings.Repeat("x", 900<<10)
	for range 100 {
		j.Later(acme, e)
	}
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := newShipper(j, store).ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report := wantClean(t, root, store); report.Records != 100 || report.Chunks < 20 {
		t.Errorf("%d records in %d chunks", report.Records, report.Chunks)
	}
	w := newChunk("n", "00000001", acme, new([32]byte), 1, nil)
	s := newShared([]byte(`{"u":"x"}`))
	for i := range 2 {
		w.add(&record{sequence: int64(i) + 1, text: []byte(`{"I":""`), shared: s}, 0)
	}
	reader := chunkReader{body: w.body[bodyStart+64:], format: chunkFormat, room: 10}
	if _, _, ok := reader.next(); ok {
		t.Error("more is read than there is room for")
	}
}
