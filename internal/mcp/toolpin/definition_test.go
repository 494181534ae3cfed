package toolpin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func hashOf(t testing.TB, entry string) string {
	t.Helper()
	tool, err := Read("x", []byte(entry))
	if err != nil {
		t.Fatalf("%s: %v", entry, err)
	}
	return tool.Hash
}

// TestRead checks that the spelling of a definition does not matter, and that any difference visible to a model makes
// another tool (M13).
func TestRead(t *testing.T) {
	const entry = `{"name":"a","title":"T","description":"d\né","inputSchema":{"type":"object","properties":{"n":{"maximum":1.0}}},"annotations":{"readOnlyHint":true}}`
	const want = `{"annotations":{"readOnlyHint":true},"description":"d\né","inputSchema":{"properties":{"n":{"maximum":1.0}},"type":"object"},"name":"a","title":"T"}`
	tool, err := Read("a", []byte(entry))
	if err != nil || tool.Name != "a" || string(tool.Definition) != want || len(tool.Hash) != 64 {
		t.Fatalf("%v %s %s", err, tool.Hash, tool.Definition)
	}
	for name, other := range map[string]string{
		"order and blanks":     `{ "annotations":{"readOnlyHint":true}, "inputSchema":{"properties":{"n":{"maximum":1.0}},"type":"object"},"description":"d\né","title":"T","name":"a" }`,
		"spelling of strings":  `{"n\u0061me":"\u0061","title":"T","description":"d\u000a\u00e9","inputSchema":{"type":"object","properties":{"n":{"maximum":1.0}}},"annotations":{"readOnlyHint":true}}`,
		"what no model is fed": strings.TrimSuffix(entry, "}") + `,"icons":[{"src":"https://x.example/1"}],"_meta":{"at":1},"execution":{}}`,
	} {
		if hashOf(t, other) != tool.Hash {
			t.Errorf("%s: another hash", name)
		}
	}
	for name, other := range map[string]string{
		"M13 description":    strings.Replace(entry, `"d\n`, `"D\n`, 1),
		"M13 title":          strings.Replace(entry, `"T"`, `"t"`, 1),
		"M13 no title":       strings.Replace(entry, `"title":"T",`, ``, 1),
		"M13 empty title":    strings.Replace(entry, `"T"`, `""`, 1),
		"M13 number lexeme":  strings.Replace(entry, `1.0`, `1`, 1),
		"M13 annotation":     strings.Replace(entry, `true`, `false`, 1),
		"M13 schema":         strings.Replace(entry, `"object"`, `"string"`, 1),
		"M13 output schema":  strings.Replace(entry, `"annotations"`, `"outputSchema"`, 1),
		"M13 another case":   strings.TrimSuffix(entry, "}") + `,"Description":"for readers that fold case"}`,
		"M13 another letter": strings.TrimSuffix(entry, "}") + `,"de` + "\u017f" + `cription":"s has a third form"}`,
		"M13 hidden":         strings.Replace(entry, `d\n`, "d\u200b\\n", 1),
	} {
		if hashOf(t, other) == tool.Hash {
			t.Errorf("%s: the same hash", name)
		}
	}
	if empty, err := Read("", []byte(`{}`)); err != nil || string(empty.Definition) != `{}` {
		t.Errorf("%v %s", err, empty.Definition)
	}
	for _, bad := range []string{``, `{`, `{"name":1,"name":2}`, `{"description":"` + "\xff" + `"}`} {
		if _, err := Read("a", []byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// TestNumbers checks that numbers are equal only when they are written in the same way.
func TestNumbers(t *testing.T) {
	seen := map[string]string{}
	for _, n := range []string{"9007199254740992", "9007199254740993", "1", "1.0", "1e0", "1E0", "10e-1", "-0", "0"} {
		h := hashOf(t, `{"inputSchema":{"maximum":`+n+`}}`)
		if seen[h] != "" {
			t.Errorf("%s is %s", n, seen[h])
		}
		seen[h] = n
	}
}

// entryOf writes members in the given order.
func entryOf(order []string, members map[string]any) string {
	var parts []string
	for _, name := range order {
		value, _ := json.Marshal(members[name])
		key, _ := json.Marshal(name)
		parts = append(parts, string(key)+":"+string(value))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// TestReadProperties checks that the order of members never matters, that a change of a pinned member always does, and
// that Read of its own result returns that result.
func TestReadProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.String().AsAny(), rapid.Int().AsAny(), rapid.Bool().AsAny(), rapid.SliceOf(rapid.String()).AsAny(),
			rapid.MapOf(rapid.String(), rapid.String()).AsAny())
		members := rapid.MapOfN(rapid.OneOf(rapid.SampledFrom(pinned[:]), rapid.StringMatching(`[a-z]{1,4}`)), value, 1, 10).Draw(t, "members")
		names := slices.Sorted(maps.Keys(members))
		before, err := Read("x", []byte(entryOf(names, members)))
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		if after, _ := Read("x", []byte(entryOf(names, members))); after.Hash != before.Hash {
			t.Errorf("%s\n%s", before.Definition, after.Definition)
		}
		if again, err := Read("x", before.Definition); err != nil || again.Hash != before.Hash {
			t.Errorf("%v %s", err, again.Definition)
		}
		changed := rapid.SampledFrom(names).Draw(t, "changed")
		members[changed] = []any{"changed", members[changed]}
		if after, _ := Read("x", []byte(entryOf(names, members))); (after.Hash != before.Hash) != isPinned(changed) {
			t.Errorf("%s changed: %s\n%s", changed, before.Definition, after.Definition)
		}
	})
}

func TestKept(t *testing.T) {
	for _, size := range []int{10, 1000, 5000, 1 << 20} {
		tool, err := Read("a", fmt.Appendf(nil, `{"description":"%s"}`, strings.Repeat("é\"", size)[:size&^3]))
		if err != nil {
			tool, err = Read("a", fmt.Appendf(nil, `{"description":"%s"}`, strings.Repeat("é\x7f", size/3)))
		}
		if err != nil {
			t.Fatal(err)
		}
		kept := tool.kept(4096)
		if len(kept) > 4096+64 || !json.Valid(kept) {
			t.Errorf("%d bytes: %d are kept: %q", len(tool.Definition), len(kept), kept)
		}
		text, whole, cut := beginning(kept)
		if cut != (len(tool.Definition) > 4096) || cut && (whole != len(tool.Definition) || !strings.HasPrefix(string(tool.Definition), text)) {
			t.Errorf("%v %d %q", cut, whole, text)
		}
		if shown := Text(kept); cut && !strings.Contains(shown, fmt.Sprintf("has %d bytes", whole)) {
			t.Errorf("%q", shown)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","description":"<IMPORTANT>\u202e","inputSchema":{"type":"object","properties":{"n":{"maximum":1.0e2}}}}`,
		`{"Name":"a","name":"b","DESCRIPTION":null,"annotations":[1,2,[{}]]}`, `{"de` + "\u017f" + `cription":"x"}`, `{}`, `{"name":"\ud83d\ude00"}`, `[`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, entry []byte) {
		if len(entry) == 0 || entry[0] != '{' {
			return
		}
		tool, err := Read("a", entry)
		if err != nil {
			return
		}
		if !json.Valid(tool.Definition) {
			t.Fatalf("%q became %q", entry, tool.Definition)
		}
		again, err := Read("a", tool.Definition)
		if err != nil || !bytes.Equal(again.Definition, tool.Definition) || again.Hash != tool.Hash {
			t.Errorf("%q became %q and that %q, %v", entry, tool.Definition, again.Definition, err)
		}
		kept := tool.kept(restDefinition)
		if len(kept) > 2*restDefinition || !json.Valid(kept) {
			t.Errorf("%q is kept as %q", entry, kept)
		}
		shown := Text(kept)
		if strings.ContainsFunc(shown, func(r rune) bool { return r == 0x202E || r >= 0xE0000 && r <= 0xE007F || r == 0x1B }) {
			t.Errorf("M14: %q is shown as %q", entry, shown)
		}
		Suspicious(kept)
		if Diff(shown, shown) != "" || Diff("", shown) == "" {
			t.Errorf("the difference of %q", shown)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	entry := []byte(`{"name":"create_issue","title":"Create an issue","description":"` + strings.Repeat("Creates an issue in the tracker. ", 10) +
		`","inputSchema":{"type":"object","properties":{"title":{"type":"string","description":"What it is about"},"priority":{"type":"integer","minimum":1,"maximum":5},"labels":{"type":"array","items":{"type":"string"}}},"required":["title"]},"annotations":{"readOnlyHint":false,"destructiveHint":true}}`)
	b.SetBytes(int64(len(entry)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read("create_issue", entry); err != nil {
			b.Fatal(err)
		}
	}
}
