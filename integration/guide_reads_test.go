package integration

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestUnconnectedReads checks that a call, a read and a get of a user who has not connected their account are answered
// with the address, in the way of the revision: URL elicitation where the client opens pages, else in the text.
func TestUnconnectedReads(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := answering(t)
	s := g.createServer(upstream.url, bearerEntry())
	page, token := g.url+"/connect/"+s.Slug, g.token(alice)
	const opens, forms = `{"elicitation":{"form":{},"url":{}}}`, `{"elicitation":{}}`
	named := map[string][2]string{
		"tools/call": {"echo", `"name":"echo","arguments":{}`}, "resources/read": {"test://one", `"uri":"test://one"`}, "prompts/get": {"greet", `"name":"greet"`},
	}
	for _, tc := range []struct{ version, declares, call, others string }{
		{"2025-03-26", opens, "isError", "-31401"}, {"2025-06-18", opens, "isError", "-31401"},
		{"2025-11-25", opens, "-32042", "-32042"}, {"2025-11-25", forms, "isError", "-31401"}, {"2025-11-25", "{}", "isError", "-31401"},
		{"2026-07-28", opens, "input_required", "input_required"}, {"2026-07-28", forms, "isError", "-31401"}, {"2026-07-28", "{}", "isError", "-31401"},
	} {
		header := append(mcpHeader(""), "MCP-Protocol-Version", tc.version)
		modern := tc.version == "2026-07-28"
		if !modern {
			begun := g.mcp(token, s, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+tc.version+`","capabilities":`+tc.declares+`,"clientInfo":{"name":"test","version":"1"}}}`)
			header = append(header, "Mcp-Session-Id", begun.want(t, http.StatusOK).header.Get("Mcp-Session-Id"))
		}
		for method, object := range named {
			params, headers, want := object[1], header, tc.others
			if method == "tools/call" {
				want = tc.call
			}
			if modern {
				params += `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + tc.declares + `}`
				headers = append(append([]string{}, header...), "Mcp-Method", method, "Mcp-Name", object[0])
			}
			a := g.send(http.MethodPost, s.path, token, `{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":{`+params+`}}`, headers...).want(t, http.StatusOK)
			if got := ledBy(t, a, page); got != want {
				t.Errorf("%s, a client that declares %s: %s is answered by %s, want %s: %s", tc.version, tc.declares, method, got, want, a.body)
			}
		}
	}
	upstream.wantNothing(t)
}

// ledBy returns how an answer leads a user to a page: the code of the error, isError, or the type of the result.
func ledBy(t *testing.T, a answer, page string) string {
	t.Helper()
	type asked struct{ Mode, URL, Message string }
	var said struct {
		Result struct {
			ResultType    string
			IsError       bool
			Content       []struct{ Text string }
			InputRequests map[string]struct {
				Method string
				Params asked
			}
		}
		Error struct {
			Code    json.Number
			Message string
			Data    struct {
				Elicitations []asked
				Details      struct {
					ConnectURL string `json:"connect_url"`
				}
			}
		}
	}
	a.decode(t, &said)
	switch failure, result := said.Error, said.Result; {
	case failure.Code == "-32042" && len(failure.Data.Elicitations) == 1 && failure.Data.Elicitations[0].Mode == "url" && failure.Data.Elicitations[0].URL == page:
		return "-32042"
	case failure.Code == "-31401" && strings.Contains(failure.Message, page) && failure.Data.Details.ConnectURL == page:
		return "-31401"
	case result.IsError && len(result.Content) == 1 && strings.Contains(result.Content[0].Text, page):
		return "isError"
	case result.ResultType == "input_required" && len(result.InputRequests) == 1:
		for _, request := range result.InputRequests {
			if request.Method == "elicitation/create" && request.Params.Mode == "url" && request.Params.URL == page {
				return "input_required"
			}
		}
	}
	return "nothing that leads there"
}
