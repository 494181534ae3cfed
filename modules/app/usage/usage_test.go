package usage

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/llm/metering"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
)

func TestPricesAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.json")
	for content, want := range map[string]string{
		`{"currency": "EUR", "models": []}`:            "",
		`{"currency": "EUR",` + "\n" + ` "models": 1}`: "prices {file." + path + "}: line 2, column 12: models must be a list",
		"": "does not resolve to anything",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		u, err := New(Options{Prices: "{file." + path + "}"})
		switch {
		case want == "" && (err != nil || u.prices.Currency() != "EUR"):
			t.Errorf("%s: %v", content, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", content, err, want)
		}
	}
	if _, err := New(Options{Prices: path}); err == nil {
		t.Error("a path that is no reference was taken")
	}
}

// TestUsageIsKept checks that the usage of a configuration's calls is in the store when it is read, and when the
// resources close.
func TestUsageIsKept(t *testing.T) {
	dir := t.TempDir()
	store := sqlitetest.Open(t)
	epochs := new(cache.Epochs)
	t.Cleanup(store.OnChange(epochs.Bump))
	book, err := Open(store, epochs, dir)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	organization, err := store.ResolveOrganization(t.Context(), storage.OrganizationClaim{
		Issuer: "https://id.example.test", Slug: "acme", DerivedID: "018f3c2e-0000-7000-8000-00000000000a",
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	b := storage.Budget{
		ID: "018f3c2e-0000-7000-8000-0000000000b0", OrganizationID: organization.ID, Name: "b", Scope: storage.Scope{Type: storage.ScopeOrganization},
		Period: storage.BudgetMonth, Amount: 30_000_000_000, AlertPercent: 50, HardStop: true, Enabled: true, CreatedAt: now, UpdatedAt: now,
	}
	if err := store.CreateBudget(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	u, err := New(Options{Book: book, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	u.Listen()
	call := metering.Call{Organization: organization.ID, Kind: "anthropic", Input: 1_000_000, Output: 1_000_000,
		Subject: limit.Subject{UserID: "u", Model: "claude-sonnet-4-5-20250929", Alias: "good"}}
	spend := func() {
		t.Helper()
		hold, refused, err := u.Reserve(t.Context(), call)
		if err != nil || refused != nil {
			t.Fatalf("%+v, %v", refused, err)
		}
		hold.Settle(metering.Tokens{Input: call.Input, Output: call.Output})
	}
	sum := func() (n storage.UsageCounts) {
		t.Helper()
		rows, err := store.Usage(t.Context(), storage.UsageFilter{OrganizationID: organization.ID}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			n = row.UsageCounts
		}
		return n
	}
	spend()
	u.Flush(t.Context())
	if n := sum(); n.Requests != 1 || n.Cost != 18_000_000_000 {
		t.Errorf("%+v", n)
	}
	if _, refused, err := u.Reserve(t.Context(), call); err != nil || refused == nil || refused.Budget.ID != b.ID {
		t.Errorf("%+v, %v", refused, err)
	}
	call.Output = 0
	spend()
	book.Close()
	if n := sum(); n.Requests != 2 || n.Cost != 21_000_000_000 {
		t.Errorf("%+v", n)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	var none *Usage
	if hold, refused, err := none.Reserve(t.Context(), call); hold != nil || refused != nil || err != nil {
		t.Error("a gateway without books refuses calls")
	}
	none.Flush(t.Context())
}
