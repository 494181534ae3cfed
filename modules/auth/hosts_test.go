package auth_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHostAndOriginComeBeforeTheToken(t *testing.T) {
	g := newGateway(t, nil)
	token := "Authorization: Bearer " + g.token()
	for _, test := range []struct {
		name, host string
		lines      []string
		status     int
	}{
		{"ours", "gate.example.com", []string{token}, http.StatusAccepted},
		{"H15 rebinding name", "evil.tld", []string{token}, http.StatusForbidden},
		{"H15 rebinding name, no token", "evil.tld", nil, http.StatusForbidden},
		{"H15 loopback", "127.0.0.1", []string{token}, http.StatusForbidden},
		{"H04 forwarded host", "evil.tld", []string{token, "X-Forwarded-Host: gate.example.com", "Forwarded: host=gate.example.com"}, http.StatusForbidden},
		{"H15 origin", "gate.example.com", []string{token, "Origin: https://evil.tld"}, http.StatusForbidden},
		{"H15 origin, no token", "gate.example.com", []string{"Origin: https://evil.tld"}, http.StatusForbidden},
		{"H15 null", "gate.example.com", []string{token, "Origin: null"}, http.StatusForbidden},
		{"H15 empty", "gate.example.com", []string{token, "Origin:"}, http.StatusForbidden},
		{"H15 two origins", "gate.example.com", []string{token, "Origin: https://gate.example.com", "Origin: https://gate.example.com"}, http.StatusForbidden},
		{"H15 loopback in production", "gate.example.com", []string{token, "Origin: http://localhost:3000"}, http.StatusForbidden},
		{"the gateway's own origin", "gate.example.com", []string{token, "Origin: https://gate.example.com"}, http.StatusAccepted},
		{"an allowed origin", "gate.example.com:443", []string{token, "Origin: https://app.example.com"}, http.StatusAccepted},
		{"an allowed origin, no token", "gate.example.com", []string{"Origin: https://app.example.com"}, http.StatusUnauthorized},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, path := range []string{"/mcp/nothing", "/api/servers"} {
				if path == "/mcp/nothing" && test.status != http.StatusForbidden {
					continue
				}
				got := g.send("GET " + path + " HTTP/1.1\nHost: " + test.host + "\nConnection: close" + join(test.lines))
				if got.status != test.status {
					t.Errorf("%s: %d %s", path, got.status, got.body)
				}
				passed := len(g.calls()) == 1
				if passed != (test.status == http.StatusAccepted) {
					t.Errorf("%s: went on: %v", path, passed)
				}
				if got.status == http.StatusForbidden {
					got.service(t, http.StatusForbidden, "Forbidden")
					if cors := got.header.Get("Access-Control-Allow-Origin"); cors != "" || got.header.Get("WWW-Authenticate") != "" {
						t.Errorf("%s: headers %v", path, got.header)
					}
				}
			}
		})
	}
	if n := g.issuer.Fetches.Load(); n != 1 {
		t.Errorf("H15 the keys were fetched %d times", n)
	}
}

func TestPagesOfAllowedOrigins(t *testing.T) {
	g := newGateway(t, nil)
	for _, got := range []answer{
		g.get("/api/servers", "Origin: https://app.example.com", "Authorization: Bearer "+g.token()),
		g.get("/mcp/demo", "Origin: https://app.example.com"), // a page must be able to read how to log in
	} {
		if diff := cmp.Diff([]string{"https://app.example.com", "Mcp-Session-Id, WWW-Authenticate, MCP-Protocol-Version, Retry-After, RateLimit, RateLimit-Policy, " +
			"X-Request-Id, Request-Id, X-Durward-Model, X-Durward-Route-Reason", "Origin", ""}, []string{
			got.header.Get("Access-Control-Allow-Origin"), got.header.Get("Access-Control-Expose-Headers"), got.header.Get("Vary"),
			got.header.Get("Access-Control-Allow-Credentials"),
		}); diff != "" {
			t.Errorf("%d (-want +got)\n%s", got.status, diff)
		}
	}
	g.calls()
	preflight := func(path string, lines ...string) answer {
		return g.send("OPTIONS " + path + " HTTP/1.1\nHost: gate.example.com\nConnection: close" + join(lines))
	}
	got := preflight("/mcp/demo", "Origin: https://app.example.com", "Access-Control-Request-Method: POST",
		"Access-Control-Request-Headers: authorization,mcp-param-issue_id, X-Evil, mcp-param-, mcp-param-a b,Mcp-Param-Team")
	if got.status != http.StatusNoContent || got.body != "" {
		t.Errorf("%d %s", got.status, got.body)
	}
	allowed := got.header.Get("Access-Control-Allow-Headers")
	if !strings.HasSuffix(allowed, ", mcp-param-issue_id, Mcp-Param-Team") || !strings.HasPrefix(allowed, "Authorization, Content-Type, Accept, Mcp-Session-Id") {
		t.Errorf("allowed headers %q", allowed)
	}
	for _, header := range []string{"MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Last-Event-ID"} {
		if !strings.Contains(allowed, ", "+header+", ") {
			t.Errorf("W33 %s is not allowed: %q", header, allowed)
		}
	}
	for _, method := range []string{"GET", "POST", "DELETE"} {
		if methods := got.header.Get("Access-Control-Allow-Methods"); !strings.Contains(methods, method) {
			t.Errorf("W33 %s is not allowed: %q", method, methods)
		}
	}
	got = preflight("/api/llm-gateway/v1/messages", "Origin: https://app.example.com", "Access-Control-Request-Method: POST",
		"Access-Control-Request-Headers: anthropic-version,x-api-key,x-stainless-lang,x-stainless-,x-stainless-a b")
	allowed = got.header.Get("Access-Control-Allow-Headers")
	if got.status != http.StatusNoContent || !strings.HasSuffix(allowed, ", x-stainless-lang") || !strings.Contains(allowed, "Anthropic-Version") {
		t.Errorf("a client of models: %d, allowed headers %q", got.status, allowed)
	}
	// W33: what instrumentation adds to every request of a page.
	asked := "b3,elastic-apm-traceparent,newrelic,request-id,sentry-trace,uber-trace-id,x-b3-traceid,x-datadog-trace-id,X-Amzn-Trace-Id"
	got = preflight("/mcp/demo", "Origin: https://app.example.com", "Access-Control-Request-Method: POST",
		"Access-Control-Request-Headers: authorization,baggage,content-type,traceparent,tracestate,"+asked+",b3x,x-forwarded-for,x-datadog-")
	allowed = got.header.Get("Access-Control-Allow-Headers")
	if got.status != http.StatusNoContent || !strings.HasSuffix(allowed, ", Traceparent, Tracestate, Baggage, "+strings.ReplaceAll(asked, ",", ", ")) {
		t.Errorf("an instrumented page: %d, allowed headers %q", got.status, allowed)
	}
	if got := preflight("/mcp/demo", "Origin: https://evil.tld", "Access-Control-Request-Method: POST"); got.status != http.StatusForbidden || got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("foreign preflight: %d %v", got.status, got.header)
	}
	preflight("/api/servers", "Origin: https://app.example.com").service(t, http.StatusUnauthorized, "Unauthorized") // OPTIONS alone is no preflight
	preflight("/api/servers", "Access-Control-Request-Method: POST").service(t, http.StatusUnauthorized, "Unauthorized")
	if n := len(g.calls()); n != 0 {
		t.Errorf("%d preflights went on", n)
	}
}

func TestPaths(t *testing.T) {
	g := newGateway(t, nil)
	token := "Authorization: Bearer " + g.token()
	for _, test := range []struct {
		name, path string
		status     int // http.StatusAccepted: the request is passed on as it is, to be judged by the next handlers
	}{
		{"P01 encoded slash", "/mcp%2fdemo", http.StatusNotFound},
		{"P01 encoded slash in the name", "/mcp/a%2Fb", http.StatusNotFound},
		{"P01 encoded backslash", "/mcp/a%5cb", http.StatusNotFound},
		{"P01 encoded letter", "/%6dcp/demo", http.StatusNotFound},
		{"P01 encoded dot", "/mcp/%2e%2e/api/servers", http.StatusNotFound},
		{"P01 health, encoded", "/%68ealthz", http.StatusNotFound},
		{"P01 callback, encoded", "/api/oauth%2Fcallback", http.StatusNotFound},
		{"P01 encoded twice", "/mcp/a%252fb", http.StatusUnprocessableEntity},
		{"P01 NUL", "/mcp/a%00", http.StatusUnprocessableEntity},
		{"P01 line break", "/mcp/a%0A", http.StatusUnprocessableEntity},
		{"P01 fragment", "/mcp/a%23x", http.StatusUnprocessableEntity},
		{"P01 semicolon", "/mcp/a;x=1", http.StatusUnprocessableEntity},
		{"P01 two slashes", "//mcp/demo", http.StatusAccepted},
		{"P01 dot segment", "/./mcp/demo", http.StatusAccepted},
		{"P01 slash at the end", "/mcp/demo/", http.StatusNotFound},
		{"P02 capitals in the route", "/MCP/demo", http.StatusAccepted},
		{"P02 capitals in the name", "/mcp/FOO", http.StatusUnprocessableEntity},
		{"P03 empty", "/mcp/", http.StatusUnprocessableEntity},
		{"P03 one character", "/mcp/a", http.StatusNotFound},
		{"P03 64 characters", "/mcp/" + strings.Repeat("a", 64), http.StatusUnprocessableEntity},
		{"P03 8 KiB", "/mcp/" + strings.Repeat("a", 8<<10), http.StatusUnprocessableEntity},
		{"P03 underscore", "/mcp/a_b", http.StatusUnprocessableEntity},
		{"P03 dot", "/sse/a.b", http.StatusUnprocessableEntity},
		{"P03 accent", "/mcp/a%C3%A9", http.StatusUnprocessableEntity},
		{"P03 full width", "/mcp/%EF%BD%81", http.StatusUnprocessableEntity},
		{"P03 Cyrillic", "/mcp/%D0%B0", http.StatusUnprocessableEntity},
		{"P03 Kelvin", "/mcp/%E2%84%AA", http.StatusUnprocessableEntity},
		{"P03 zero width", "/mcp/a%E2%80%8B", http.StatusUnprocessableEntity},
		{"P03 blank", "/mcp/%20a", http.StatusUnprocessableEntity},
		{"H17 placeholder", "/mcp/%7Benv.HOME%7D", http.StatusUnprocessableEntity},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := g.get(test.path, token)
			if got.status != test.status {
				t.Errorf("%d %s", got.status, got.body)
			}
			for _, call := range g.calls() {
				if test.status != http.StatusAccepted || call.Server != nil {
					t.Errorf("went on with server %v", call.Server)
				}
			}
			if test.status == http.StatusUnprocessableEntity {
				var body struct {
					Detail []struct {
						Loc       []any
						Type, Msg string
					}
				}
				if err := json.Unmarshal([]byte(got.body), &body); err != nil || len(body.Detail) != 1 {
					t.Fatalf("%v: %s", err, got.body)
				}
				if diff := cmp.Diff([]any{"path", "mcp_server_name"}, body.Detail[0].Loc); diff != "" || body.Detail[0].Type != "string_pattern_mismatch" {
					t.Errorf("%s", got.body)
				}
			}
		})
	}
}

func TestWellKnown(t *testing.T) {
	g := newGateway(t, nil)
	want := func(name string) string {
		return `{"resource":"https://gate.example.com/mcp/` + name + `","authorization_servers":["` + g.issuer.URL +
			`"],"bearer_methods_supported":["header"],"resource_name":"` + name + `"}`
	}
	for _, test := range []struct {
		name, path string
		lines      []string
		status     int
		body       string
	}{
		{"a name", "/.well-known/oauth-protected-resource/mcp/demo", nil, http.StatusOK, want("demo")},
		{"a name that no server has", "/.well-known/oauth-protected-resource/mcp/nothing", nil, http.StatusOK, want("nothing")},
		{"with a token that is none", "/.well-known/oauth-protected-resource/mcp/demo", []string{"Authorization: Bearer x"}, http.StatusOK, want("demo")},
		{"from any page", "/.well-known/oauth-protected-resource/mcp/demo", []string{"Origin: https://evil.tld"}, http.StatusOK, want("demo")},
		{"the root", "/.well-known/oauth-protected-resource", nil, http.StatusNotFound, ""},
		{"the root with a slash", "/.well-known/oauth-protected-resource/", nil, http.StatusNotFound, ""},
		{"no name", "/.well-known/oauth-protected-resource/mcp/", nil, http.StatusNotFound, ""},
		{"no name that a server can have", "/.well-known/oauth-protected-resource/mcp/Demo", nil, http.StatusNotFound, ""},
		{"more than a name", "/.well-known/oauth-protected-resource/mcp/demo/x", nil, http.StatusNotFound, ""},
		{"a stream", "/.well-known/oauth-protected-resource/sse/demo", nil, http.StatusNotFound, ""},
		{"what an authorization server has", "/.well-known/oauth-authorization-server", nil, http.StatusNotFound, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := g.get(test.path, test.lines...)
			if got.status != test.status || (test.body != "" && got.body != test.body) {
				t.Errorf("%d %s", got.status, got.body)
			}
			if got.header.Get("Access-Control-Allow-Origin") != "*" || got.header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("headers %v", got.header)
			}
		})
	}
	document := " /.well-known/oauth-protected-resource/mcp/demo HTTP/1.1\nHost: gate.example.com\nConnection: close"
	if got := g.send("OPTIONS" + document + "\nOrigin: https://any.tld\nAccess-Control-Request-Method: GET"); got.status != http.StatusNoContent ||
		got.header.Get("Access-Control-Allow-Headers") != "MCP-Protocol-Version" {
		t.Errorf("preflight: %d %v", got.status, got.header)
	}
	got := g.send("POST" + document + "\nContent-Length: 0")
	got.service(t, http.StatusMethodNotAllowed, "MethodNotAllowed")
	if got.header.Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("Allow %q", got.header.Get("Allow"))
	}
	g.send("GET /.well-known/oauth-protected-resource/mcp/demo HTTP/1.1\nHost: evil.tld\nConnection: close").service(t, http.StatusForbidden, "Forbidden")
	if n := len(g.calls()); n != 0 {
		t.Errorf("%d requests went on", n)
	}
	if n := g.issuer.Fetches.Load(); n != 0 {
		t.Error("a document took a look at keys")
	}
}

func TestPublicPathsPassWithoutACaller(t *testing.T) {
	g := newGateway(t, nil)
	for _, path := range []string{"/healthz", "/readyz", "/api/oauth/callback?state=x", "/api/oauth/undo", "/api/oauth/client-metadata.json"} {
		got := g.get(path, "Authorization: Bearer "+g.token())
		calls := g.calls()
		if got.status != http.StatusAccepted || len(calls) != 1 || calls[0].Caller != nil {
			t.Errorf("%s: %d, %d calls", path, got.status, len(calls))
		}
		host := g.send("GET " + path + " HTTP/1.1\nHost: 10.0.0.7\nConnection: close")
		if health := path == "/healthz" || path == "/readyz"; (host.status == http.StatusAccepted) != health {
			t.Errorf("%s under another name: %d", path, host.status)
		}
		g.calls()
	}
	for _, path := range []string{"/healthz/", "/Healthz", "/healthz/x", "/api/oauth/callback/", "/api/oauth/callback/../../servers", "/api/oauth/", "//healthz"} {
		if got := g.get(path); got.status != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, got.status)
		}
	}
	if n := len(g.calls()); n != 0 {
		t.Errorf("%d requests went on", n)
	}
}

func TestPanicsEndTheRequestAndNothingElse(t *testing.T) {
	g := newGateway(t, nil)
	token := "Authorization: Bearer " + g.token()
	g.then = func(http.ResponseWriter, *http.Request) { panic("canary-in-panic") }
	got := g.get("/api/servers", token)
	got.service(t, http.StatusInternalServerError, "InternalServerError")
	if strings.Contains(got.body, "canary") || strings.Contains(g.logged(), "canary-in-panic") {
		t.Error("the value of a panic can be a secret")
	}
	if !strings.Contains(g.logged(), "a handler panicked") || !strings.Contains(g.logged(), "hosts_test.go") {
		t.Error("the log does not say where")
	}
	g.then = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: half"))
		_ = http.NewResponseController(w).Flush()
		panic("canary-in-panic")
	}
	if got := g.get("/api/servers", token); !strings.HasPrefix(got.body, "data: half<") {
		t.Errorf("an answer that broke off looks whole: %d %q", got.status, got.body)
	}
	g.then = nil
	if got := g.get("/api/servers", token); got.status != http.StatusAccepted {
		t.Errorf("the next request: %d %s", got.status, got.body)
	}
}
