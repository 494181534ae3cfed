package integration

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// secretInEnvironment is the value that placeholders in user input would reveal.
const secretInEnvironment = "canary-of-the-environment"

// TestAttackHeaders checks that headers of clients reach the upstream only when they are on the allow-list, and never
// in place of the gateway's own. Nothing is read of forwarding headers (H04), from a trusted proxy neither (H05): what
// is to be known of clients comes with the connection (docs/configuration.md, "API keys and guessing").
func TestAttackHeaders(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{env: []string{"ATTACK_SECRET=" + secretInEnvironment}})
	upstream := answering(t)
	s := g.createServer(upstream.url, bearerEntry())
	token := g.token(alice)
	g.connectBearer(token, s, "credential-of-alice")
	allowed := map[string]bool{
		"Accept": true, "Accept-Encoding": true, "Authorization": true, "Baggage": true, "Cdn-Loop": true, "Content-Length": true,
		"Content-Type": true, "Last-Event-Id": true, "Mcp-Method": true, "Mcp-Name": true, "Mcp-Param-City": true,
		"Mcp-Protocol-Version": true, "Traceparent": true, "Tracestate": true, "User-Agent": true,
	}
	modern := "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n"
	for _, tc := range []struct{ name, lines string }{
		{"H01 the caller's own token", ""},
		{"H02 Connection names Authorization", "Connection: Authorization\r\n"},
		{"H02 connection names authorization among others", "connection: authorization, x-request-id, mcp-name\r\n"},
		{"H02 Connection names Mcp-Name", "Connection: keep-alive, Mcp-Name\r\n"},
		{"H02 Keep-Alive, TE, Trailer, Proxy-Connection", "Keep-Alive: timeout=5\r\nTE: trailers\r\nProxy-Connection: keep-alive\r\n"},
		{"H03 other credentials", "Proxy-Authorization: Basic eA==\r\nCookie: a=b\r\nX-Api-Key: k\r\nX-Auth-Token: t\r\nX-Auth-Request-User: admin\r\n" +
			"Authorization_: Bearer x\r\nX-Upstream-Authorization: Bearer x\r\nX-Authorization: Bearer x\r\n"},
		{"H04 forwarding headers", "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Host: evil.example\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Prefix: /x\r\n" +
			"X-Forwarded-Port: 1\r\nX-Forwarded-Uri: /x\r\nForwarded: host=evil.example\r\nX-Real-IP: 10.0.0.1\r\nCF-Connecting-IP: 10.0.0.1\r\nTrue-Client-IP: 10.0.0.1\r\nVia: x\r\n"},
		{"H16 O09 identity headers", "X-Org-Id: 0190aaaa-0000-7000-8000-0000000017a1\r\nX-Tenant: rival\r\nX-User-Id: x\r\nX-MCP-Server: y\r\nX-Durward-User: z\r\n" +
			"X-Durward-Org: rival\r\nX-Gateway-Init: 1\r\nX-Original-Url: /api/servers\r\nX-Rewrite-Url: /api/servers\r\nX-Http-Method-Override: DELETE\r\n"},
		{"H09 tracking tags", "x-mcp-session-id: tag-1\r\nX-Other-Session-Id: \"quoted\"\r\n"},
		{"H17 placeholders", "Mcp-Param-City: {env.ATTACK_SECRET}{file./etc/passwd}{http.request.header.Authorization}\r\nUser-Agent: {env.ATTACK_SECRET}\r\n"},
		{"H13 undeclared trailer-like headers", "X-Trailer-User: admin\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			upstream.forget()
			answers := g.exchange(g.rawPost(s.path, token, modern+tc.lines+lengthLine(modernCall), modernCall) + g.closing())
			if len(answers) == 0 || answers[0].status != http.StatusOK {
				t.Fatalf("%d answers: %+v", len(answers), answers)
			}
			requests := upstream.all()
			if len(requests) != 1 {
				t.Fatalf("the upstream got %d requests", len(requests))
			}
			got := requests[0]
			if values := got.header["Authorization"]; len(values) != 1 || values[0] != "Bearer credential-of-alice" {
				t.Errorf("Authorization at the upstream: %q", values)
			}
			if got.header.Get("Mcp-Name") != "echo" || got.header.Get("Mcp-Method") != "tools/call" || got.body != modernCall {
				t.Errorf("the message did not arrive as it was sent: %v %s", got.header, got.body)
			}
			for name := range got.header {
				if !allowed[name] {
					t.Errorf("%s reached the upstream: %q", name, got.header[name])
				}
			}
			if wire := upstream.bytes(); strings.Contains(wire, token) || strings.Contains(wire, secretInEnvironment) {
				t.Errorf("a secret reached the upstream: %s", wire)
			}
			if strings.Contains(tc.name, "H17") && got.header.Get("User-Agent") != "{env.ATTACK_SECRET}" {
				t.Errorf("the placeholder was touched: %q", got.header.Get("User-Agent"))
			}
			if last := answers[len(answers)-1]; last.status != http.StatusOK || !strings.Contains(string(last.body), "ok") {
				t.Errorf("the next request on the connection was answered %d %s", last.status, last.body)
			}
		})
	}
	if log := g.output.String(); strings.Contains(log, secretInEnvironment) {
		t.Error("the log holds a secret of the environment")
	}
}

// TestAttackNoCredential checks that without a connection nothing is sent (H01).
func TestAttackNoCredential(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := answering(t)
	s := g.createServer(upstream.url, bearerEntry())
	hostile := []string{"X-Forwarded-Host", "evil.example", "Accept", bothKinds}
	for message, check := range map[string]func(answer){
		pingMessage: func(a answer) { a.want(t, http.StatusOK) },
		echoCall: func(a answer) {
			if a.wantConnect(t); !strings.Contains(string(a.body), g.url+"/connect/"+s.Slug) {
				t.Errorf("H04 the link goes elsewhere: %s", a.body)
			}
		},
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///secret"}}`: func(a answer) {
			if !strings.Contains(string(a.body), `"error"`) {
				t.Errorf("a resource is read: %d %s", a.status, a.body)
			}
		},
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`: func(a answer) { a.want(t, http.StatusAccepted) },
	} {
		check(g.send(http.MethodPost, s.path, g.token(alice), message, hostile...))
	}
	g.send(http.MethodDelete, s.path, g.token(alice), nil, hostile...)
	upstream.wantNothing(t)
}

// TestAttackNoCredentialRefused checks H01 where users who are not connected are refused.
func TestAttackNoCredentialRefused(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{refuse: true})
	upstream := answering(t)
	s := g.createServer(upstream.url, bearerEntry())
	for _, tc := range []struct{ name, method, path, body string }{
		{"H01 POST /mcp", http.MethodPost, s.path, pingMessage},
		{"H01 GET /mcp", http.MethodGet, s.path, ""},
		{"H01 DELETE /mcp", http.MethodDelete, s.path, ""},
		{"H01 GET /sse", http.MethodGet, "/sse/" + s.Slug, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var body any
			if tc.body != "" {
				body = tc.body
			}
			a := g.send(tc.method, tc.path, g.token(alice), body, "X-Forwarded-Host", "evil.example")
			a.wantError(t, http.StatusForbidden, "ServerNotConnected")
			var refusal struct {
				Details struct {
					ConnectURL string `json:"connect_url"`
				}
			}
			a.decode(t, &refusal)
			if refusal.Details.ConnectURL != g.url+"/connect/"+s.Slug {
				t.Errorf("H04 the link goes to %q", refusal.Details.ConnectURL)
			}
			upstream.wantNothing(t)
		})
	}
}

// TestAttackDoors checks that requests of foreign pages, under foreign hosts and with tricks of browsers are refused
// before anything happens on behalf of the caller.
func TestAttackDoors(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := answering(t)
	s := g.createServer(upstream.url, nil)
	token := g.token(alice)
	for _, tc := range []struct {
		name   string
		status int
		header []string
	}{
		{"H15 foreign origin", 403, []string{"Origin", "https://evil.example"}},
		{"H15 null origin", 403, []string{"Origin", "null"}},
		{"H15 origin that begins like ours", 403, []string{"Origin", g.url + ".evil.example"}},
		{"H15 origin with a path", 403, []string{"Origin", g.url + "/x"}},
		{"H15 origin of another scheme", 403, []string{"Origin", strings.Replace(g.url, "http:", "https:", 1)}},
		{"H15 empty origin", 403, []string{"Origin", ""}},
		{"H15 our own origin", 200, []string{"Origin", g.url}},
		{"H06 health checker", 401, []string{"User-Agent", "GoogleHC/1.0", "Authorization", ""}},
		{"H06 kube-probe", 401, []string{"User-Agent", "kube-probe/1.30", "Authorization", ""}},
		{"H09 tracking tag of 8 KiB", 400, []string{"X-Mcp-Session-Id", strings.Repeat("a", 8<<10)}},
		{"H09 tracking tag of 257 characters", 400, []string{"X-Mcp-Session-Id", strings.Repeat("a", 257)}},
		{"H09 tracking tag that is not ASCII", 400, []string{"X-Mcp-Session-Id", "grüezi"}},
		{"H09 tracking tag with a blank", 400, []string{"X-Mcp-Session-Id", "a b"}},
		{"H09 tracking tag with quotes", 200, []string{"X-Mcp-Session-Id", `"'<>`}},
		{"SEP-2243 an argument called session-id", 200, []string{"Mcp-Param-Session-Id", "two words"}},
		{"H04 the host of X-Forwarded-Host", 200, []string{"X-Forwarded-Host", "evil.example"}},
		{"H15 no Origin", 200, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			upstream.forget()
			header := append([]string{"Accept", bothKinds}, tc.header...)
			a := g.send(http.MethodPost, s.path, token, pingMessage, header...)
			a.want(t, tc.status)
			if tc.status != http.StatusOK {
				upstream.wantNothing(t)
			}
			if tc.status == http.StatusUnauthorized {
				if got, want := a.header.Get("WWW-Authenticate"), `resource_metadata="`+g.url+`/.well-known/oauth-protected-resource/mcp/`+s.Slug+`"`; !strings.Contains(got, want) {
					t.Errorf("challenge %q without %s", got, want)
				}
			}
		})
	}
	t.Run("H15 refused before the token is looked at", func(t *testing.T) {
		g.send(http.MethodPost, s.path, "", pingMessage, "Origin", "https://evil.example").wantError(t, 403, "Forbidden")
	})
	raw := func(host, lines string) string {
		return "POST " + s.path + " HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer " + token + "\r\nContent-Type: application/json\r\n" +
			"Connection: close\r\n" + lines + lengthLine(pingMessage) + "\r\n" + pingMessage
	}
	own := strings.TrimPrefix(g.url, "http://")
	for _, tc := range []struct {
		name, raw string
		status    int
	}{
		{"H15 rebound host", raw("evil.example", ""), 403},
		{"H15 rebound host with our port", raw("evil.example:80", ""), 403},
		{"H15 two origins", raw(own, "Origin: "+g.url+"\r\nOrigin: https://evil.example\r\n"), 403},
		{"H15 two hosts", strings.Replace(raw(own, ""), "Host: ", "Host: evil.example\r\nHost: ", 1), 400},
		{"H07 folded Authorization", strings.Replace(raw(own, ""), "Bearer ", "Bearer\r\n ", 1), 400},
		{"H07 folded by a tab", raw(own, "User-Agent: x\r\n\tAuthorization: Bearer x\r\n"), 400},
		{"H07 folded Transfer-Encoding", raw(own, "Transfer-Encoding:\r\n chunked\r\n"), 400},
		{"J01 two Authorization headers", raw(own, "Authorization: Bearer "+token+"\r\n"), 401},
	} {
		t.Run(tc.name, func(t *testing.T) {
			upstream.forget()
			answers := g.exchange(tc.raw)
			if len(answers) != 1 || answers[0].status != tc.status {
				t.Fatalf("answered %v instead of %d", statuses(answers), tc.status)
			}
			upstream.wantNothing(t)
		})
	}
}

// TestAttackSmuggling checks that whatever the framing, the upstream receives at most one request, the one that was
// judged, and nothing that was hidden behind it (H07).
func TestAttackSmuggling(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := answering(t)
	s := g.createServer(upstream.url, nil)
	token := g.token(alice)
	chunked := strconv.FormatInt(int64(len(pingMessage)), 16) + "\r\n" + pingMessage + "\r\n0\r\n\r\n"
	hidden := "POST /mcp/smuggled HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
	for _, tc := range []struct{ name, lines, body string }{
		{"H07 CL.TE", "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", chunked},
		{"H07 TE.CL", "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", chunked + hidden},
		{"H07 TE.TE", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", chunked},
		{"H07 chunked, identity", "Transfer-Encoding: chunked, identity\r\n", chunked},
		{"H07 xchunked", "Transfer-Encoding: xchunked\r\n", chunked},
		{"H07 blank before the colon", "Transfer-Encoding : chunked\r\n", chunked},
		{"H07 folded line", "Transfer-Encoding:\r\n chunked\r\n", chunked},
		{"H07 two lengths", "Content-Length: 5\r\n" + lengthLine(pingMessage), pingMessage},
		{"H07 length +5", "Content-Length: +" + strconv.Itoa(len(pingMessage)) + "\r\n", pingMessage},
		{"H07 negative length", "Content-Length: -1\r\n", pingMessage},
		{"H07 CL.0", "Content-Length: 0\r\n", hidden},
		{"H07 length too short", "Content-Length: 10\r\n", pingMessage + hidden},
		{"H07 bare LF in chunks", "Transfer-Encoding: chunked\r\n", strings.ReplaceAll(chunked, "\r\n", "\n")},
		{"H07 chunk extension bomb", "Transfer-Encoding: chunked\r\n", "1;" + strings.Repeat("a", 64<<10) + "\r\n{\r\n0\r\n\r\n"},
		{"H07 chunk size with 0x", "Transfer-Encoding: chunked\r\n", "0x" + chunked},
		{"H07 chunk size beyond int64", "Transfer-Encoding: chunked\r\n", "ffffffffffffffff1\r\n" + pingMessage + "\r\n0\r\n\r\n"},
		{"H07 Expect: 100-continue", "Expect: 100-continue\r\n" + lengthLine(pingMessage), pingMessage},
		{"H13 trailers", "Transfer-Encoding: chunked\r\nTrailer: Authorization, X-User-Id, Host\r\n",
			strings.TrimSuffix(chunked, "\r\n") + "Authorization: Bearer stolen\r\nX-User-Id: admin\r\nHost: evil.example\r\n\r\n"},
		{"H12 websocket upgrade", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n" + lengthLine(pingMessage), pingMessage},
		{"H12 h2c upgrade", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n" + lengthLine(pingMessage), pingMessage},
		{"H14 headers of 2 MiB", "X-Padding: " + strings.Repeat("a", 2<<20) + "\r\n" + lengthLine(pingMessage), pingMessage},
		{"H14 10,000 headers", strings.Repeat("X-A: b\r\n", 10_000) + lengthLine(pingMessage), pingMessage},
		{"H08 line feed in a header", "X-Mcp-Session-Id: a\n\tb\r\n" + lengthLine(pingMessage), pingMessage},
		{"H08 NUL in a header", "X-Mcp-Session-Id: a\x00b\r\n" + lengthLine(pingMessage), pingMessage},
	} {
		t.Run(tc.name, func(t *testing.T) {
			upstream.forget()
			answers := g.exchange(g.rawPost(s.path, token, tc.lines, tc.body) + g.closing())
			if len(answers) == 0 {
				t.Fatal("no answer")
			}
			switch first := answers[0].status; {
			case first == http.StatusOK, first == http.StatusContinue:
			case first >= 400 && first < 500, first == http.StatusNotImplemented:
			default:
				t.Errorf("answered %v", statuses(answers))
			}
			requests := upstream.all()
			if len(requests) > 1 {
				t.Fatalf("the upstream got %d requests", len(requests))
			}
			for _, request := range requests {
				if request.body != pingMessage || request.header.Get("Upgrade") != "" || request.header.Get("X-User-Id") != "" || request.header.Get("Authorization") != "" {
					t.Errorf("the upstream got %+v", request)
				}
			}
			if wire := upstream.bytes(); strings.Contains(wire, "smuggled") || strings.Contains(wire, "stolen") {
				t.Errorf("what was hidden reached the upstream: %s", wire)
			}
			for _, later := range answers[1:] {
				if later.status != http.StatusOK && later.status/100 != 4 {
					t.Errorf("answered %v", statuses(answers))
				}
			}
		})
	}
}

// TestAttackTunnels checks H12 and methods that are none.
func TestAttackTunnels(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := answering(t)
	s := g.createServer(upstream.url, nil)
	token := g.token(alice)
	own := strings.TrimPrefix(g.url, "http://")
	for _, tc := range []struct {
		name, line, lines string
		status            []int
	}{
		{"H12 CONNECT", "CONNECT " + own, "", []int{400, 401, 403, 404, 405}},
		{"H12 CONNECT to the path", "CONNECT " + s.path, "", []int{400, 404, 405}},
		{"R02 TRACE", "TRACE " + s.path, "", []int{405}},
		{"R02 PUT", "PUT " + s.path, "", []int{405}},
		{"R02 lower-case get", "get " + s.path, "", []int{405}},
		{"R02 HEAD on /sse", "HEAD /sse/" + s.Slug, "", []int{405}},
		{"R02 POST on /sse", "POST /sse/" + s.Slug, "Content-Length: 0\r\n", []int{405}},
		{"H12 websocket on /sse", "GET /sse/" + s.Slug, "Upgrade: websocket\r\nConnection: Upgrade\r\n", []int{502}}, // it has no events
		{"P02 upper-case route", "GET /MCP/" + s.Slug, "", []int{404}},
		{"P02 upper-case name", "GET /mcp/" + strings.ToUpper(s.Slug), "", []int{422}},
		{"P01 encoded slash", "GET /mcp%2f" + s.Slug, "", []int{404}},
		{"P01 encoded slash in the name", "GET /mcp/a%2f" + s.Slug, "", []int{404}},
		{"P01 double encoding", "GET /mcp/%252e%252e", "", []int{404, 422}},
		{"P01 dot segments", "GET /mcp/../mcp/" + s.Slug, "", []int{404, 422}},
		{"P01 double slash", "GET //mcp/" + s.Slug, "", []int{404}},
		{"P01 slash at the end", "GET " + s.path + "/", "", []int{404}},
		{"P05 path suffix", "GET " + s.path + "/admin", "", []int{404}},
		{"P01 semicolon", "GET " + s.path + ";x", "", []int{422}},
		{"P01 NUL", "GET " + s.path + "%00", "", []int{404, 422}},
		{"P01 H08 line end", "GET " + s.path + "%0d%0aX-A:%20b", "", []int{404, 422}},
		{"H17 placeholder for a name", "GET /mcp/{env.ATTACK_SECRET}", "", []int{404, 422}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			upstream.forget()
			answers := g.exchange(tc.line + " HTTP/1.1\r\nHost: " + own + "\r\nAuthorization: Bearer " + token + "\r\n" +
				tc.lines + "\r\n" + g.closing())
			if len(answers) == 0 {
				t.Fatal("no answer")
			}
			first := answers[0]
			if !slices.Contains(tc.status, first.status) {
				t.Errorf("answered %v instead of %v: %s", statuses(answers), tc.status, first.body)
			}
			if first.status == http.StatusMethodNotAllowed && first.header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
			upstream.wantNothing(t)
		})
	}
}

// TestAttackMirrors checks that headers that mirror the message reach the upstream in the revision that has them, and
// for what they were held against. Servers and proxies route by them: another name there would be another tool than
// policies were asked about.
func TestAttackMirrors(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := answering(t)
	s := g.createServer(upstream.url, nil)
	token := g.token(alice)
	const (
		meta   = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
		list   = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`
		told   = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,` + meta + `}}`
		modern = "MCP-Protocol-Version: 2026-07-28\r\n"
	)
	inBern := strings.Replace(modernCall, `"arguments":{}`, `"arguments":{"city":"Bern"}`, 1)
	for _, tc := range []struct{ name, body, lines, want string }{
		{"2026-07-28, a call", inBern, modern + "Mcp-Method: tools/call\r\nMcp-Name: echo\r\nMcp-Param-City: Bern\r\n", "Mcp-Method Mcp-Name Mcp-Param-City Mcp-Protocol-Version"},
		{"2026-07-28, a call with what its arguments do not say", inBern, modern + "Mcp-Method: tools/call\r\nMcp-Name: echo\r\nMcp-Param-City: Basel\r\n", "Mcp-Method Mcp-Name Mcp-Protocol-Version"},
		{"2026-07-28, a list with a name", list, modern + "Mcp-Method: tools/list\r\nMcp-Name: delete_everything\r\n", "Mcp-Method Mcp-Protocol-Version"},
		{"2026-07-28, a notification with an argument", told, modern + "Mcp-Method: notifications/cancelled\r\nMcp-Param-City: Bern\r\n", "Mcp-Method Mcp-Protocol-Version"},
		{"2026-07-28, a header that there is not", modernCall, modern + "Mcp-Method: tools/call\r\nMcp-Name: echo\r\nMcp-Admin: yes\r\n", "Mcp-Method Mcp-Name Mcp-Protocol-Version"},
		{"2025-11-25", echoCall, "MCP-Protocol-Version: 2025-11-25\r\nMcp-Method: tools/list\r\nMcp-Name: delete_everything\r\nMcp-Param-City: Bern\r\nMcp-Admin: yes\r\n", "Mcp-Protocol-Version"},
		{"no revision", echoCall, "Mcp-Method: tools/list\r\nMcp-Name: delete_everything\r\nMcp-Param-City: Bern\r\n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			upstream.forget()
			answers := g.exchange(g.rawPost(s.path, token, tc.lines+lengthLine(tc.body), tc.body) + g.closing())
			requests := upstream.all()
			if len(answers) == 0 || answers[0].status >= 300 || len(requests) != 1 {
				t.Fatalf("answered %+v, %d requests", answers, len(requests))
			}
			var got []string
			for name := range requests[0].header {
				if strings.HasPrefix(name, "Mcp-") {
					got = append(got, name)
				}
			}
			slices.Sort(got)
			if strings.Join(got, " ") != tc.want {
				t.Errorf("the upstream gets %q, want %q", got, tc.want)
			}
			if kind := requests[0].header.Get("Content-Type"); kind != "application/json" {
				t.Errorf("Content-Type %q", kind)
			}
		})
	}
	upstream.forget()
	g.send(http.MethodPost, s.path, token, pingMessage, "Accept", bothKinds, "Content-Type", "Application/JSON; charset=\"utf-8\"; x=y").want(t, http.StatusOK)
	if requests := upstream.all(); len(requests) != 1 || requests[0].header.Get("Content-Type") != "application/json" {
		t.Errorf("%+v", requests)
	}
}
