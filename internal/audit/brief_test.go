package audit

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/query"
	"github.com/durward-gateway/durward/storage"
)

// TestBriefOutcomes checks that outcomes have the full ids of their intents, in a shared record and alone.
func TestBriefOutcomes(t *testing.T) {
	for _, n := range []int{1, 2, format.MaxOutcomes + 1} {
		root, store := t.TempDir(), new(memory)
		j := openJournal(t, testOptions(t, root))
		want := make(map[string]bool)
		var intents []*storage.AuditEntry
		for range n {
			e := intent("create_issue")
			format.Name(e, []byte("{}"))
			if err := j.Append(acme, e); err != nil {
				t.Fatal(err)
			}
			want[format.WholeID(e.ID, e.At.UnixNano())] = true
			intents = append(intents, e)
		}
		for i, e := range intents {
			o := plainOutcome(e)
			o.Duration = time.Duration(i) * time.Second / 3
			o.At = e.At.Add(o.Duration)
			j.Outcome(acme, o)
		}
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
		if got, _ := completed(t, root); len(got) != n || len(want) != n {
			t.Errorf("%d outcomes of %d calls, want %d", len(got), len(want), n)
		} else {
			for _, id := range got {
				if !want[id] {
					t.Errorf("an outcome of %s, which is no call", id)
				}
			}
		}
		if err := newShipper(j, store).ship(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantClean(t, root, store)
		rows, err := query.Page(t.Context(), store, query.Filter{OrganizationID: acme, From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour), Outcome: "ok"}, storage.PageRequest{Number: 1})
		if err != nil || rows.Total != n {
			t.Errorf("%d of %d calls have an outcome, %v", rows.Total, n, err)
		}
		for _, row := range rows.Items {
			if !want[row.ID] || row.ArgumentsDigest != fmt.Sprintf("%x", sha256.Sum256([]byte("{}"))) {
				t.Errorf("%+v", row)
			}
		}
	}
}
