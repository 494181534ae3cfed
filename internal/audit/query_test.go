package audit

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/query"
	"github.com/durward-gateway/durward/storage"
)

// TestEverythingAsked checks that the requested records of stores and journals come once, and that each record of a
// journal follows the one before it.
func TestEverythingAsked(t *testing.T) {
	root, store := t.TempDir(), new(memory)
	j := openJournal(t, testOptions(t, root))
	start := time.Unix(1_800_000_000, 0).UTC()
	trail := &Trail{journal: j, store: store}
	add := func(organization, tool string, second int) {
		e := intent(tool)
		e.At = start.Add(time.Duration(second) * time.Second)
		if err := j.Append(organization, e); err != nil {
			t.Fatal(err)
		}
	}
	add(acme, "1", 1)
	add(other, "2", 2)
	for _, organization := range []string{acme, other} {
		e := intent("3")
		e.At = start.Add(3 * time.Second)
		if err := store.RecordAudit(storage.WithAudit(t.Context(), trail.Audited(organization, *e))); err != nil {
			t.Fatal(err)
		}
	}
	if err := newShipper(j, store).ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	add(acme, "4", 4)
	add("", "5", 5)
	if err := j.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	add("", "6", 6)
	add(other, "7", 7)
	add("", "8", 8)
	kill(t, j)
	s := &scene{root: root, dir: j.dir, store: store, journal: j}
	lines := slices.DeleteFunc(s.lines(t, 1), func(line []byte) bool { return len(line) == 0 || line[0] == 0 })
	s.rewrite(t, 1, slices.Insert(lines, len(lines)-1, []byte("nothing to see here\n")))
	// Chains come in any order: those of one organization may be apart.
	store.heads = func(all []storage.AuditChain) []storage.AuditChain {
		slices.SortFunc(all, func(a, b storage.AuditChain) int {
			return cmp.Or(strings.Compare(a.Segment, b.Segment), strings.Compare(a.OrganizationID, b.OrganizationID))
		})
		return all
	}
	for _, c := range []struct {
		organization   string
		from, to       int
		stored, behind string // tools of the records in the store, and of those only in the journal
	}{
		{"*", 0, 9, "1233", "45678"}, {acme, 0, 9, "13", "4"}, {other, 0, 9, "23", "7"}, {"", 0, 9, "", "568"}, {"*", 2, 7, "233", "456"}, {"*", 5, 6, "", "5"}, {acme, 4, 4, "", ""}, {"nobody", 0, 9, "", ""},
	} {
		var stored, behind []byte
		last := make(map[string][32]byte) // the last hash of an organization's records in the journal
		err := query.Everything(t.Context(), root, store, c.organization, start.Add(time.Duration(c.from)*time.Second), start.Add(time.Duration(c.to)*time.Second), func(r *storage.AuditRecord) error {
			e, err := format.EntryOf(r)
			if err != nil || e.Tool <= "3" {
				stored = append(stored, e.Tool...)
				return err
			}
			behind = append(behind, e.Tool...)
			if before, ok := last[r.OrganizationID]; ok && r.Previous != before {
				t.Errorf("%+v: record %s does not follow the one before", c, e.Tool)
			}
			last[r.OrganizationID] = r.Hash
			return nil
		})
		if slices.Sort(stored); err != nil || string(stored) != c.stored || string(behind) != c.behind { // organizations come one after the other
			t.Errorf("%+v: %s and %s, %v", c, stored, behind, err)
		}
	}
	stop := errors.New("enough")
	for _, organization := range []string{acme, ""} {
		if err := query.Everything(t.Context(), root, store, organization, start, start.Add(time.Hour), func(*storage.AuditRecord) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("%q: %v", organization, err)
		}
	}
	if err := query.Everything(t.Context(), root, &failingStore{memory: store, chains: errDisk}, "*", start, start.Add(time.Hour), nil); !errors.Is(err, errDisk) {
		t.Error(err)
	}
}
