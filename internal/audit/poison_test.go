package audit

import (
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

// TestPoison checks that records that the store cannot keep delay no other organization's records. They stay in the
// journal's file, which is kept across starts. Verification reports it, and the next segment is shipped.
func TestPoison(t *testing.T) {
	for name, of := range map[string]func(*Journal, storage.Audits) *shipper{"from memory": newShipper, "from files": fileShipper} {
		t.Run(name, func(t *testing.T) {
			root, store := t.TempDir(), new(memory)
			store.poison = func(c *storage.AuditChunk) bool {
				return c.OrganizationID == acme && c.Segment == "00000001" && c.First == 3
			}
			j := openJournal(t, testOptions(t, root))
			leaveAlone(j)
			ship := func(s *shipper) {
				t.Helper()
				if err := s.ship(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			first := of(j, store)
			appendSome(t, j, acme, "early", 2)
			appendSome(t, j, other, "kept", 2)
			ship(first)
			for range 2 { // the record that cannot be kept, and the one after it
				appendSome(t, j, acme, "stays", 3)
				appendSome(t, j, other, "kept", 3)
				ship(first)
			}
			if n := first.unstored.Load(); n != 6 {
				t.Errorf("%d records are counted", n)
			}
			// This is as after a start: the store's records look like the beginning of the chain.
			second := of(j, store)
			second.take = nil
			ship(second)
			if err := turn(j); err != nil {
				t.Fatal(err)
			}
			appendSome(t, j, acme, "later", 2)
			ship(second)
			if n := second.unstored.Load(); n != 6 {
				t.Errorf("%d records are counted", n)
			}
			wantStored(t, store, acme, map[string]int{"early": 2, "later": 2})
			wantStored(t, store, other, map[string]int{"kept": 8})
			if kept := readFile(t, segments.Path(j.dir, 1)+segments.DamagedSuffix); strings.Count(kept, `"stays"`) != 6 {
				t.Errorf("%q", kept)
			}
			found := ""
			for _, f := range findings(t, root, store) {
				found += f.String() + "\n"
			}
			if !strings.Contains(found, "set aside") {
				t.Errorf("found %q", found)
			}
		})
	}
}
