package jsonrpc

import "testing"

func TestReplace(t *testing.T) {
	for _, tc := range []struct {
		text string
		path []string
		want string // "": there is no such member
	}{
		{`{"id":1}`, []string{"id"}, `{"id":X}`},
		{` { "a":[1, {"id":2}], "i\u0064" : "x" ,"b":1.0}`, []string{"id"}, ` { "a":[1, {"id":2}], "i\u0064" : X ,"b":1.0}`},
		{`{"params":{"requestId": 7 ,"id":1},"id":2}`, []string{"params", "requestId"}, `{"params":{"requestId": X ,"id":1},"id":2}`},
		{`{"params":{}}`, []string{"params", "requestId"}, ``},
		{`{"params":7}`, []string{"params", "requestId"}, ``},
		{`{"ID":1}`, []string{"id"}, ``},
		{`{"id":1,"id":2}`, []string{"id"}, ``},
		{`{"id":1`, []string{"id"}, ``},
		{`{"id":1} {}`, []string{"id"}, ``},
		{`[1]`, []string{"id"}, ``},
		{`{"a":"` + "\xff" + `","id":1}`, []string{"id"}, ``},
		{``, []string{"id"}, ``},
	} {
		got, ok := Replace([]byte(tc.text), func([]byte) []byte { return []byte("X") }, tc.path...)
		if string(got) != tc.want || ok != (tc.want != "") {
			t.Errorf("%s: %s, %v", tc.text, got, ok)
		}
	}
	if got, ok := Replace([]byte(`{"id":1}`), func([]byte) []byte { return nil }, "id"); ok {
		t.Errorf("%s", got)
	}
}

func FuzzReplace(f *testing.F) {
	f.Add(`{"id":1,"params":{"id":"x"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		same, ok := Replace([]byte(text), func(id []byte) []byte { return id }, "id")
		if ok && string(same) != text {
			t.Errorf("%q became %q", text, same)
		}
	})
}
