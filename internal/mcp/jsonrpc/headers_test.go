package jsonrpc

import (
	"errors"
	"net/http"
	"testing"

	"github.com/durward-gateway/durward/internal/strictjson"
)

func TestCheckHeaders(t *testing.T) {
	request := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":9,"method":"` + method + `","params":{` + params + `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	}
	call := request("tools/call", `"name":"echo",`)
	type h = map[string][]string
	with := func(method, name string) h {
		out := h{HeaderProtocolVersion: {"2026-07-28"}, HeaderMethod: {method}}
		if name != "" {
			out[HeaderName] = []string{name}
		}
		return out
	}
	tests := []struct {
		name    string
		headers h
		text    string
		code    int // 0: they agree
	}{
		{"agreeing", with("tools/call", "echo"), call, 0},
		{"blanks around", h{HeaderProtocolVersion: {" 2026-07-28"}, HeaderMethod: {"\ttools/call "}, HeaderName: {"  echo\t"}}, call, 0},
		{"base64", with("tools/call", "=?base64?ZWNobw==?="), call, 0},
		{"base64 of a name beyond ASCII", with("tools/call", "=?base64?w6ljaG8=?="), request("tools/call", `"name":"écho",`), 0},
		{"base64 with markers in capitals", with("tools/call", "=?BASE64?ZWNobw==?="), call, CodeHeaderMismatch},
		{"base64 that is none", with("tools/call", "=?base64?!!!?="), call, CodeHeaderMismatch},
		{"base64 with loose bits", with("tools/call", "=?base64?ZWNobx==?="), call, CodeHeaderMismatch},
		{"base64 of another name", with("tools/call", "=?base64?b3RoZXI=?="), call, CodeHeaderMismatch},
		{"Mcp-Method of another method", with("tools/list", "echo"), call, CodeHeaderMismatch},
		{"Mcp-Method in other case", with("Tools/Call", "echo"), call, CodeHeaderMismatch},
		{"no Mcp-Method", h{HeaderProtocolVersion: {"2026-07-28"}, HeaderName: {"echo"}}, call, CodeHeaderMismatch},
		{"two Mcp-Method", h{HeaderProtocolVersion: {"2026-07-28"}, HeaderMethod: {"tools/call", "tools/list"}, HeaderName: {"echo"}}, call, CodeHeaderMismatch},
		{"no Mcp-Name", with("tools/call", ""), call, CodeHeaderMismatch},
		{"Mcp-Name of another tool", with("tools/call", "other"), call, CodeHeaderMismatch},
		{"Mcp-Name in other case", with("tools/call", "Echo"), call, CodeHeaderMismatch},
		{"two Mcp-Name", h{HeaderProtocolVersion: {"2026-07-28"}, HeaderMethod: {"tools/call"}, HeaderName: {"echo", "echo"}}, call, CodeHeaderMismatch},
		{"name only in the header", with("tools/call", "echo"), request("tools/call", ""), CodeHeaderMismatch},
		{"resource", with("resources/read", "file:///a"), request("resources/read", `"uri":"file:///a",`), 0},
		{"resource by name", with("resources/read", "a"), request("resources/read", `"uri":"file:///a","name":"a",`), CodeHeaderMismatch},
		{"prompt", with("prompts/get", "p"), request("prompts/get", `"name":"p",`), 0},
		{"prompt mismatch", with("prompts/get", "q"), request("prompts/get", `"name":"p",`), CodeHeaderMismatch},
		{"task", with("tasks/get", "t1"), request("tasks/get", `"taskId":"t1",`), 0},
		{"task update of another", with("tasks/update", "t2"), request("tasks/update", `"taskId":"t1",`), CodeHeaderMismatch},
		{"task cancel without name", with("tasks/cancel", ""), request("tasks/cancel", `"taskId":"t1",`), CodeHeaderMismatch},
		{"list needs no name", with("tools/list", ""), request("tools/list", ""), 0},
		{"list with a name", with("tools/list", "echo"), request("tools/list", ""), 0},
		{"version differs", h{HeaderProtocolVersion: {"2027-01-01"}, HeaderMethod: {"tools/list"}}, request("tools/list", ""), CodeHeaderMismatch},
		{"two versions", h{HeaderProtocolVersion: {"2026-07-28", "2025-06-18"}, HeaderMethod: {"tools/list"}}, request("tools/list", ""), CodeHeaderMismatch},
		{"two versions, old first", h{HeaderProtocolVersion: {"2025-06-18", "2026-07-28"}}, request("tools/list", ""), CodeHeaderMismatch},
		{"no version in _meta", with("tools/list", ""), `{"jsonrpc":"2.0","id":9,"method":"tools/list"}`, CodeInvalidParams},
		{"no version in _meta outranks Mcp-Method", with("x", ""), `{"jsonrpc":"2.0","id":9,"method":"tools/list"}`, CodeInvalidParams},
		{"future version", h{HeaderProtocolVersion: {"2030-01-01"}, HeaderMethod: {"ping"}},
			`{"jsonrpc":"2.0","id":9,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2030-01-01"}}}`, 0},
		{"notification without _meta", with("notifications/cancelled", ""), `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, 0},
		{"notification with another method", with("x", ""), `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, CodeHeaderMismatch},
		{"response", with("x", ""), `{"jsonrpc":"2.0","id":1,"result":{}}`, 0},
		{"M06 old version: the others mean nothing", h{HeaderProtocolVersion: {"2025-11-25"}, HeaderMethod: {"tools/list"}, HeaderName: {"x"}},
			`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"echo"}}`, 0},
		{"M06 no version: the others mean nothing", h{HeaderMethod: {"tools/list"}, HeaderName: {"x"}}, call, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body, err := Parse([]byte(tt.text), strictjson.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			err = CheckHeaders(http.Header(tt.headers), &body.Messages[0])
			if tt.code == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var refused *Error
			if !errors.As(err, &refused) || refused.Code != tt.code || string(refused.ID) != string(body.Messages[0].ID) {
				t.Errorf("got %v, want %d", err, tt.code)
			}
		})
	}
}

func FuzzDecodeHeader(f *testing.F) {
	for _, s := range []string{"echo", "=?base64?ZWNobw==?=", "=?base64?", "=?base64??=", "=?base64?=", "=?base64?\n?="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, ok := decodeHeader(s); ok && got == "" && s != "" && s != "=?base64??=" {
			t.Errorf("%q decodes to nothing", s)
		}
	})
}
