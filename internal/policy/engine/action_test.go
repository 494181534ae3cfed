package engine

import (
	"strings"
	"testing"
)

func TestParseAction(t *testing.T) {
	long := strings.Repeat("a", MaxToolName)
	tests := []struct {
		name, text string
		want       Action // zero: refused
	}{
		{"everything", "*", Action{Kind: Any}},
		{"tool", "tools/call:create_issue", Action{Kind: ToolsCall, Name: "create_issue"}},
		{"all characters", "tools/call:aZ09_./-", Action{Kind: ToolsCall, Name: "aZ09_./-"}},
		{"tool with approval", "tools/call:x:approve", Action{Kind: ToolsCall, Name: "x", Approve: true}},
		{"prefix", "tools/call:get_*", Action{Kind: ToolsCall, Name: "get_", Prefix: true}},
		{"prefix with approval", "tools/call:get_*:approve", Action{Kind: ToolsCall, Name: "get_", Prefix: true, Approve: true}},
		{"M07 all tools", "tools/call:*", Action{Kind: ToolsCall, Prefix: true}},
		{"all tools with approval", "tools/call:*:approve", Action{Kind: ToolsCall, Prefix: true, Approve: true}},
		{"M07 a tool named approve", "tools/call:approve", Action{Kind: ToolsCall, Name: "approve"}},
		{"longest name", "tools/call:" + long, Action{Kind: ToolsCall, Name: long}},
		{"longest prefix", "tools/call:" + long + "*", Action{Kind: ToolsCall, Name: long, Prefix: true}},
		{"resource", "resources/read:file:///a/b", Action{Kind: ResourcesRead, Name: "file:///a/b"}},
		{"resources", "resources/read:file:///a/*", Action{Kind: ResourcesRead, Name: "file:///a/", Prefix: true}},
		{"all resources", "resources/read:*", Action{Kind: ResourcesRead, Prefix: true}},
		{"resource beyond ASCII", "resources/read:file:///é", Action{Kind: ResourcesRead, Name: "file:///é"}},
		{"prompt", "prompts/get:code:review", Action{Kind: PromptsGet, Name: "code:review"}},
		{"stream", "sse/stream", Action{Kind: SSEStream}},
		{"list of tools", "tools/list", Action{Kind: ToolsList}},
		{"list of resources", "resources/list", Action{Kind: ResourcesList}},
		{"list of prompts", "prompts/list", Action{Kind: PromptsList}},

		{"a tool that is named approve, with approval", "tools/call:approve:approve", Action{Kind: ToolsCall, Name: "approve", Approve: true}},
		{"M07 doubled suffix", "tools/call:x:approve:approve", Action{}},
		{"M07 suffix of nothing", "tools/call::approve", Action{}},
		{"M07 suffix in the middle", "tools/call:x:approve:y", Action{}},
		{"M07 suffix in capitals", "tools/call:x:APPROVE", Action{}},
		{"M07 blank before the name", "tools/call: x", Action{}},
		{"blank after the name", "tools/call:x ", Action{}},
		{"blank before the suffix", "tools/call:x :approve", Action{}},
		{"blank after the suffix", "tools/call:x:approve ", Action{}},
		{"another suffix", "tools/call:x:deny", Action{}},
		{"colon at the end", "tools/call:x:", Action{}},
		{"no name", "tools/call:", Action{}},
		{"no colon", "tools/call", Action{}},
		{"star inside", "tools/call:a*b", Action{}},
		{"two stars", "tools/call:a**", Action{}},
		{"star first", "tools/call:*a", Action{}},
		{"star after the suffix", "tools/call:x:approve*", Action{}},
		{"name too long", "tools/call:" + long + "a", Action{}},
		{"letter beyond ASCII", "tools/call:é", Action{}},
		{"look-alike", "tools/call:х", Action{}},
		{"NUL", "tools/call:x\x00", Action{}},
		{"capitals", "Tools/call:x", Action{}},
		{"blank first", " tools/call:x", Action{}},
		{"empty", "", Action{}},
		{"two stars alone", "**", Action{}},
		{"everything with approval", "*:approve", Action{}},
		{"stream with approval", "sse/stream:approve", Action{}},
		{"stream with a name", "sse/stream:x", Action{}},
		{"list with a name", "tools/list:x", Action{}},
		{"resource with approval", "resources/read:x:approve", Action{}},
		{"prompt with approval", "prompts/get:x:approve", Action{}},
		{"resource without pattern", "resources/read:", Action{}},
		{"resource with a blank", "resources/read:a b", Action{}},
		{"resource with a star inside", "resources/read:a*b", Action{}},
		{"resource with a line end", "resources/read:a\n", Action{}},
		{"resource turned around", "resources/read:a\u202eb", Action{}},
		{"resource of no width", "resources/read:a\u200bb", Action{}},
		{"resource of bad UTF-8", "resources/read:\xff", Action{}},
		{"pattern too long", "resources/read:" + strings.Repeat("a", MaxPattern+1), Action{}},
		{"another method", "tools/get:x", Action{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := ParseAction(test.text)
			if got != test.want || (err != nil) != (test.want == Action{}) {
				t.Fatalf("ParseAction(%q) = %+v, %v; want %+v", test.text, got, err, test.want)
			}
			if err == nil && got.String() != test.text {
				t.Errorf("String() = %q, want %q", got, test.text)
			}
		})
	}
	if _, err := ParseAction("prompts/get:" + strings.Repeat("é", MaxPattern)); err != nil {
		t.Errorf("a pattern of the longest length, in characters: %v", err)
	}
}

func TestAsksForApproval(t *testing.T) {
	for action, want := range map[string]bool{"tools/call:x:approve": true, "tools/call:*:approve": true, "tools/call:x": false, "tools/call:approve": false, "tools/call:approve:approve": true, "prompts/get:x:approve": false, "*": false} {
		if got := AsksForApproval(action); got != want {
			t.Errorf("%s: %v", action, got)
		}
	}
}

// TestParseCall checks that a call names one thing, and that words with a meaning in rules have none in calls.
func TestParseCall(t *testing.T) {
	type call struct {
		kind Kind
		name string
	}
	for text, want := range map[string]call{
		"sse/stream": {SSEStream, ""}, "tools/call:x": {ToolsCall, "x"}, "tools/call:approve": {ToolsCall, "approve"}, "resources/read:a*": {ResourcesRead, "a*"},
		"prompts/get:x:approve": {PromptsGet, "x:approve"},
		"":                      {}, "sse/stream:x": {}, "*": {}, "tools/list": {}, "tools/call:": {}, "resources/read:": {}, "prompts/get:": {},
	} {
		if kind, name, err := ParseCall(text); (call{kind, name}) != want || (err != nil) != (want == call{}) {
			t.Errorf("%q is %v %q: %v", text, kind, name, err)
		}
	}
	for text, want := range map[string]string{"tools/call:x:approve": "leave it out", "tools/call:x*": "a pattern of many", "tools/call:a*b": "at the end only", "tools/call:a b": "is made of", "tools/call:": "names nothing"} {
		if _, _, err := ParseCall(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestM07NamesThatNoGrantReaches checks that no policy can grant a tool that is named like the end of an action.
func TestM07NamesThatNoGrantReaches(t *testing.T) {
	s := compile(t, active(grant("all", "*"), grant("tools", "tools/call:*"), grant("x", "tools/call:x", "tools/call:x:approve")))
	v := s.View(t.Context(), sales)
	for _, name := range []string{"x:approve", "x:approve:approve", ":approve", "x y", "", "x*", "*", "é", "x\n", strings.Repeat("a", MaxToolName+1)} {
		d := s.Decide(t.Context(), tool(name, ""))
		if d.Effect != Deny || !d.Hidden || v.Tool(name) {
			t.Errorf("tool %q: %+v, shown %v", name, d, v.Tool(name))
		}
	}
}

func FuzzParseAction(f *testing.F) {
	for _, s := range []string{"*", "tools/call:x:approve", "tools/call:x:approve:approve", "tools/call:approve:approve", "tools/call:get_*", "resources/read:a*", "sse/stream", "prompts/get:x", "tools/list"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAction(s)
		if err != nil {
			return
		}
		if a.String() != s {
			t.Fatalf("%q reads as %+v, which is written %q", s, a, a)
		}
		if a.Kind == ToolsCall && a.Name != "" && !ToolName(a.Name) {
			t.Fatalf("%q grants a name that cannot be called", s)
		}
		// The tool may be named approve.
		if a.Approve && (a.Kind != ToolsCall || !strings.HasSuffix(s, approveSuffix) || strings.Count(strings.TrimPrefix(s, kindWords[ToolsCall]+":"), approveSuffix) != 1) {
			t.Fatalf("%q asks", s)
		}
	})
}
