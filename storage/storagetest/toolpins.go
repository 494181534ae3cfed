package storagetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// tool returns an observed tool whose definition spells its hash.
func tool(name, hash string) storage.ObservedTool {
	return storage.ObservedTool{Name: name, Hash: hash, Definition: json.RawMessage(fmt.Sprintf("{ %q : %q }", name, hash))}
}

func (b *bundle) pins(t *testing.T) []storage.ToolPin {
	t.Helper()
	pins, err := b.ToolPins(t.Context(), b.orgA, b.serverA.ID)
	noError(t, err)
	return pins
}

func testToolPins(t *testing.T, b *bundle) {
	ctx := t.Context()
	var told atomic.Int32
	defer b.OnChange(func(string) { told.Add(1) })()
	observe := func(at time.Duration, tools ...storage.ObservedTool) []storage.ToolPin {
		t.Helper()
		changed, err := b.ObserveTools(ctx, b.orgA, b.serverA.ID, tools, start.Add(at))
		noError(t, err)
		return changed
	}
	pinned := func(o storage.ObservedTool) storage.ToolPin {
		return storage.ToolPin{OrganizationID: b.orgA, ServerID: b.serverA.ID, Name: o.Name, Hash: o.Hash, Definition: o.Definition,
			SeenHash: o.Hash, SeenDefinition: o.Definition, FirstSeenAt: start}
	}
	equal(t, b.pins(t), nil)
	equal(t, observe(7, tool("b", "1"), tool("a", "1")), nil) // new ones are pinned, not changed
	a, other := pinned(tool("a", "1")), pinned(tool("b", "1"))
	equal(t, b.pins(t), []storage.ToolPin{a, other})
	equal(t, told.Load(), 1)
	equal(t, observe(time.Minute, tool("a", "1")), nil) // unchanged tools cost nothing, missing ones stay
	equal(t, observe(time.Minute), nil)
	equal(t, told.Load(), 1)

	// M13: another definition is noted once, and the pin stays.
	a.SeenHash, a.SeenDefinition, a.ChangedAt = "2", tool("a", "2").Definition, start.Add(time.Hour)
	equal(t, observe(time.Hour, tool("a", "2"), tool("b", "1")), []storage.ToolPin{a})
	equal(t, a.Changed(), true)
	equal(t, observe(2*time.Hour, tool("a", "2")), nil)
	equal(t, b.pins(t), []storage.ToolPin{a, other})
	equal(t, told.Load(), 2)

	// A change back is a change too.
	a.SeenHash, a.SeenDefinition, a.ChangedAt = "1", tool("a", "1").Definition, start.Add(3*time.Hour)
	equal(t, observe(3*time.Hour, tool("a", "1")), []storage.ToolPin{a})
	equal(t, a.Changed(), false)

	// For a name that is listed twice, the wrong definition counts, in either order.
	a.SeenHash, a.SeenDefinition, a.ChangedAt = "3", tool("a", "3").Definition, start.Add(4*time.Hour)
	equal(t, observe(4*time.Hour, tool("a", "1"), tool("a", "3")), []storage.ToolPin{a})
	equal(t, observe(5*time.Hour, tool("a", "3"), tool("a", "1")), nil)
	twice := pinned(tool("c", "1"))
	twice.SeenHash, twice.SeenDefinition, twice.FirstSeenAt, twice.ChangedAt = "2", tool("c", "2").Definition, start.Add(time.Hour), start.Add(time.Hour)
	equal(t, observe(time.Hour, tool("c", "1"), tool("c", "2")), []storage.ToolPin{twice})
	equal(t, b.pins(t), []storage.ToolPin{a, other, twice})

	// Accepting pins the definition that was examined.
	for _, wrong := range []string{"1", "2", ""} {
		_, err := b.AcceptTools(ctx, b.orgA, []storage.ToolAcceptance{{ServerID: b.serverA.ID, Name: "b", Hash: "1"}, {ServerID: b.serverA.ID, Name: "a", Hash: wrong}}, b.userA1, start)
		wantIndex(t, err, 1)
		wantConflict(t, err, "hash")
	}
	for _, unknown := range [][3]string{{b.orgA, b.serverA.ID, "z"}, {b.orgA, b.unknown, "a"}, {b.orgB, b.serverA.ID, "a"}, {b.orgB, b.serverB.ID, "a"}} {
		_, err := b.AcceptTools(ctx, unknown[0], []storage.ToolAcceptance{{ServerID: unknown[1], Name: unknown[2], Hash: "3"}}, b.userA1, start)
		wantIndex(t, err, 0)
		wantError(t, err, storage.ErrNotFound)
	}
	equal(t, b.pins(t), []storage.ToolPin{a, other, twice}) // all or none
	both := []storage.ToolAcceptance{{ServerID: b.serverA.ID, Name: "b", Hash: "1"}, {ServerID: b.serverA.ID, Name: "a", Hash: "3"}}
	accepted, err := b.AcceptTools(ctx, b.orgA, both, b.userA1, start.Add(6*time.Hour+7))
	noError(t, err)
	a.Hash, a.Definition, a.AcceptedAt, a.AcceptedBy = "3", tool("a", "3").Definition, start.Add(6*time.Hour), b.userA1
	other.AcceptedAt, other.AcceptedBy = a.AcceptedAt, a.AcceptedBy
	equal(t, accepted, []storage.ToolPin{other, a})
	equal(t, b.pins(t), []storage.ToolPin{a, other, twice})

	for _, server := range []string{b.serverB.ID, b.unknown} {
		pins, err := b.ToolPins(ctx, b.orgA, server)
		noError(t, err)
		equal(t, len(pins), 0)
		_, err = b.ObserveTools(ctx, b.orgA, server, []storage.ObservedTool{tool("a", "1")}, start)
		wantError(t, err, storage.ErrNotFound)
	}

	// O15: a server of the same id starts without pins.
	_, err = b.DeleteServer(ctx, b.orgA, b.serverA.ID, "", start)
	noError(t, err)
	noError(t, b.CreateServer(ctx, b.serverA))
	equal(t, b.pins(t), nil)
}

// wantIndex checks which of several tools a write was refused for.
func wantIndex(t *testing.T, err error, index int) {
	t.Helper()
	var of *storage.ToolError
	if !errors.As(err, &of) || of.Index != index {
		t.Errorf("error %v, want one about tool %d", err, index)
	}
}

// testTools checks the list of all servers' tools: its order, its states, and that pages by key leave out nothing.
func testTools(t *testing.T, b *bundle) {
	ctx := t.Context()
	second := b.newServer(b.orgA, "Second", "second")
	noError(t, b.CreateServer(ctx, second))
	servers := []storage.Server{b.serverA, second}
	slices.SortFunc(servers, func(a, b storage.Server) int { return strings.Compare(a.ID, b.ID) })
	observe := func(server, hash string, names ...string) {
		t.Helper()
		var tools []storage.ObservedTool
		for _, name := range names {
			tools = append(tools, tool(name, hash))
		}
		_, err := b.ObserveTools(ctx, b.orgA, server, tools, start)
		noError(t, err)
	}
	var all []string
	for _, s := range servers {
		observe(s.ID, "1", "accepted", "changed", "new")
		observe(s.ID, "2", "changed")
		_, err := b.AcceptTools(ctx, b.orgA, []storage.ToolAcceptance{{ServerID: s.ID, Name: "accepted", Hash: "1"}}, b.userA1, start)
		noError(t, err)
		all = append(all, s.Slug+" accepted", s.Slug+" changed", s.Slug+" new")
	}
	_, err := b.ObserveTools(ctx, b.orgB, b.serverB.ID, []storage.ObservedTool{tool("foreign", "1")}, start)
	noError(t, err)
	for limit := 1; limit <= 7; limit++ {
		for state, want := range map[storage.ToolState][]string{
			"": all, storage.ToolNew: {all[2], all[5]}, storage.ToolChanged: {all[1], all[4]}, "other": nil,
		} {
			for _, of := range []storage.ToolFilter{{}, {ServerID: servers[1].ID}, {ServerID: b.serverB.ID}, {ServerID: b.unknown}} {
				of.OrganizationID, of.State, of.Limit = b.orgA, state, limit
				var got []string
				for {
					page, err := b.Tools(ctx, of)
					noError(t, err)
					for _, one := range page {
						got = append(got, one.Slug+" "+one.Name)
						of.After = storage.ToolPlace{ServerID: one.ServerID, Name: one.Name}
					}
					if len(page) < limit {
						break
					}
				}
				wanted := want
				switch of.ServerID {
				case "":
				case servers[1].ID:
					wanted = want[len(want)/2:]
				default:
					wanted = nil
				}
				if !slices.Equal(got, wanted) {
					t.Errorf("limit %d, state %q, server %q: %q, want %q", limit, state, of.ServerID, got, wanted)
				}
			}
		}
	}
}

// testToolPinRace checks that concurrent first sights make one pin, and that the others differ from it.
func testToolPinRace(t *testing.T, b *bundle) {
	var changed atomic.Int32
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			now, err := b.ObserveTools(t.Context(), b.orgA, b.serverA.ID, []storage.ObservedTool{tool("a", fmt.Sprint(i))}, start)
			if err != nil {
				t.Error(err)
			}
			changed.Add(int32(len(now)))
		})
	}
	all.Wait()
	equal(t, changed.Load(), 15)
	equal(t, len(b.pins(t)), 1)
}

// testToolPinFlood checks for many tools at once what holds for one: all are pinned, once, and a changed one (M13) is
// reported among all the others, old and new.
func testToolPinFlood(t *testing.T, b *bundle) {
	observe := func(at time.Duration, tools []storage.ObservedTool) []storage.ToolPin {
		t.Helper()
		changed, err := b.ObserveTools(t.Context(), b.orgA, b.serverA.ID, tools, start.Add(at))
		noError(t, err)
		return changed
	}
	const many = 1000
	tools := make([]storage.ObservedTool, 0, many)
	for i := range many {
		tools = append(tools, tool(fmt.Sprintf("tool%04d", i), "1"))
	}
	equal(t, observe(0, tools[:many/2]), nil)
	equal(t, observe(time.Hour, tools), nil)
	equal(t, observe(time.Hour, tools), nil)
	pins := b.pins(t)
	equal(t, len(pins), many)
	for i, p := range pins {
		seen := start
		if i >= many/2 {
			seen = start.Add(time.Hour)
		}
		equal(t, []any{p.Name, p.Hash, p.SeenHash, p.FirstSeenAt, p.Changed()}, []any{tools[i].Name, "1", "1", seen, false})
	}
	tools[many/4] = tool(tools[many/4].Name, "2")
	changed := observe(2*time.Hour, append(tools, tool("tool9999", "1")))
	equal(t, len(changed), 1)
	equal(t, []any{changed[0].Name, changed[0].Hash, changed[0].SeenHash}, []any{tools[many/4].Name, "1", "2"})
	pins = b.pins(t)
	equal(t, len(pins), many+1)
	for i, p := range pins {
		equal(t, p.Changed(), i == many/4)
	}
}
