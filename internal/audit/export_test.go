package audit

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/query"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

// busyStore is a store to which a gateway ships while it is read.
type busyStore struct {
	*memory
	once sync.Once
	ship func()
}

func (s *busyStore) AuditChunks(ctx context.Context, f storage.AuditFilter) ([]storage.AuditChunk, error) {
	s.once.Do(s.ship)
	return s.memory.AuditChunks(ctx, f)
}

// TestEverythingOnce checks that each record comes once, also when a gateway ships it and removes its segment during the
// reading.
func TestEverythingOnce(t *testing.T) {
	for _, meanwhile := range []string{"nothing happens", "shipped", "shipped and removed"} {
		t.Run(meanwhile, func(t *testing.T) {
			o := testOptions(t, t.TempDir())
			j := openJournal(t, o)
			store := new(memory)
			s := newShipper(j, store)
			var want []string
			add := func(n int) {
				for range n {
					e := intent(fmt.Sprint("tool ", len(want)))
					if err := j.Append(acme, e); err != nil {
						t.Fatal(err)
					}
					want = append(want, e.Tool)
				}
			}
			ship := func() {
				if err := s.ship(t.Context()); err != nil {
					t.Error(err)
				}
			}
			add(5)
			ship()
			add(5)
			busy := &busyStore{memory: store, ship: func() {
				switch meanwhile {
				case "shipped":
					ship()
				case "shipped and removed":
					if err := j.Close(); err != nil {
						t.Error(err)
					}
					s.growing = func() int { return segments.MaxNumber }
					ship()
				}
			}}
			var got []string
			if err := query.Everything(t.Context(), o.Dir, busy, acme, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), func(r *storage.AuditRecord) error {
				e, err := format.EntryOf(r)
				got = append(got, e.Tool)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// byHand computes the hash of a line of an export as docs/audit-format.md says, without code of this package.
func byHand(t *testing.T, line []byte) (hash, said string) {
	t.Helper()
	var r struct {
		Organization string `json:"organization_id"`
		Node         string
		Segment      string
		Sequence     uint64
		Previous     string
		Hash         string
		Text         string
	}
	if err := json.Unmarshal(line, &r); err != nil {
		t.Fatal(err)
	}
	number := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	previous, err := hex.DecodeString(r.Previous)
	if err != nil || r.Text == "" {
		t.Fatalf("%s: %v", line, err)
	}
	if r.Sequence == 1 {
		if r.Previous != strings.Repeat("0", 64) {
			t.Errorf("something is in front of the first record: %s", line)
		}
		name := []byte("durward audit chain\x00")
		for _, field := range []string{r.Organization, r.Node, r.Segment} {
			name = slices.Concat(name, number(uint64(len(field))), []byte(field))
		}
		start := sha256.Sum256(name)
		previous = start[:]
	}
	hashed := slices.Concat(previous, []byte{2}, number(r.Sequence), []byte(r.Text))
	if strings.HasPrefix(r.Text, `{"I":"`) {
		at := strings.LastIndex(r.Text, `,"0":`)
		shared := sha256.Sum256([]byte(r.Text[at+len(`,"0":`) : len(r.Text)-1]))
		hashed = slices.Concat(previous, []byte{3}, number(r.Sequence), shared[:], []byte(r.Text[:at]))
	}
	sum := sha256.Sum256(hashed)
	return hex.EncodeToString(sum[:]), r.Hash
}

// TestExportByHand checks that each line of an export can be checked alone, and that sinks, the journal and the store
// export the same.
func TestExportByHand(t *testing.T) {
	root, store := t.TempDir(), new(memory)
	j := openJournal(t, testOptions(t, root))
	exported := make(map[string][]string)
	add := func(from string, r *storage.AuditRecord) {
		exported[from] = append(exported[from], string(format.Marshal(format.Export(r))))
	}
	j.Observe(func(r storage.AuditRecord) { add("sink", &r) })
	for i := range 9 {
		e := intent("create_issue")
		e.Roles = []string{`,"0":{`, "0"}
		e.Arguments = json.RawMessage(`{"a":1,"0":{"b":{"0":17}}}`)
		if i%3 == 1 {
			e.Event, e.Detail = "model.call", map[string]any{"0": map[string]any{}}
		}
		if err := j.Append([]string{acme, other, ""}[i%3], e); err != nil {
			t.Fatal(err)
		}
		j.Later([]string{acme, other, ""}[i%3], outcomeOf(e))
	}
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	read := func(from string) {
		if err := query.Everything(t.Context(), root, store, "*", time.Now().Add(-time.Hour), time.Now().Add(time.Hour), func(r *storage.AuditRecord) error {
			add(from, r)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	read("journal")
	if err := fileShipper(j, store).ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	read("store")
	for _, from := range []string{"sink", "journal", "store"} {
		lines := exported[from]
		for _, line := range lines {
			if hash, said := byHand(t, []byte(line)); hash != said {
				t.Errorf("%s: %s has another hash", from, line)
			}
		}
		slices.Sort(lines)
		if diff := cmp.Diff(exported["sink"], lines); len(lines) != 18 || diff != "" {
			t.Errorf("%s has %d records: %s", from, len(lines), diff)
		}
	}
}
