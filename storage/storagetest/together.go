package storagetest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// testTogether checks that several writes are one: they see each other, and all of them are there at the end or none.
func testTogether(t *testing.T, b *bundle) {
	var changes []string
	defer b.OnChange(func(organization string) { changes = append(changes, organization) })()
	first, second := b.newPolicy(b.orgA, "first"), b.newPolicy(b.orgA, "second")
	write := func(ctx context.Context, after error) error {
		return b.Together(ctx, b.orgA, func(ctx context.Context) error {
			for _, p := range []storage.Policy{first, second} {
				if _, err := b.CreatePolicy(ctx, p); err != nil {
					return err
				}
			}
			seen, err := b.Policies(ctx, storage.PolicyFilter{OrganizationID: b.orgA})
			if err != nil {
				return err
			}
			if len(seen.Items) != 2 {
				t.Errorf("the transaction sees %d policies", len(seen.Items))
			}
			if a := storage.AuditOf(ctx); a != nil {
				a.Entries = append(a.Entries, storage.AuditEntry{ID: newID(), At: start, Kind: storage.AuditAdmin, Event: "more", Detail: map[string]any{}})
			}
			return after
		})
	}
	none := func() {
		t.Helper()
		page, err := b.Policies(t.Context(), storage.PolicyFilter{OrganizationID: b.orgA})
		noError(t, err)
		if len(page.Items) != 0 || len(changes) != 0 {
			t.Fatalf("a failed transaction left %d policies, changes %v", len(page.Items), changes)
		}
	}
	ctx, _ := b.audited(t, b.orgA, "whole")
	refused := errors.New("refused")
	if err := write(ctx, refused); !errors.Is(err, refused) {
		t.Fatal(err)
	}
	none()
	second.Name = first.Name
	if err := write(ctx, nil); !errors.Is(err, storage.ErrConflict) {
		t.Fatalf("a conflict is %v", err)
	}
	none()
	if got := b.chain(t, b.orgA); len(got) != 0 {
		t.Fatalf("failed transactions recorded %v", got)
	}
	second.Name = "second"
	ctx, _ = b.audited(t, b.orgA, "whole")
	noError(t, write(ctx, nil))
	if !slices.Equal(changes, []string{b.orgA}) {
		t.Errorf("told of %v", changes)
	}
	if got := b.chain(t, b.orgA); !slices.Equal(got, []string{"whole", "more"}) {
		t.Errorf("recorded %v", got)
	}
}
