package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// TestCheckHeadersLikeTheReferenceServer sends the same requests to the reference server: where both refuse, status and
// code are the same, and what passes here is not refused there for its headers.
func TestCheckHeadersLikeTheReferenceServer(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "reference", Version: "1"}, nil)
	type arguments struct {
		Text string `json:"text,omitempty"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(context.Context, *mcp.CallToolRequest, arguments) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})

	body := func(method, params, version string) string {
		return `{"jsonrpc":"2.0","id":9,"method":"` + method + `","params":{` + params + `"_meta":{` + version +
			`"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}`
	}
	const v = `"io.modelcontextprotocol/protocolVersion":"2026-07-28",`
	type h = map[string]string
	tests := []struct {
		name    string
		headers h
		text    string
	}{
		{"agreeing call", h{HeaderProtocolVersion: "2026-07-28", HeaderMethod: "tools/call", HeaderName: "echo"}, body("tools/call", `"name":"echo","arguments":{},`, v)},
		{"agreeing list", h{HeaderProtocolVersion: "2026-07-28", HeaderMethod: "tools/list"}, body("tools/list", "", v)},
		{"list with a name", h{HeaderProtocolVersion: "2026-07-28", HeaderMethod: "tools/list", HeaderName: "x"}, body("tools/list", "", v)},
		{"other method", h{HeaderProtocolVersion: "2026-07-28", HeaderMethod: "tools/list", HeaderName: "echo"}, body("tools/call", `"name":"echo",`, v)},
		{"method in other case", h{HeaderProtocolVersion: "2026-07-28", HeaderMethod: "Tools/List"}, body("tools/list", "", v)},
		{"no method", h{HeaderProtocolVersion: "2026-07-28"}, body("tools/list", "", v)},
		{"no name", h{HeaderProtocolVersion: "2026-07-28", HeaderMethod: "tools/call"}, body("tools/call", `"name":"echo",`, v)},
		{"other name", h{HeaderProtocolVersion: "2026-07-28", HeaderMethod: "tools/call", HeaderName: "other"}, body("tools/call", `"name":"echo",`, v)},
		{"other resource", h{HeaderProtocolVersion: "2026-07-28", HeaderMethod: "resources/read", HeaderName: "b"}, body("resources/read", `"uri":"file:///a",`, v)},
		{"other prompt", h{HeaderProtocolVersion: "2026-07-28", HeaderMethod: "prompts/get", HeaderName: "b"}, body("prompts/get", `"name":"a",`, v)},
		{"no _meta version", h{HeaderProtocolVersion: "2026-07-28", HeaderMethod: "tools/list"}, body("tools/list", "", "")},
		{"no _meta version and no method", h{HeaderProtocolVersion: "2026-07-28"}, body("tools/list", "", "")},
		{"other _meta version", h{HeaderProtocolVersion: "2027-01-01", HeaderMethod: "tools/list"}, body("tools/list", "", v)},
		{"discover without _meta version", h{HeaderProtocolVersion: "2026-07-28", HeaderMethod: "server/discover"}, body("server/discover", "", "")},
		{"discover", h{HeaderProtocolVersion: "2026-07-28", HeaderMethod: "server/discover"}, body("server/discover", "", v)},
		{"notification without method", h{HeaderProtocolVersion: "2026-07-28"}, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`},
		{"notification", h{HeaderProtocolVersion: "2026-07-28", HeaderMethod: "notifications/cancelled"}, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`},
		{"M06 old version", h{HeaderProtocolVersion: "2025-11-25", HeaderMethod: "tools/call", HeaderName: "x"}, `{"jsonrpc":"2.0","id":9,"method":"tools/list"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "http://localhost/", strings.NewReader(tt.text))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			for name, value := range tt.headers {
				r.Header.Set(name, value)
			}
			parsed, err := Parse([]byte(tt.text), strictjson.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			err = CheckHeaders(r.Header, &parsed.Messages[0])
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			var answer struct {
				ID    any
				Error struct{ Code int }
			}
			_ = json.Unmarshal(w.Body.Bytes(), &answer) // a 202 has no body
			var refused *Error
			switch {
			case errors.As(err, &refused):
				if w.Code != http.StatusBadRequest || answer.Error.Code != refused.Code {
					t.Errorf("here %v, there %d %s", err, w.Code, w.Body)
				}
			case w.Code == http.StatusBadRequest:
				t.Errorf("here nothing, there %s", w.Body)
			}
		})
	}
}
