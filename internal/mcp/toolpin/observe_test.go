package toolpin

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/storage"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// memory is a store of pins, as storage.ToolPins describes, with a watch for one server.
type memory struct {
	pins   map[string]storage.ToolPin
	watch  Watch
	now    time.Time
	writes int
	shown  [][2]string // of the last list
}

func newMemory() *memory { return &memory{pins: map[string]storage.ToolPin{}, now: start} }

func (m *memory) current() *Pins {
	var stored []storage.ToolPin
	for _, p := range m.pins {
		stored = append(stored, p)
	}
	return NewPins(stored)
}

func entry(name, description string) [2]string {
	return [2]string{name, fmt.Sprintf(`{"name":%q,"description":%q}`, name, description)}
}

// list passes a list as the gateway does and returns the shown names.
func (m *memory) list(enforce bool, entries ...[2]string) []string {
	for again := false; ; again = true {
		var shown []string
		m.shown = nil
		o := Observe(m.current(), &m.watch, enforce)
		for _, e := range entries {
			if o.Tool(e[0], []byte(e[1])) {
				shown = append(shown, e[0])
				m.shown = append(m.shown, e)
			}
		}
		if again {
			return shown
		}
		list := o.End(m.now)
		due := m.current().Due(list.Due)
		written := len(due) > 0 && m.watch.MayWrite(m.now)
		if written {
			m.write(due)
		}
		if !enforce || !written && !list.Torn {
			return shown
		}
	}
}

func (m *memory) write(due []Noted) {
	m.writes++
	for _, n := range due {
		p, known := m.pins[n.Name]
		if !known {
			p = storage.ToolPin{Name: n.Name, Hash: n.Hash, Definition: n.Definition, FirstSeenAt: m.now}
		} else {
			p.ChangedAt = m.now
		}
		p.SeenHash, p.SeenDefinition = n.Hash, n.Definition
		m.pins[n.Name] = p
	}
	m.watch.Written(due)
}

func (m *memory) accept(name string) {
	p := m.pins[name]
	p.Hash, p.Definition = p.SeenHash, p.SeenDefinition
	m.pins[name] = p
}

func (m *memory) want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("shown %q, want %q", got, want)
	}
}

// TestRugPullAtOnce covers M13: a tool that changes while an earlier list's version is being written counts as changed,
// and the audit log says so.
func TestRugPullAtOnce(t *testing.T) {
	m := newMemory()
	read := func(e [2]string) []Noted {
		o := Observe(m.current(), &m.watch, false)
		o.Tool(e[0], []byte(e[1]))
		return o.End(m.now).Due
	}
	first, second := read(entry("a", "1")), read(entry("a", "2"))
	due := m.current().Due(first)
	if len(due) != 1 || due[0].Change != nil {
		t.Fatalf("a new tool: %+v", due)
	}
	m.write(due)
	pinned := due[0].Hash
	if due = m.current().Due(second); len(due) != 1 || due[0].Change == nil || *due[0].Change != (Change{pinned, pinned, due[0].Hash}) {
		t.Errorf("a changed one: %+v", due)
	}
	m.write(due)
	if due = m.current().Due(second); len(due) != 0 {
		t.Errorf("what is written: %+v", due)
	}
}

// TestRugPull covers M13: only a changed tool is withheld, from lists and calls, until it is accepted.
func TestRugPull(t *testing.T) {
	m := newMemory()
	a, b, changed := entry("a", "1"), entry("b", "1"), entry("a", "2")
	m.want(t, m.list(true, a, b), "a", "b")
	if m.writes != 1 {
		t.Errorf("%d writes", m.writes)
	}
	m.want(t, m.list(true, b, a), "b", "a")
	before := m.watch.Definition(m.current(), "a")
	m.want(t, m.list(true, changed, b), "b")
	if now := m.watch.Definition(m.current(), "a"); now == before || m.writes != 2 {
		t.Errorf("the definition is %s as before, after %d writes", now, m.writes)
	}
	if !m.watch.Withheld(m.current(), "a") || m.watch.Withheld(m.current(), "b") || m.watch.Withheld(m.current(), "never listed") {
		t.Error("calls of the wrong tools are refused")
	}
	m.want(t, m.list(true, changed, b), "b")
	m.accept("a")
	m.want(t, m.list(true, changed, b), "a", "b")
	m.want(t, m.list(true, a, b), "b") // the former version now counts as another tool

	m = newMemory()
	m.want(t, m.list(false, a, b), "a", "b")
	m.want(t, m.list(false, changed, b), "a", "b")
	if !m.watch.Withheld(m.current(), "a") {
		t.Error("the change is not known")
	}
}

// TestReturn checks that a change stays recorded for a while after the pinned definition comes back, and then ends.
// Approvals know of the return at once.
func TestReturn(t *testing.T) {
	m := newMemory()
	a, changed := entry("a", "1"), entry("a", "2")
	m.list(true, a)
	first := m.watch.Definition(m.current(), "a")
	m.list(true, changed)
	m.now = m.now.Add(cooling - 1)
	m.want(t, m.list(true, a))
	if m.watch.Definition(m.current(), "a") != first || !m.watch.Withheld(m.current(), "a") || m.writes != 2 {
		t.Errorf("%d writes", m.writes)
	}
	m.now = m.now.Add(1)
	m.want(t, m.list(true, a), "a")
	if m.watch.Withheld(m.current(), "a") || m.writes != 3 {
		t.Errorf("%d writes", m.writes)
	}
}

// TestTwoDefinitions covers M13: of two definitions under one name neither is shown when one differs from the pin.
func TestTwoDefinitions(t *testing.T) {
	for _, order := range [][][2]string{{entry("a", "1"), entry("a", "2")}, {entry("a", "2"), entry("a", "1")}} {
		m := newMemory()
		m.want(t, m.list(true, entry("a", "1")), "a")
		m.want(t, m.list(true, order...))
		if !m.watch.Withheld(m.current(), "a") {
			t.Error("calls of a are not refused")
		}
		// The same must hold when no write is allowed.
		m = newMemory()
		m.list(true, entry("a", "1"))
		for m.watch.MayWrite(m.now) {
		}
		m.want(t, m.list(true, order...))
		if !m.watch.Withheld(m.current(), "a") {
			t.Error("calls of a are not refused")
		}
	}
	m := newMemory()
	m.want(t, m.list(true, entry("a", "1"), entry("a", "1")), "a", "a")
	m.want(t, m.list(true, entry("b", "1"), entry("b", "2"), entry("b", "1")))
	if !m.watch.Withheld(m.current(), "b") || len(m.pins) != 2 {
		t.Errorf("%v", m.pins)
	}
}

// TestHostileUpstream covers M14: the writes for an upstream that lists other tools, or other definitions, each time
// have a bounded rate. A tool that could not be written is not shown with enforce.
func TestHostileUpstream(t *testing.T) {
	for name, next := range map[string]func(i int) [2]string{
		"M14 new names":          func(i int) [2]string { return entry(fmt.Sprint("tool", i), "1") },
		"M14 new definitions":    func(i int) [2]string { return entry("a", fmt.Sprint(i)) },
		"M14 two definitions":    func(i int) [2]string { return entry("a", fmt.Sprint(i%2)) },
		"M14 a tool at a time":   func(i int) [2]string { return entry(fmt.Sprint("tool", i%100), fmt.Sprint(i/100)) },
		"M14 ever longer":        func(i int) [2]string { return entry(fmt.Sprint("tool", i), strings.Repeat("x", i*10)) },
		"M14 names beyond limit": func(i int) [2]string { return entry(strings.Repeat("x", MaxName)+fmt.Sprint(i), "1") },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			const lists = 1000
			for i := range lists {
				m.now = start.Add(time.Duration(i) * 10 * time.Millisecond)
				e := next(i)
				if shown := m.list(true, e); len(shown) > 0 && m.pins[e[0]].Hash == "" {
					t.Fatalf("%s is shown and not pinned", e[0])
				}
			}
			if limit := burst + int(10*time.Second/refill) + 1; m.writes > limit {
				t.Errorf("%d writes", m.writes)
			}
			if len(m.watch.latest) > MaxPins {
				t.Errorf("%d in memory", len(m.watch.latest))
			}
		})
	}
}

// TestBounds covers M14: lists, names and bytes are bounded.
func TestBounds(t *testing.T) {
	many := make([][2]string, MaxListed+10)
	for i := range many {
		many[i] = entry(fmt.Sprint("tool", i), "1")
	}
	m := newMemory()
	if shown := m.list(false, many...); len(shown) != MaxListed || len(m.pins) != MaxPins {
		t.Fatalf("%d shown, %d pinned", len(shown), len(m.pins))
	}
	beyond := entry("beyond", "1")
	m.want(t, m.list(false, beyond), "beyond")
	m.want(t, m.list(true, beyond, many[0]), "tool0")
	if len(m.pins) != MaxPins || !m.watch.Withheld(m.current(), "beyond") || m.watch.Withheld(m.current(), "tool0") {
		t.Errorf("%d pinned", len(m.pins))
	}
	for _, odd := range []string{strings.Repeat("n", MaxName+1), "a\x00b"} {
		m := newMemory()
		first := m.list(true, [2]string{odd, `{}`}, entry("plain", "1"))
		m.want(t, first, "plain")
		m.want(t, m.list(false, [2]string{odd, `{}`}), odd)
		if len(m.pins) != 1 || !m.watch.Withheld(m.current(), odd) {
			t.Errorf("%q is pinned", odd)
		}
	}

	m = newMemory()
	big := strings.Repeat("x", maxDefinition-100)
	for i := range 100 {
		m.now = m.now.Add(time.Minute)
		m.list(true, entry(fmt.Sprint("tool", i), big+fmt.Sprint(i)))
	}
	if size := m.current().size; len(m.pins) != 100 || size > maxKept+2*100*restDefinition {
		t.Errorf("%d pins with %d bytes", len(m.pins), size)
	}
}

// TestQueue checks that the queue of writes is bounded, and that only one worker writes at a time.
func TestQueue(t *testing.T) {
	var w Watch
	noted := func(name string, size int) Noted {
		return Noted{ObservedTool: storage.ObservedTool{Name: name, Definition: make([]byte, size)}}
	}
	if w.Enqueue(nil) {
		t.Error("there is nothing to begin with")
	}
	if !w.Enqueue([]Noted{noted("a", 1), noted("b", 1)}) || w.Enqueue([]Noted{noted("b", 2), noted("c", maxKept)}) {
		t.Error("one must begin")
	}
	due := w.Next()
	if len(due) != 2 || w.Idle(start) {
		t.Errorf("%d are due", len(due))
	}
	if w.Enqueue([]Noted{noted("c", maxKept)}) || len(w.Next()) != 1 || w.Next() != nil || !w.Idle(start) {
		t.Error("what came meanwhile belongs to who works")
	}
	if !w.Enqueue([]Noted{noted("d", 1)}) {
		t.Error("nobody begins anew")
	}
	w.Stop()
	if !w.Idle(start) {
		t.Error("it goes on")
	}
}

// TestShownIsPinned checks that with enforce a tool is shown, and a listed tool may be called, only if its present
// definition is the pinned one, whatever an upstream lists.
func TestShownIsPinned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMemory()
		for range rapid.IntRange(1, 40).Draw(t, "lists") {
			m.now = m.now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "seconds")) * time.Second)
			if rapid.IntRange(0, 9).Draw(t, "accept") == 0 {
				for name := range m.pins {
					m.accept(name)
					break
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "exhaust") == 0 {
				for m.watch.MayWrite(m.now) {
				}
			}
			var entries [][2]string
			for range rapid.IntRange(0, 5).Draw(t, "tools") {
				entries = append(entries, entry(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"), rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "text")))
			}
			m.list(true, entries...)
			for _, e := range entries {
				tool, _ := Read(e[0], []byte(e[1]))
				as := tool.Hash == m.pins[e[0]].Hash
				if slices.Contains(m.shown, e) && !as {
					t.Fatalf("%s is shown", e)
				}
				if !as && !m.watch.Withheld(m.current(), e[0]) {
					t.Fatalf("%s may be called", e)
				}
			}
		}
	})
}

func BenchmarkList(b *testing.B) {
	m := newMemory()
	entries := make([][2]string, 100)
	for i := range entries {
		entries[i] = entry(fmt.Sprint("tool", i), strings.Repeat("Does something. ", 50))
	}
	m.list(false, entries...)
	pins := m.current()
	text := make([][]byte, len(entries))
	for i := range entries {
		text[i] = []byte(entries[i][1])
	}
	b.ReportAllocs()
	for b.Loop() {
		o := Observe(pins, &m.watch, true)
		for i := range entries {
			if !o.Tool(entries[i][0], text[i]) {
				b.Fatal("withheld")
			}
		}
		o.End(m.now)
	}
}

// TestMirrors checks that the arguments that travel in headers are known at once from the last seen version, written or
// not.
func TestMirrors(t *testing.T) {
	schema := func(header string) [2]string {
		return [2]string{"a", `{"name":"a","inputSchema":{"properties":{"r":{"type":"string","\u0078-mcp-header":"` + header + `"}}}}`}
	}
	m := newMemory()
	want := func(header string, known bool) {
		t.Helper()
		got := m.watch.Mirrors(m.current(), "a")
		if got.Known != known || (header == "") != (len(got.Params) == 0) || header != "" && got.Params[0].Header != header {
			t.Errorf("%+v, want %q", got, header)
		}
	}
	want("", false)
	m.list(false, schema("X"))
	want("Mcp-Param-X", true)
	m.list(false, schema("Y"))
	want("Mcp-Param-Y", true)
	m.watch = Watch{} // another node, or a restart
	want("Mcp-Param-Y", true)
	o := Observe(m.current(), &m.watch, false) // not written yet
	o.Tool("a", []byte(entry("a", "x")[1]))
	o.End(m.now)
	want("", true)
	m.list(false, [2]string{"a", `{"name":"a","description":"` + strings.Repeat("x", maxDefinition) + `"}`})
	m.watch = Watch{}
	want("", false) // only its beginning is stored
}
