package metering

import (
	"encoding/json"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// TestPoison checks that usage that the store cannot keep does not hold up other usage, and is saved where operators
// find it.
func TestPoison(t *testing.T) {
	for _, where := range []string{"a directory", "memory"} {
		t.Run(where, func(t *testing.T) {
			store, dir := newMemory(), ""
			if where == "a directory" {
				dir = t.TempDir()
			}
			var log strings.Builder
			m, err := New(Options{Store: store, Epochs: store.epochs, Dir: dir, Log: func() *slog.Logger { return slog.New(slog.NewTextHandler(&log, nil)) }})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(m.Close)
			d := &desk{Meter: m, t: t, store: store, clock: &clock{t: noon}}
			for _, who := range []string{acme, "neighbour"} {
				for _, model := range []string{"m", poison} {
					c := call(7)
					c.Organization, c.Subject.Model = who, model
					if who == acme || model != poison {
						asReserved(d.reserve(c))
					}
				}
			}
			d.flush()
			d.use(1) // the queue goes on
			d.flush()
			if n := store.total(); n.Requests != 3 {
				t.Errorf("stored %+v", n)
			}
			if s := d.Stats(); s.Aside != 1 || s.Rows != 0 || s.Failures != 0 {
				t.Errorf("%+v", s)
			}
			if text := log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "organizations=[acme]") || strings.Contains(text, "alice") {
				t.Errorf("log: %s", text)
			}
			if dir == "" {
				return
			}
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil || len(files) != 1 || !strings.HasSuffix(files[0], refusedSuffix) {
				t.Fatalf("%v, %v", files, err)
			}
			content, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			var aside storage.UsageRefused
			if err := json.Unmarshal(content, &aside); err != nil || len(aside.Usage) != 1 || aside.Usage[0].Model != poison || aside.Usage[0].UserID != "alice" {
				t.Errorf("%s: %v", content, err)
			}
		})
	}
}

// TestReservedStaysANumber checks that the sum of running calls cannot overflow, and that all of it is given back.
func TestReservedStaysANumber(t *testing.T) {
	store := newMemory()
	store.put(storage.Budget{ID: "b", OrganizationID: acme, Name: "b", Scope: storage.Scope{Type: storage.ScopeOrganization}, Period: storage.BudgetDay, Amount: 1, Enabled: true})
	d := newDesk(t, store)
	dear, err := Shipped().With([]byte(`{"currency": "EUR", "models": [{"kind": "openai", "model": "m", "input": "999999", "output": 0}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var holds []*Hold
	counted := func() (c counter) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, c := range d.ledgers[acme].counters {
			return *c
		}
		return c
	}
	for range math.MaxInt64/maxCost + 10 {
		h, refused, err := d.Reserve(t.Context(), call(maxTokens), dear)
		if err != nil || refused != nil {
			t.Fatalf("%+v, %v", refused, err)
		}
		if c := counted(); c.reserved < 0 {
			t.Fatalf("after %d calls %d is set aside", len(holds), c.reserved)
		}
		holds = append(holds, h)
	}
	if c := counted(); c.reserved != math.MaxInt64 {
		t.Errorf("%d is set aside", c.reserved)
	}
	for _, h := range holds {
		asReserved(h)
	}
	if c := counted(); c.reserved != 0 || c.holds != 0 || c.spent != math.MaxInt64 {
		t.Errorf("%+v", c)
	}
}
