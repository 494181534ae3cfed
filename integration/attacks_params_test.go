package integration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAttackParams checks that headers that mirror arguments are held against the body by the tool's own definition,
// and leave as the body says (SEP-2243). A router behind the gateway never sees another region than the one that
// policies, approvals and the server do.
func TestAttackParams(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	const listed = `{"name":"query","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},` +
		`"page":{"type":"object","properties":{"size":{"type":"integer","x-mcp-header":"Size"}}},"text":{"type":"string"}}}}`
	upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
		if strings.Contains(string(body), `"tools/list"`) {
			answerTo(w, body, `{"tools":[`+listed+`],"resultType":"complete"}`)
			return
		}
		answerTo(w, body, `{"content":[]}`)
	})
	s := g.createServer(upstream.url, nil)
	token := g.token(alice)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	call := func(method, params string, header ...string) answer {
		t.Helper()
		upstream.forget()
		body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + meta + `}}`
		return g.send(http.MethodPost, s.path, token, body, append([]string{"Accept", bothKinds, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}, header...)...)
	}
	query := func(tool, arguments string, header ...string) answer {
		t.Helper()
		return call("tools/call", `"name":"`+tool+`","arguments":`+arguments+`,`, append([]string{"Mcp-Name", tool}, header...)...)
	}
	left := func() map[string]string {
		t.Helper()
		found := map[string]string{}
		for name, values := range upstream.last(t).header {
			if strings.HasPrefix(name, "Mcp-Param-") {
				found[name] = strings.Join(values, ",")
			}
		}
		return found
	}
	// Nobody has listed the tool: what its arguments say may leave.
	query("query", `{"region":"eu"}`, "Mcp-Param-Region", "eu", "Mcp-Param-Other", "us").want(t, http.StatusOK)
	if diff := cmp.Diff(map[string]string{"Mcp-Param-Region": "eu"}, left()); diff != "" {
		t.Errorf("before the list:\n%s", diff)
	}
	call("tools/list", ``).want(t, http.StatusOK)
	for name, tc := range map[string]struct {
		arguments string
		header    []string
		want      map[string]string // nil: refused
	}{
		"as the body says": {`{"region":"eu","page":{"size":10}}`, []string{"Mcp-Param-Region", "eu", "Mcp-Param-Size", "10"},
			map[string]string{"Mcp-Param-Region": "eu", "Mcp-Param-Size": "10"}},
		"spelled otherwise": {`{"region":"eu","page":{"size":1e1}}`, []string{"mcp-param-region", "=?base64?ZXU=?=", "MCP-PARAM-SIZE", "10.0"},
			map[string]string{"Mcp-Param-Region": "eu", "Mcp-Param-Size": "10"}},
		"no ASCII":             {`{"region":"zürich"}`, []string{"Mcp-Param-Region", "=?base64?esO8cmljaA==?="}, map[string]string{"Mcp-Param-Region": "=?base64?esO8cmljaA==?="}},
		"nothing to say":       {`{"text":"x"}`, nil, map[string]string{}},
		"null":                 {`{"region":null}`, nil, map[string]string{}},
		"what mirrors nothing": {`{"region":"eu","text":"x"}`, []string{"Mcp-Param-Region", "eu", "Mcp-Param-Text", "x"}, map[string]string{"Mcp-Param-Region": "eu"}},
		"another region":       {`{"region":"eu"}`, []string{"Mcp-Param-Region", "us"}, nil},
		"another argument's":   {`{"region":"eu","text":"us"}`, []string{"Mcp-Param-Region", "us"}, nil},
		"a region for none":    {`{"text":"eu"}`, []string{"Mcp-Param-Region", "eu"}, nil},
		"none for a region":    {`{"region":"eu"}`, nil, nil},
		"another size":         {`{"page":{"size":10}}`, []string{"Mcp-Param-Size", "11"}, nil},
	} {
		a := query("query", tc.arguments, tc.header...)
		if tc.want == nil {
			a.wantRPC(t, http.StatusBadRequest, -32020, "1", "BadRequest")
			upstream.wantNothing(t)
			continue
		}
		a.want(t, http.StatusOK)
		if diff := cmp.Diff(tc.want, left()); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	// Mcp-Name leaves in one spelling, too.
	query("query", `{}`, "Mcp-Name", "=?base64?cXVlcnk=?=").want(t, http.StatusOK)
	if name := upstream.last(t).header.Get("Mcp-Name"); name != "query" {
		t.Errorf("Mcp-Name left as %q", name)
	}
}
