package pinning

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/mcp/toolpin"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
)

// pinStore is a store that fails on request, and counts the tools that are written at once.
type pinStore struct {
	storage.Store
	t      *testing.T
	writes int
	fails  int // the write that fails, counted from 1; 0: none
	// elsewhere writes before the next write does, as another node would; nil: none does.
	elsewhere func()
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
	if write := s.elsewhere; write != nil {
		s.elsewhere = nil
		write()
	}
	return s.Store.ObserveTools(ctx, organization, server, tools, now)
}

// listedTool is an entry of a list.
type listedTool struct{ name, definition string }

func described(name, description string) listedTool {
	return listedTool{name, fmt.Sprintf(`{"name":%q,"description":%q}`, name, description)}
}

// pinned holds a server's tools over a real store.
type pinned struct {
	*Tools
	store *pinStore
	// events are recorded; unrecorded is the error of recording, nil for none.
	events     []storage.AuditEntry
	unrecorded error
	now        time.Time
	// closing reports that the store is closing; held counts the holds on it.
	closing bool
	held    sync.WaitGroup
}

const organization = "0192f0c1-5bd2-7000-8000-0000000000aa"

func newPinned(t *testing.T, enforce bool) *pinned {
	t.Helper()
	opened := sqlitetest.Open(t)
	epochs := new(cache.Epochs)
	memory, err := NewMemory(epochs)
	if err != nil {
		t.Fatal(err)
	}
	unsubscribe := opened.OnChange(epochs.Bump)
	p := &pinned{store: &pinStore{Store: opened, t: t}, now: start}
	t.Cleanup(func() {
		p.held.Wait()
		unsubscribe()
		memory.Close()
	})
	if _, err := opened.ResolveOrganization(t.Context(), storage.OrganizationClaim{Issuer: "https://issuer.example", ID: organization}, start); err != nil {
		t.Fatal(err)
	}
	entry := storage.DirectoryEntry{ID: "entry", OrganizationID: organization, Name: "n", Slug: "n", URL: "https://upstream.example/mcp",
		Protocol: storage.ProtocolMCP, Source: storage.SourceCustom, Provider: storage.ProviderNone}
	server := storage.Server{ID: "server", OrganizationID: organization, Name: "n", Slug: "n", DirectoryID: entry.ID, Status: storage.ServerActive}
	if err := errors.Join(opened.CreateDirectoryEntry(t.Context(), entry), opened.CreateServer(t.Context(), server)); err != nil {
		t.Fatal(err)
	}
	pinner := New(Options{
		Memory: memory, Store: p.store, Enforce: enforce, Now: func() time.Time { return p.now },
		Record: func(_ context.Context, of string, e storage.AuditEntry) error {
			if of != organization {
				t.Errorf("recorded for %q", of)
			}
			if p.unrecorded == nil {
				p.events = append(p.events, e)
			}
			return p.unrecorded
		},
		Hold: func() (release func(), ok bool) {
			if p.closing {
				return nil, false
			}
			p.held.Add(1)
			return p.held.Done, true
		},
	})
	p.Tools = pinner.Of(&server)
	return p
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

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
	p := newPinned(t, true)
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
	p := newPinned(t, true)
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

// TestPinnedInBackground checks that tools are noted although nothing is withheld, after the list was passed on.
func TestPinnedInBackground(t *testing.T) {
	p := newPinned(t, false)
	both := []listedTool{described("pay", "pays"), described("read", "reads")}
	if shown, err := p.list(t, both); err != nil || len(shown) != 2 {
		t.Fatalf("%q, %v", shown, err)
	}
	p.held.Wait()
	if pins := p.stored(t); len(pins) != 2 {
		t.Fatalf("%d are kept", len(pins))
	}
	shown, err := p.list(t, []listedTool{described("pay", "pays everybody"), both[1]})
	if err != nil || len(shown) != 2 {
		t.Errorf("%q, %v", shown, err)
	}
	p.held.Wait()
	if pin := p.stored(t)["pay"]; !pin.Changed() {
		t.Error("the change is not noted")
	}
	if len(p.events) != 1 || p.events[0].Tool != "pay" || p.events[0].Event != "tool.changed" || p.events[0].ServerID != "server" || p.events[0].Detail["withheld"] != false {
		t.Errorf("recorded %+v", p.events)
	}
	if is, err := p.Withheld(t.Context(), "pay"); err != nil || is {
		t.Errorf("withheld: %v, %v", is, err)
	}
}

// TestNothingIsPinnedOfAClosedStore checks that a list of a store that is closing is dropped, and one that comes later
// is written.
func TestNothingIsPinnedOfAClosedStore(t *testing.T) {
	p := newPinned(t, false)
	p.closing = true
	if _, err := p.list(t, flood(1)); err != nil {
		t.Fatal(err)
	}
	if p.closing = false; len(p.stored(t)) != 0 {
		t.Error("written")
	}
	if _, err := p.list(t, flood(2)); err != nil {
		t.Fatal(err)
	}
	if p.held.Wait(); len(p.stored(t)) != 2 {
		t.Errorf("%d are kept", len(p.stored(t)))
	}
}

// TestAttackUnrecordedChange checks that a change that the audit log does not take is not written: it is withheld, and
// seen again with the next list (M13).
func TestAttackUnrecordedChange(t *testing.T) {
	p := newPinned(t, true)
	if _, err := p.list(t, []listedTool{described("pay", "pays")}); err != nil {
		t.Fatal(err)
	}
	changed := []listedTool{described("pay", "pays everybody")}
	p.unrecorded = errors.New("the disk is full")
	if shown, err := p.list(t, changed); !errors.Is(err, p.unrecorded) {
		t.Errorf("%q, %v", shown, err)
	}
	if pin := p.stored(t)["pay"]; pin.Changed() {
		t.Error("written without a record")
	}
	if is, err := p.Withheld(t.Context(), "pay"); err != nil || !is {
		t.Errorf("withheld: %v, %v", is, err)
	}
	p.unrecorded = nil
	if shown, err := p.list(t, changed); err != nil || len(shown) != 0 {
		t.Errorf("%q, %v", shown, err)
	}
	if pin := p.stored(t)["pay"]; !pin.Changed() || len(p.events) != 1 || p.events[0].Detail["withheld"] != true {
		t.Errorf("changed %v, recorded %+v", pin.Changed(), p.events)
	}
}

// TestAttackTwoNodes checks that a tool that two nodes see for the first time, each with another definition, is withheld
// and recorded as changed (M13).
func TestAttackTwoNodes(t *testing.T) {
	p := newPinned(t, true)
	p.store.elsewhere = func() {
		tool, err := toolpin.Read("pay", []byte(described("pay", "pays").definition))
		if err != nil {
			t.Error(err)
		}
		seen := []storage.ObservedTool{{Name: "pay", Hash: tool.Hash, Definition: tool.Definition}}
		if _, err := p.store.Store.ObserveTools(t.Context(), organization, "server", seen, start); err != nil {
			t.Error(err)
		}
	}
	shown, err := p.list(t, []listedTool{described("read", "reads"), described("pay", "pays everybody")})
	if err != nil || len(shown) != 1 || shown[0] != "read" {
		t.Errorf("%q, %v", shown, err)
	}
	if is, err := p.Withheld(t.Context(), "pay"); err != nil || !is {
		t.Errorf("withheld: %v, %v", is, err)
	}
	pin := p.stored(t)["pay"]
	if len(p.events) != 1 || p.events[0].Tool != "pay" || p.events[0].Detail["pinned"] != pin.Hash || p.events[0].Detail["before"] != pin.Hash ||
		p.events[0].Detail["now"] != pin.SeenHash || p.events[0].Detail["withheld"] != true {
		t.Errorf("recorded %+v", p.events)
	}
}

// TestAttackChangeFlood checks that a list of many changed tools brings few records, which name the number of the others
// (M14).
func TestAttackChangeFlood(t *testing.T) {
	p := newPinned(t, true)
	if _, err := p.list(t, flood(maxChangeEvents+3)); err != nil {
		t.Fatal(err)
	}
	changed := flood(maxChangeEvents + 3)
	for i := range changed {
		changed[i] = described(changed[i].name, "other")
	}
	if shown, err := p.list(t, changed); err != nil || len(shown) != 0 {
		t.Fatalf("%q, %v", shown, err)
	}
	if len(p.events) != maxChangeEvents+1 || p.events[maxChangeEvents].Tool != "" || p.events[maxChangeEvents].Detail["others"] != 3 {
		t.Errorf("%d records, the last %+v", len(p.events), p.events[len(p.events)-1])
	}
}

// TestAttackManyLists checks that an upstream that always lists another tool brings few writes. Tools that were not
// pinned are withheld, and pinned later (M14).
func TestAttackManyLists(t *testing.T) {
	p := newPinned(t, true)
	const lists = 100
	var last listedTool
	for i := range lists {
		last = described(fmt.Sprint("tool", i), "x")
		if _, err := p.list(t, []listedTool{last}); err != nil {
			t.Fatal(err)
		}
	}
	if p.store.writes >= lists {
		t.Fatalf("%d writes for %d lists", p.store.writes, lists)
	}
	if shown, err := p.list(t, []listedTool{last}); err != nil || len(shown) != 0 {
		t.Errorf("%q, %v", shown, err)
	}
	// Of two definitions under one name, nobody knows which one a client uses.
	o, err := p.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range []listedTool{described("tool0", "x"), described("tool0", "y")} {
		o.Tool(tool.name, []byte(tool.definition))
	}
	if again, err := p.Note(t.Context(), o); err != nil || !again {
		t.Errorf("a list with two definitions is passed on: %v", err)
	}
	p.now = p.now.Add(time.Hour)
	if shown, err := p.list(t, []listedTool{last}); err != nil || len(shown) != 1 {
		t.Errorf("%q, %v", shown, err)
	}
}

// TestAttackChangeUnderAFlood checks that a changed tool is withheld although an upstream that lists ever more tools has
// used up its writes, and the memory for what is not written (M13).
func TestAttackChangeUnderAFlood(t *testing.T) {
	p := newPinned(t, true)
	list := func(tools ...listedTool) {
		t.Helper()
		if _, err := p.list(t, tools); err != nil {
			t.Fatal(err)
		}
	}
	list(described("pay", "pays"))
	for before, i := 0, 0; p.store.writes != before; i++ {
		before = p.store.writes
		list(described(fmt.Sprint("written", i), "x"))
	}
	for page := range 4 {
		many := flood(toolpin.MaxPins / 3)
		for i := range many {
			many[i] = described(fmt.Sprint("page", page, many[i].name), "x")
		}
		list(many...)
	}
	if is, err := p.Withheld(t.Context(), "another"); err != nil || !is {
		t.Fatalf("there is room: %v, %v", is, err)
	}
	list(described("pay", "pays everybody"))
	for name, want := range map[string]bool{"pay": true, "written0": false, "another": true} {
		if is, err := p.Withheld(t.Context(), name); err != nil || is != want {
			t.Errorf("%s is withheld: %v, %v", name, is, err)
		}
	}
}

// TestAttackTwoDefinitions checks that a list with two definitions under one name is read once more, also when there is
// nothing to write (M13).
func TestAttackTwoDefinitions(t *testing.T) {
	p := newPinned(t, true)
	for i := range 3 {
		o, err := p.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range []listedTool{described("pay", "pays"), described("pay", "pays everybody")} {
			o.Tool(tool.name, []byte(tool.definition))
		}
		if again, err := p.Note(t.Context(), o); err != nil || !again {
			t.Errorf("list %d is passed on as it is: %v", i, err)
		}
	}
}

// TestSameListAtOnce checks that a list is read once more when an equal one was written first: it was read by the pins of
// before.
func TestSameListAtOnce(t *testing.T) {
	p := newPinned(t, true)
	tool := described("read", "reads")
	var lists [2]*toolpin.Observation
	for i := range lists {
		var err error
		if lists[i], err = p.Observe(t.Context()); err != nil {
			t.Fatal(err)
		}
		if lists[i].Tool(tool.name, []byte(tool.definition)) {
			t.Error("shown before it was pinned")
		}
	}
	for i, o := range lists {
		if again, err := p.Note(t.Context(), o); err != nil || !again || p.store.writes != 1 {
			t.Errorf("list %d is passed on without its tool, after %d writes: %v", i, p.store.writes, err)
		}
	}
}

// TestPinsThatCannotBeRead checks that nothing is told of a tool whose pins the store cannot give.
func TestPinsThatCannotBeRead(t *testing.T) {
	p := newPinned(t, true)
	if err := p.store.Close(); err != nil {
		t.Fatal(err)
	}
	if is, err := p.Withheld(t.Context(), "pay"); err == nil {
		t.Errorf("withheld: %v", is)
	}
	if _, err := p.Observe(t.Context()); err == nil {
		t.Error("a list is read")
	}
	if hash, err := p.Definition(t.Context(), "pay"); err == nil {
		t.Errorf("defined by %q", hash)
	}
	if _, err := p.Mirrors(t.Context(), "pay"); err == nil {
		t.Error("its headers are known")
	}
}

// TestServersWithoutObservations checks that the memory of a process is bounded, and keeps unwritten observations before
// others.
func TestServersWithoutObservations(t *testing.T) {
	m := &Memory{watches: make(map[watchKey]*toolpin.Watch)}
	busy := m.watch(watchKey{organization, "busy"}, start)
	busy.Enqueue([]toolpin.Noted{{ObservedTool: storage.ObservedTool{Name: "a"}}})
	for i := range keptWatches {
		m.watch(watchKey{organization, fmt.Sprint(i)}, start)
	}
	if len(m.watches) > keptWatches {
		t.Errorf("%d are kept", len(m.watches))
	}
	if m.watch(watchKey{organization, "busy"}, start) != busy {
		t.Error("the observations of a list are lost")
	}
	of := func(organization string) *toolpin.Watch {
		return New(Options{Memory: m, Now: func() time.Time { return start }}).Of(&storage.Server{OrganizationID: organization, ID: "busy"}).watch
	}
	if of(organization) != busy || of("another") == busy {
		t.Error("shared by two organizations")
	}
}
