package answer

import "testing"

// TestMarked checks that a server's requests, and their cancellations, bear a marked id; its answers and
// notifications do not.
func TestMarked(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{`{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"id":7}}`, `{"jsonrpc":"2.0","id":<7>,"method":"sampling/createMessage","params":{"id":7}}`},
		{`{"method":"notifications/cancelled","params":{"requestId":"x"},"jsonrpc":"2.0"}`, `{"method":"notifications/cancelled","params":{"requestId":<"x">},"jsonrpc":"2.0"}`},
		{`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`},
		{`{"jsonrpc":"2.0","method":"notifications/progress","params":{"requestId":1}}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"requestId":1}}`},
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{`[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":<1>,"method":"ping"}]`},
		{`{"jsonrpc":"2.0","id":"too long","method":"ping"}`, ``},
		{`{"jsonrpc":"2.0","id":2,"method":"ping","params":{"a":"` + "\xff" + `"}}`, ``},
	} {
		a := Answers{Asks: true, Batches: true, Mark: func(id []byte) []byte {
			if string(id) == `"too long"` {
				return nil
			}
			return []byte("<" + string(id) + ">")
		}}
		a.Expect([]byte("1"))
		if got := string(a.Message([]byte(tc.text))); got != tc.want {
			t.Errorf("%s\n got %s", tc.text, got)
		}
	}
}
