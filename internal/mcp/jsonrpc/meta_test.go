package jsonrpc

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/strictjson"
)

func TestSetMeta(t *testing.T) {
	members := []Member{{"traceparent", []byte(`"P"`)}, {"tracestate", []byte(`"S"`)}}
	const set = `"traceparent":"P","tracestate":"S"`
	for _, tc := range []struct{ name, text, want string }{
		{"no params", `{"jsonrpc":"2.0","method":"ping","id":1}`, `{"params":{"_meta":{` + set + `}},"jsonrpc":"2.0","method":"ping","id":1}`},
		{"params are null", `{"params":null,"id":1}`, `{"params":{"_meta":{` + set + `}},"id":1}`},
		{"no member in params", `{"params": { } ,"id":1}`, `{"params": {"_meta":{` + set + `}} ,"id":1}`},
		{"no _meta", `{"params":{"name":"a", "arguments":{"_meta":1}}}`, `{"params":{"_meta":{` + set + `},"name":"a", "arguments":{"_meta":1}}}`},
		{"_meta is null", `{"params":{"_meta":null,"name":"a"}}`, `{"params":{"_meta":{` + set + `},"name":"a"}}`},
		{"other members stay as they were written", `{"params":{"_meta":{"a/b" : 1.50,"progressToken":"x"}}}`, `{"params":{"_meta":{` + set + `,"a/b" : 1.50,"progressToken":"x"}}}`},
		{"the client's own", `{"params":{"_meta":{"tracestate":"c=1","x":{"traceparent":"in"},"traceparent":{"not":"a string"}}}}`, `{"params":{"_meta":{` + set + `,"x":{"traceparent":"in"}}}}`},
		{"the client's own, spelled with escapes", `{"params":{"_meta":{"tr\u0061ceparent":"c"}}}`, `{"params":{"_meta":{` + set + `}}}`},
		{"other case is another member", `{"params":{"_meta":{"Traceparent":"c"}}}`, `{"params":{"_meta":{` + set + `,"Traceparent":"c"}}}`},
		{"_meta elsewhere", `{"_meta":{"traceparent":"c"},"params":{}}`, `{"_meta":{"traceparent":"c"},"params":{"_meta":{` + set + `}}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := SetMeta([]byte(tc.text), members)
			if !ok || string(got) != tc.want {
				t.Errorf("%s, %v, not\n%s", got, ok, tc.want)
			}
		})
	}
	for _, text := range []string{`[{"params":{}}]`, `"text"`, `{`, ``, `{"a":1,"a":2}`} {
		if got, ok := SetMeta([]byte(text), members); ok {
			t.Errorf("%s became %s", text, got)
		}
	}
}

func FuzzSetMeta(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"b":[1,2]},"_meta":{"traceparent":1,"c":{}}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	f.Add([]byte(` {"jsonrpc":"2.0","method":"ping","params" : null }`))
	f.Fuzz(func(t *testing.T, text []byte) {
		before, err := Parse(text, strictjson.Limits{})
		if err != nil || before.Batch || before.Messages[0].Kind == Response {
			return
		}
		out, ok := SetMeta(text, []Member{{"traceparent", []byte(`"P"`)}})
		if !ok {
			t.Fatalf("%s was not marked", text)
		}
		after, err := Parse(out, strictjson.Limits{MaxBytes: len(out) + 1, MaxDepth: 1 << 10})
		if err != nil {
			t.Fatalf("%s became %s: %v", text, out, err)
		}
		a, b := before.Messages[0], after.Messages[0]
		if said, ok := Text(b.Meta, "traceparent"); !ok || said != "P" {
			t.Errorf("%s became %s", text, out)
		}
		if diff := cmp.Diff(without(t, a.Meta), without(t, b.Meta)); diff != "" {
			t.Error(diff)
		}
		a.Raw, a.Params, a.Meta, b.Raw, b.Params, b.Meta = nil, nil, nil, nil, nil, nil
		if diff := cmp.Diff(a, b); diff != "" {
			t.Error(diff)
		}
	})
}

// without returns the members of _meta but the one that was set.
func without(t *testing.T, meta []byte) map[string]string {
	members := map[string]json.RawMessage{}
	if len(meta) > 0 {
		if err := json.NewDecoder(bytes.NewReader(meta)).Decode(&members); err != nil {
			t.Fatal(err)
		}
	}
	delete(members, "traceparent")
	all := make(map[string]string)
	for name, value := range members {
		all[name] = string(value)
	}
	return all
}

func TestFailureOf(t *testing.T) {
	for _, tc := range []struct {
		text, code string
		tool       bool
	}{
		{`{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":false}}`, "", false},
		{`{"jsonrpc":"2.0","id":1,"result":{"content":[{"isError":true}]}}`, "", false},
		{`{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}`, "", true},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}`, "-32602", false},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":"a text","message":"no"}}`, "", false},
		{`{"jsonrpc":"2.0","method":"notifications/progress","params":{"isError":true}}`, "", false},
		{`{"result":{"isError":true`, "", false},
		{`[]`, "", false},
	} {
		if code, tool := FailureOf([]byte(tc.text)); code != tc.code || tool != tc.tool {
			t.Errorf("%s: %q, %v", tc.text, code, tool)
		}
	}
}
