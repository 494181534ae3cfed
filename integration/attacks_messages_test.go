package integration

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// initializing is an upstream that gives a session to every client that initializes, and answers all later requests in
// it.
func initializing(t testing.TB, version string) *upstream {
	t.Helper()
	return newUpstream(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		switch {
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		case r.Method == http.MethodGet:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "id: event-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n")
		case strings.Contains(string(body), `"initialize"`):
			w.Header().Set("Mcp-Session-Id", "upstream-session")
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"`+version+`","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		}
	})
}

// attackSession initializes and returns the session id.
func (g *gateway) attackSession(token string, s server, version, capabilities string) string {
	g.t.Helper()
	a := g.send(http.MethodPost, s.path, token, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+version+
		`","capabilities":`+capabilities+`,"clientInfo":{"name":"x","version":"1"}}}`, "Accept", bothKinds)
	session := a.want(g.t, http.StatusOK).header.Get("Mcp-Session-Id")
	if session == "" || strings.Contains(session, "upstream-session") {
		g.t.Fatalf("session id %q", session)
	}
	return session
}

// TestAttackMessages checks that a message that two readers could read differently is refused, and no part of it
// reaches the upstream.
func TestAttackMessages(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := answering(t)
	s := g.createServer(upstream.url, nil)
	token := g.token(alice)
	deep := strings.Repeat("[", 100_000)
	for _, tc := range []struct {
		name, body, id string
		code           int
	}{
		{"M04 method twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"tools/list"}`, "", -32600},
		{"M04 params twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},"params":{"name":"b"}}`, "", -32600},
		{"M04 name twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}`, "", -32600},
		{"M04 arguments twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{},"arguments":{"x":1}}}`, "", -32600},
		{"M04 a member of arguments twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1,"x":2}}}`, "", -32600},
		{"M04 id twice", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, "", -32600},
		{"M04 Method", `{"jsonrpc":"2.0","id":1,"method":"tools/call","Method":"tools/list"}`, "1", -32600},
		{"M04 METHOD", `{"jsonrpc":"2.0","id":1,"METHOD":"tools/list","method":"tools/call"}`, "1", -32600},
		{"M04 long s in params", `{"jsonrpc":"2.0","id":1,"method":"tools/call","param\u017f":{"name":"a"}}`, "1", -32600},
		{"M04 long s in params, as it is", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"paramſ\":{\"name\":\"a\"}}", "1", -32600},
		{"M04 escaped method beside method", `{"jsonrpc":"2.0","id":1,"method":"tools/call","\u006dethod":"tools/list"}`, "", -32600},
		{"M04 name with NUL", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name\u0000":"b"}}`, "1", -32600},
		{"M04 Name in params", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","Name":"b"}}`, "1", -32600},
		{"B10 two values", pingMessage + pingMessage, "", -32700},
		{"B10 trailing garbage", pingMessage + "x", "", -32700},
		{"B10 empty", "", "", -32700},
		{"B10 blanks only", "  \n", "", -32700},
		{"B10 null", "null", "", -32600},
		{"B10 a string", `""`, "", -32600},
		{"B10 empty object", "{}", "", -32600},
		{"B10 comment", "/**/" + pingMessage, "", -32700},
		{"B10 trailing comma", `{"jsonrpc":"2.0","id":1,"method":"ping",}`, "", -32700},
		{"M05 byte order mark", "\xef\xbb\xbf" + pingMessage, "", -32700},
		{"M05 invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"x\":\"\xff\"}", "", -32700},
		{"M05 lone surrogate", `{"jsonrpc":"2.0","id":1,"method":"ping","x":"\ud800"}`, "", -32700},
		{"M05 UTF-16", "\xff\xfe{\x00}\x00", "", -32700},
		{"M05 NaN", `{"jsonrpc":"2.0","id":1,"method":"ping","x":NaN}`, "", -32700},
		{"M05 id 1.5", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, "", -32600},
		{"M05 id null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, "", -32600},
		{"M05 id of an object", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, "", -32600},
		{"M05 jsonrpc 1.0", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, "1", -32600},
		{"M05 no jsonrpc", `{"id":1,"method":"ping"}`, "1", -32600},
		{"M05 method of a number", `{"jsonrpc":"2.0","id":1,"method":7}`, "1", -32600},
		{"M05 params of an array", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["a"]}`, "1", -32600},
		{"M05 name of an object", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":{"a":1}}}`, "1", -32602},
		{"M05 method and result", `{"jsonrpc":"2.0","id":1,"method":"tools/call","result":{}}`, "1", -32600},
		{"B01 depth of 65 in arguments", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + "}}", "", -32600},
		{"B01 depth of 100,000", deep, "", -32600},
		{"M03 empty batch", "[]", "", -32600},
		{"M03 nested batch", "[[" + pingMessage + "]]", "", -32600},
		{"M03 batch of 101", "[" + strings.TrimSuffix(strings.Repeat(pingMessage+",", 101), ",") + "]", "", -32600},
		{"M03 batch of 10,000", "[" + strings.TrimSuffix(strings.Repeat(pingMessage+",", 10_000), ",") + "]", "", -32600},
		{"M03 batch with a bad element", "[" + pingMessage + `,{"jsonrpc":"2.0","id":2,"method":"ping","Method":"tools/call"}]`, "", -32600},
	} {
		t.Run(tc.name, func(t *testing.T) {
			id := "<nil>"
			if tc.id != "" {
				id = tc.id
			}
			a := g.send(http.MethodPost, s.path, token, tc.body, "Accept", bothKinds)
			a.wantRPC(t, http.StatusBadRequest, tc.code, id, "BadRequest")
			upstream.wantNothing(t)
		})
	}
}

// TestAttackBatches checks that batches exist in one revision (M03).
func TestAttackBatches(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := initializing(t, "2025-03-26")
	s := g.createServer(upstream.url, nil)
	token := g.token(alice)
	batch := "[" + pingMessage + `,{"jsonrpc":"2.0","id":2,"method":"ping"}]`
	old, newer := g.attackSession(token, s, "2025-03-26", "{}"), g.attackSession(token, s, "2025-06-18", "{}")
	for _, tc := range []struct {
		name, version, session string
		status                 int
	}{
		{"M03 no version", "", "", 200},
		{"M03 2025-03-26", "2025-03-26", "", 200},
		{"M03 2025-03-26 in its session", "2025-03-26", old, 200},
		{"M03 2025-06-18", "2025-06-18", "", 400},
		{"M03 2025-11-25", "2025-11-25", "", 400},
		{"M03 2026-07-28", "2026-07-28", "", 400},
		{"M03 no version in a session of 2025-06-18", "", newer, 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			upstream.forget()
			header := []string{"Accept", bothKinds}
			if tc.version != "" {
				header = append(header, "MCP-Protocol-Version", tc.version)
			}
			if tc.session != "" {
				header = append(header, "Mcp-Session-Id", tc.session)
			}
			a := g.send(http.MethodPost, s.path, token, batch, header...)
			if tc.status == http.StatusOK {
				a.want(t, http.StatusOK)
				if got := upstream.last(t).body; got != batch {
					t.Errorf("forwarded %s", got)
				}
				return
			}
			a.wantRPC(t, tc.status, -32600, "<nil>", "BadRequest")
			upstream.wantNothing(t)
		})
	}
}

// TestAttackAgreement checks that headers and body of the 2026 revision say the same, or the gateway refuses: official
// servers do not all look (M06, and the measurement that a header alone can be lied in).
func TestAttackAgreement(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := answering(t)
	s := g.createServer(upstream.url, nil)
	token := g.token(alice)
	const version = "MCP-Protocol-Version"
	for _, tc := range []struct {
		name, body string
		header     []string
		code       int // 0: forwarded
	}{
		{"M06 all agree", modernCall, []string{version, "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "echo"}, 0},
		{"M06 base64 name", modernCall, []string{version, "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "=?base64?ZWNobw==?="}, 0},
		{"M06 another method", modernCall, []string{version, "2026-07-28", "Mcp-Method", "tools/list", "Mcp-Name", "echo"}, -32020},
		{"M06 method in other case", modernCall, []string{version, "2026-07-28", "Mcp-Method", "Tools/Call", "Mcp-Name", "echo"}, -32020},
		{"M06 another name", modernCall, []string{version, "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "delete"}, -32020},
		{"M06 base64 of another name", modernCall, []string{version, "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "=?base64?ZGVsZXRl?="}, -32020},
		{"M06 no method", modernCall, []string{version, "2026-07-28", "Mcp-Name", "echo"}, -32020},
		{"M06 no name", modernCall, []string{version, "2026-07-28", "Mcp-Method", "tools/call"}, -32020},
		{"M06 another version", modernCall, []string{version, "2026-07-29", "Mcp-Method", "tools/call", "Mcp-Name", "echo"}, -32020},
		{"M06 no version in the body", echoCall, []string{version, "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "echo"}, -32602},
		{"M06 headers without a version count for nothing", echoCall, []string{"Mcp-Method", "tools/list", "Mcp-Name", "other"}, 0},
		{"M06 headers under an old version count for nothing", echoCall, []string{version, "2025-06-18", "Mcp-Method", "tools/list", "Mcp-Name", "other"}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			upstream.forget()
			a := g.send(http.MethodPost, s.path, token, tc.body, append([]string{"Accept", bothKinds}, tc.header...)...)
			if tc.code == 0 {
				a.want(t, http.StatusOK)
				if got := upstream.last(t).body; got != tc.body {
					t.Errorf("forwarded %s", got)
				}
				return
			}
			a.wantRPC(t, http.StatusBadRequest, tc.code, "1", "BadRequest")
			upstream.wantNothing(t)
		})
	}
	for _, twice := range []string{"MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: echo", "Mcp-Param-City: a"} {
		t.Run("M06 twice "+twice, func(t *testing.T) {
			upstream.forget()
			lines := "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\nMcp-Param-City: b\r\n" + twice + "\r\n"
			answers := g.exchange(g.rawPost(s.path, token, lines+lengthLine(modernCall), modernCall) + g.closing())
			if len(answers) == 0 || answers[0].status != http.StatusBadRequest {
				t.Fatalf("answered %v", statuses(answers))
			}
			upstream.wantNothing(t)
		})
	}
}

// TestAttackVerbatim checks that the bytes that leave are exactly those that were judged (M05).
func TestAttackVerbatim(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := answering(t)
	s := g.createServer(upstream.url+"?team=a%2Fb&x=%41", nil)
	for i, body := range []string{
		" {\r\n\t\"params\" : { \"arguments\":{\"n\":9007199254740993,\"e\":1E400,\"s\":\"\\u0041\\/\"} , \"name\":\"echo\"} ,\"id\":\"a\\u0062\",\"method\":\"tools\\/call\",\"jsonrpc\":\"2.0\"} \n",
		`{"jsonrpc":"2.0","id":-0,"method":"prompts/get","params":{"name":"<script>","arguments":null,"__proto__":{}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":null,"unknown":[1,2,{"deep":[]}]}`,
		`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"{env.HOME}{file./etc/passwd}"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"../../admin"}}`,
	} {
		t.Run(fmt.Sprintf("M05 H17 body %d", i), func(t *testing.T) {
			status := http.StatusOK
			if strings.Contains(body, "notifications/") {
				status = http.StatusAccepted
			}
			g.send(http.MethodPost, s.path+"?team=evil&token=x", g.token(alice), body, "Accept", bothKinds).want(t, status)
			got := upstream.last(t)
			if got.body != body {
				t.Errorf("forwarded %q instead of %q", got.body, body)
			}
			if got.uri != "/mcp?team=a%2Fb&x=%41" {
				t.Errorf("P05 the upstream was asked for %s", got.uri)
			}
		})
	}
}

// TestAttackEncodings checks that bodies that would have to be unpacked, or are too long, are refused before they are
// read (M24, B07).
func TestAttackEncodings(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := answering(t)
	s := g.createServer(upstream.url, map[string]any{"events_url": upstream.server.URL + "/events"})
	token := g.token(alice)
	raw := func(method, path, lines, body string) string {
		return method + " " + path + " HTTP/1.1\r\nHost: " + strings.TrimPrefix(g.url, "http://") + "\r\nAuthorization: Bearer " + token +
			"\r\nConnection: close\r\n" + lines + "\r\n" + body
	}
	const json = "Content-Type: application/json\r\n"
	long := strings.Repeat(" ", 4<<20) + pingMessage
	for _, tc := range []struct {
		name, lines, body string
		status            int
	}{
		{"M24 gzip", json + "Content-Encoding: gzip\r\n" + lengthLine(pingMessage), pingMessage, 415},
		{"M24 GZIP", json + "Content-Encoding: GZIP\r\n" + lengthLine(pingMessage), pingMessage, 415},
		{"M24 br, identity", json + "Content-Encoding: br, identity\r\n" + lengthLine(pingMessage), pingMessage, 415},
		{"M24 identity and then gzip", json + "Content-Encoding: identity\r\nContent-Encoding: gzip\r\n" + lengthLine(pingMessage), pingMessage, 415},
		{"M24 identity", json + "Content-Encoding: identity\r\n" + lengthLine(pingMessage), pingMessage, 200},
		{"M24 transfer coding gzip", json + "Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n", 501},
		{"M24 multipart", "Content-Type: multipart/form-data; boundary=x\r\n" + lengthLine(pingMessage), pingMessage, 415},
		{"H15 text/plain", "Content-Type: text/plain\r\n" + lengthLine(pingMessage), pingMessage, 415},
		{"H15 form", "Content-Type: application/x-www-form-urlencoded\r\n" + lengthLine(pingMessage), pingMessage, 415},
		{"H15 no type", lengthLine(pingMessage), pingMessage, 415},
		{"B09 two types", json + "Content-Type: text/plain\r\n" + lengthLine(pingMessage), pingMessage, 415},
		{"B09 utf-16", "Content-Type: application/json; charset=utf-16\r\n" + lengthLine(pingMessage), pingMessage, 415},
		{"B09 UTF-8", "Content-Type: Application/JSON; charset=\"UTF-8\"\r\n" + lengthLine(pingMessage), pingMessage, 200},
		{"B07 a byte too long, declared", json + lengthLine(long), long, 413},
		{"B07 a byte too long, in chunks", json + "Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(long), long), 413},
		{"B07 1 TiB declared, nothing sent", json + "Content-Length: 1099511627776\r\n", "", 413},
		{"B07 as long as it may be", json + lengthLine(long[len(pingMessage):]), long[len(pingMessage):], 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			upstream.forget()
			answers := g.exchange(raw(http.MethodPost, s.path, tc.lines, tc.body))
			if len(answers) != 1 || answers[0].status != tc.status {
				t.Fatalf("answered %v instead of %d", statuses(answers), tc.status)
			}
			if tc.status != http.StatusOK {
				upstream.wantNothing(t)
			}
		})
	}
	events := json + "Accept: text/event-stream\r\n"
	for _, tc := range []struct {
		name, lines, body string
		status            int
	}{
		{"M24 /sse gzip", events + "Content-Encoding: gzip\r\n" + lengthLine("{}"), "{}", 415},
		{"M24 /sse form", "Content-Type: text/plain\r\n" + lengthLine("{}"), "{}", 415},
		{"B07 /sse 64 KiB and a byte", events + lengthLine(long[:64<<10]) + "", "{" + long[:64<<10-1], 422},
		{"B07 /sse over 64 KiB", events + "Content-Length: 65537\r\n", "", 413},
		{"B10 /sse garbage", events + lengthLine("{]"), "{]", 422},
		{"B10 /sse a member twice", events + lengthLine(`{"event_types":[],"event_types":[]}`), `{"event_types":[],"event_types":[]}`, 422},
		{"M26 /sse event_types of a string", events + lengthLine(`{"event_types":"x"}`), `{"event_types":"x"}`, 422},
		{"M26 /sse filters of an array", events + lengthLine(`{"filters":[]}`), `{"filters":[]}`, 422},
		{"M26 /sse filters of a string", events + lengthLine(`{"filters":"x","event_types":[1]}`), `{"filters":"x","event_types":[1]}`, 422},
		{"M26 /sse limit of zero", events + lengthLine(`{"filters":{"limit":0}}`), `{"filters":{"limit":0}}`, 422},
		{"M26 /sse limit of a string", events + lengthLine(`{"filters":{"limit":"1"}}`), `{"filters":{"limit":"1"}}`, 422},
	} {
		t.Run(tc.name, func(t *testing.T) {
			upstream.forget()
			answers := g.exchange(raw(http.MethodGet, "/sse/"+s.Slug, tc.lines, tc.body))
			if len(answers) != 1 || answers[0].status != tc.status {
				t.Fatalf("answered %v instead of %d", statuses(answers), tc.status)
			}
			upstream.wantNothing(t)
		})
	}
}

// TestAttackSmuggledCall checks that a call hidden in the body of /sse goes nowhere: the upstream is asked for its
// events, with the two filters and nothing else of the client's (M26).
func TestAttackSmuggledCall(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: data_update\ndata: {\"type\":\"issue\",\"id\":\"1\"}\n\n")
	})
	s := g.createServer(upstream.url, map[string]any{"events_url": upstream.server.URL + "/events?fixed=1"})
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete"},"event_types":["data_update","tools/call","nobody's"],` +
		`"filters":{"object_type":"issue&admin=1","limit":3,"sql":"'"}}`
	stream := g.listen(http.MethodGet, "/sse/"+s.Slug+"?admin=1", g.token(alice), body, "Mcp-Session-Id", "x")
	if first := stream.next(); first.name != "connected" {
		t.Errorf("the stream begins with %+v", first)
	}
	stream.ended()
	got := upstream.last(t)
	if got.method != http.MethodGet || got.body != "" || got.uri != "/events?fixed=1&limit=3&object_type=issue%26admin%3D1" || got.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("the upstream got %+v", got)
	}
}
