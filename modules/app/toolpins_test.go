package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/sqlite"
)

// pinStore is a store that fails on request, and counts the tools that are written at once.
type pinStore struct {
	storage.Store
	t      *testing.T
	writes int
	fails  int // the write that fails, counted from 1; 0: none
}

func (s *pinStore) ObserveTools(ctx context.Context, organization, server string, tools []storage.ObservedTool, now time.Time) ([]storage.ToolPin, error) {
	size := 0
	for _, tool := range tools {
		size += len(tool.Definition)
	}
	if len(tools) > pinnedAtOnce || len(tools) > 1 && size > pinnedBytes {
		s.t.Errorf("%d tools with %d bytes are written at once", len(tools), size)
	}
	if s.writes++; s.writes == s.fails {
		return nil, errors.New("the disk is full")
	}
	return s.Store.ObserveTools(ctx, organization, server, tools, now)
}

// listedTool is an entry of a list.
type listedTool struct{ name, definition string }

func described(name, description string) listedTool {
	return listedTool{name, fmt.Sprintf(`{"name":%q,"description":%q}`, name, description)}
}

// pinned holds a server's pins under `pin enforce`.
type pinned struct {
	*ToolPins
	store *pinStore
}

func newPinned(t *testing.T) *pinned {
	t.Helper()
	opened, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "durward.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store := &pinStore{Store: opened, t: t}
	r := &resources{store: store, epochs: new(cache.Epochs)}
	if err := r.makeCaches(); err != nil {
		t.Fatal(err)
	}
	unsubscribe := opened.OnChange(r.epochs.Bump)
	t.Cleanup(func() {
		unsubscribe()
		r.closeCaches()
		_ = opened.Close()
	})
	const organization = "0192f0c1-5bd2-7000-8000-0000000000aa"
	if _, err := opened.ResolveOrganization(t.Context(), storage.OrganizationClaim{Issuer: issuerID, ID: organization}, time.Now()); err != nil {
		t.Fatal(err)
	}
	entry := storage.DirectoryEntry{ID: "entry", OrganizationID: organization, Name: "n", Slug: "n", URL: "https://upstream.example/mcp",
		Protocol: storage.ProtocolMCP, Source: storage.SourceCustom, Provider: storage.ProviderNone}
	server := storage.Server{ID: "server", OrganizationID: organization, Name: "n", Slug: "n", DirectoryID: entry.ID, Status: storage.ServerActive}
	if err := errors.Join(opened.CreateDirectoryEntry(t.Context(), entry), opened.CreateServer(t.Context(), server)); err != nil {
		t.Fatal(err)
	}
	call := &Call{Core: &Core{Store: store, resources: r, pinning: PinRules{Enforce: true}}, Server: &server}
	return &pinned{call.ToolPins(), store}
}

// list lets a list pass as the filter of lists does, and returns the names that are shown.
func (p *pinned) list(t *testing.T, tools []listedTool) (shown []string, err error) {
	t.Helper()
	for again := false; ; {
		o, err := p.Observe(t.Context())
		if err != nil {
			return nil, err
		}
		shown = nil
		for _, tool := range tools {
			if o.Tool(tool.name, []byte(tool.definition)) {
				shown = append(shown, tool.name)
			}
		}
		if again {
			return shown, nil
		}
		if again, err = p.Note(t.Context(), o); err != nil || !again {
			return shown, err
		}
	}
}

func (p *pinned) stored(t *testing.T) map[string]storage.ToolPin {
	t.Helper()
	pins, err := p.store.ToolPins(t.Context(), p.server.OrganizationID, p.server.ID)
	if err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]storage.ToolPin, len(pins))
	for _, pin := range pins {
		byName[pin.Name] = pin
	}
	return byName
}

// flood returns a list of that many tools.
func flood(tools int) []listedTool {
	list := make([]listedTool, tools)
	for i := range list {
		list[i] = described(fmt.Sprint("tool", i), "x")
	}
	return list
}

// TestAttackPinFlood checks that a long list is pinned in portions, whole, and once (M14).
func TestAttackPinFlood(t *testing.T) {
	p := newPinned(t)
	list := flood(3*pinnedAtOnce + 1)
	for i := range 6 { // so many bytes that they are portions of their own
		list = append(list, described(fmt.Sprint("big", i), strings.Repeat("x", 200<<10)))
	}
	shown, err := p.list(t, list)
	if err != nil || len(shown) != len(list) || p.store.writes != 5 {
		t.Fatalf("%d of %d are shown after %d writes: %v", len(shown), len(list), p.store.writes, err)
	}
	if pins := p.stored(t); len(pins) != len(list) {
		t.Errorf("%d are kept", len(pins))
	}
	if shown, err := p.list(t, list); err != nil || len(shown) != len(list) || p.store.writes != 5 {
		t.Errorf("the same list again: %d are shown after %d writes: %v", len(shown), p.store.writes, err)
	}

	// M13: one that is another one is found among all the others, old and new.
	list = append(list[:700], append([]listedTool{described("tool700", "other")}, append(list[701:], described("new", "x"))...)...)
	if shown, err := p.list(t, list); err != nil || len(shown) != len(list)-1 {
		t.Errorf("%d of %d are shown: %v", len(shown), len(list), err)
	}
	for name, pin := range p.stored(t) {
		if pin.Changed() != (name == "tool700") {
			t.Errorf("%s changed: %v", name, pin.Changed())
		}
	}
}

// TestPinsAfterFailure checks that a tool that a failure keeps from being pinned is withheld, and pinned with the next
// list.
func TestPinsAfterFailure(t *testing.T) {
	p := newPinned(t)
	list := flood(2*pinnedAtOnce + 100)
	p.store.fails = 2
	if shown, err := p.list(t, list); err == nil {
		t.Errorf("%d tools are shown of a list that could not be pinned", len(shown))
	}
	if pins := p.stored(t); len(pins) != pinnedAtOnce {
		t.Errorf("%d are kept of the first portion", len(pins))
	}
	for name, want := range map[string]bool{"tool0": false, fmt.Sprint("tool", pinnedAtOnce): true, "never listed": false} {
		if is, err := p.Withheld(t.Context(), name); err != nil || is != want {
			t.Errorf("%s is withheld: %v, %v", name, is, err)
		}
	}
	if shown, err := p.list(t, list); err != nil || len(shown) != len(list) || p.store.writes != 4 {
		t.Errorf("%d of %d are shown after %d writes: %v", len(shown), len(list), p.store.writes, err)
	}
	for name, pin := range p.stored(t) {
		if pin.Changed() || !pin.ChangedAt.IsZero() {
			t.Errorf("%s has changed", name)
		}
	}
}
