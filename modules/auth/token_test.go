package auth_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/modules/app"
)

const metadata = `resource_metadata="https://gate.example.com/.well-known/oauth-protected-resource/mcp/demo"`

func TestBearer(t *testing.T) {
	g := newGateway(t, nil)
	token := g.token()
	for _, test := range []struct {
		name      string
		lines     []string
		query     string
		challenge string // "": the request passes
	}{
		{"J01 no Authorization", nil, "", "Bearer"},
		{"J01 empty", []string{"Authorization:"}, "", "Bearer"},
		{"J01 blank", []string{"Authorization:   "}, "", "Bearer"},
		{"J01 Bearer alone", []string{"Authorization: Bearer"}, "", "Bearer"},
		{"J01 two blanks", []string{"Authorization: Bearer  " + token}, "", `Bearer error="invalid_token"`},
		{"J01 a tab", []string{"Authorization: Bearer\t" + token}, "", "Bearer"},
		{"J01 two tokens", []string{"Authorization: Bearer " + token + " " + token}, "", `Bearer error="invalid_token"`},
		{"J01 a list", []string{"Authorization: Bearer " + token + ",Bearer " + token}, "", `Bearer error="invalid_token"`},
		{"J01 two headers", []string{"Authorization: Bearer " + token, "Authorization: Bearer " + token}, "", `Bearer error="invalid_token"`},
		{"J01 two headers, one of them empty", []string{"Authorization:", "Authorization: Bearer " + token}, "", `Bearer error="invalid_token"`},
		{"J01 the token alone", []string{"Authorization: " + token}, "", "Bearer"},
		{"J01 lower case", []string{"authorization: bearer " + token}, "", ""},
		{"J01 upper case", []string{"AUTHORIZATION: BEARER " + token}, "", ""},
		{"J01 as it should be", []string{"Authorization: Bearer " + token}, "", ""},
		{"J02 Basic", []string{"Authorization: Basic " + token}, "", "Bearer"},
		{"J02 DPoP", []string{"Authorization: DPoP " + token}, "", "Bearer"},
		{"J02 DPoP and Bearer", []string{"Authorization: DPoP " + token, "Authorization: Bearer " + token}, "", `Bearer error="invalid_token"`},
		{"J03 in the query", nil, "?access_token=" + token, "Bearer"},
		{"J03 in a cookie", []string{"Cookie: access_token=" + token}, "", "Bearer"},
		{"J03 in a form", []string{"Content-Type: application/x-www-form-urlencoded", "Content-Length: 0"}, "?access_token=" + token, "Bearer"},
		{"H03 in another header", []string{"X-Api-Key: " + token, "Proxy-Authorization: Bearer " + token, "Authorization_: Bearer " + token}, "", "Bearer"},
		{"J16 no token at all", []string{"Authorization: Bearer x"}, "", `Bearer error="invalid_token"`},
		{"J22 dots", []string{"Authorization: Bearer " + strings.Repeat(".", 9000)}, "", `Bearer error="invalid_token"`},
		{"J17 another audience", []string{"Authorization: Bearer " + g.issuer.Token("https://other.example.com", nil)}, "", `Bearer error="invalid_token"`},
		{"J17 the address of an MCP server, elsewhere", []string{"Authorization: Bearer " + g.issuer.Token(public+"/mcp/demo", nil)}, "", `Bearer error="invalid_token"`},
		{"J13 expired", []string{"Authorization: Bearer " + g.issuer.Token(public, object{"exp": time.Now().Add(-time.Hour).Unix(), "iat": time.Now().Add(-2 * time.Hour).Unix()})}, "", `Bearer error="invalid_token"`},
		{"J16 another issuer", []string{"Authorization: Bearer " + g.issuer.Token(public, object{"iss": "https://evil.example.com"})}, "", `Bearer error="invalid_token"`},
		{"J19 no subject", []string{"Authorization: Bearer " + g.issuer.Token(public, object{"sub": nil})}, "", `Bearer error="invalid_token"`},
		{"H06 a health checker", []string{"User-Agent: kube-probe/1.30"}, "", "Bearer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for path, more := range map[string]string{"/api/servers": "", "/sse/Demo": "", "/mcp/demo": metadata, "/mcp/Demo": ""} {
				if test.challenge == "" && path != "/api/servers" || strings.HasPrefix(test.name, "J17 the address") && path == "/mcp/demo" {
					continue
				}
				got := g.get(path+test.query, test.lines...)
				calls := g.calls()
				if test.challenge == "" {
					if got.status != http.StatusAccepted || len(calls) != 1 || calls[0].Caller == nil {
						t.Errorf("%s: %d %s", path, got.status, got.body)
					}
					continue
				}
				got.service(t, http.StatusUnauthorized, "Unauthorized")
				if sent := test.challenge != "Bearer"; sent != strings.Contains(got.body, "log in again") {
					t.Errorf("%s: %s", path, got.body)
				}
				want := test.challenge
				if more != "" {
					want += map[bool]string{true: ", ", false: " "}[strings.Contains(want, "error")] + more
				}
				if challenges := got.header.Values("WWW-Authenticate"); len(challenges) != 1 || challenges[0] != want {
					t.Errorf("%s: challenge %q, want %q", path, challenges, want)
				}
				if len(calls) != 0 {
					t.Errorf("%s: the request went on", path)
				}
			}
		})
	}
	// The access log holds the query as it was sent; the sample configurations filter it.
	for line := range strings.Lines(g.logged()) {
		if !strings.Contains(line, "access_token=") && strings.Contains(line, token[len(token)-40:]) && !strings.Contains(line, "X-Api-Key") {
			t.Errorf("J03 the log holds a token: %s", line)
		}
	}
}

func TestTokenOfOneServerIsGoodThereOnly(t *testing.T) {
	g := newGateway(t, nil)
	line := "Authorization: Bearer " + g.issuer.Token(public+"/mcp/demo", nil)
	g.get("/mcp/demo", line).service(t, http.StatusNotFound, "ServerNotFound") // the token is good; there is no such server
	for _, path := range []string{"/mcp/demo2", "/mcp/dem", "/sse/demo", "/api/servers", "/mcp/demo//", "//mcp/demo"} {
		if got := g.get(path, line); got.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	g.get("/mcp/demo", line).service(t, http.StatusNotFound, "ServerNotFound")
}

func TestCallers(t *testing.T) {
	g := newGateway(t, nil)
	for _, test := range []struct {
		name   string
		claims object
		status int
		error  string
	}{
		{"J21 no organization", object{"org_id": nil}, http.StatusForbidden, "Forbidden"},
		{"J21 two organizations", object{"org_id": []string{"0192f0c1-5bd2-7000-8000-0000000000aa", "0192f0c1-5bd2-7000-8000-0000000000bb"}}, http.StatusForbidden, "Forbidden"},
		{"J21 an organization that is no text", object{"org_id": 7}, http.StatusForbidden, "Forbidden"},
		{"azp and client_id differ", object{"client_id": "another"}, http.StatusUnauthorized, "Unauthorized"},
		{"in order", nil, http.StatusAccepted, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := g.get("/api/servers", "Authorization: Bearer "+g.issuer.Token(public, test.claims))
			if test.error != "" {
				got.service(t, test.status, test.error)
				if len(g.calls()) != 0 {
					t.Error("the request went on")
				}
				return
			}
			if got.status != test.status {
				t.Errorf("%d %s", got.status, got.body)
			}
			g.calls()
		})
	}
}

func TestIdentityComesFromTheTokenAlone(t *testing.T) {
	g := newGateway(t, nil)
	var lines []string
	for _, name := range []string{"X-Org-Id", "X-Tenant", "X-User-Id", "X-Organization-Id", "X-Role", "X-Roles", "X-MCP-User", "X-MCP-Server", "X-Durward-User",
		"Durward-Org", "X-Forwarded-User", "Remote-User", "X-Mcp-Session-Id"} {
		lines = append(lines, name+": admin-of-everything")
	}
	got := g.get("/api/servers?organization_id=admin-of-everything", append(lines, "Authorization: Bearer "+g.token())...)
	calls := g.calls()
	if got.status != http.StatusAccepted || len(calls) != 1 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	who := calls[0].Caller
	if who.OrganizationID != "0192f0c1-5bd2-7000-8000-0000000000aa" || who.UserID != "0192f0c1-5bd2-7000-8000-00000000a11c" || who.Admin || len(who.Roles) != 0 || who.Agent != "agent" {
		t.Errorf("O09, H16: %+v", who)
	}
}

func TestIssuerThatIsAwayIsNotAnonymous(t *testing.T) {
	g := newGateway(t, nil)
	g.issuer.SetDown(true)
	got := g.get("/mcp/demo", "Authorization: Bearer "+g.token())
	got.service(t, http.StatusServiceUnavailable, "Unavailable") // J28, J32
	if got.header.Get("Retry-After") == "" || got.header.Get("WWW-Authenticate") != "" {
		t.Errorf("headers %v", got.header)
	}
	if len(g.calls()) != 0 {
		t.Error("the request went on")
	}
	if strings.Contains(got.body, g.issuer.URL) {
		t.Errorf("J33 the answer says why: %s", got.body)
	}
}

func TestAccessLogSaysWhoAndWhat(t *testing.T) {
	g := newGateway(t, nil)
	g.then = func(w http.ResponseWriter, r *http.Request) {
		call, _ := app.CallOf(r)
		call.Log.Method, call.Log.Tool, call.Log.Session = "tools/call", "echo", "tag"
		w.WriteHeader(http.StatusAccepted)
	}
	g.get("/api/servers", "Authorization: Bearer "+g.token())
	g.then = nil
	g.get("/api/directory", "Authorization: Bearer nobody")
	stopped := g.stop()
	fields := make(map[string]map[string]any) // by path
	for line := range strings.Lines(stopped) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if request, ok := entry["request"].(map[string]any); ok {
			fields[request["uri"].(string)] = entry
		}
	}
	for name, want := range map[string]any{
		"org": "0192f0c1-5bd2-7000-8000-0000000000aa", "user": "0192f0c1-5bd2-7000-8000-00000000a11c", "agent": "agent",
		"method": "tools/call", "tool": "echo", "session": "tag", "user_id": "0192f0c1-5bd2-7000-8000-00000000a11c",
	} {
		if got := fields["/api/servers"][name]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
		if got, ok := fields["/api/directory"][name]; ok && got != "" {
			t.Errorf("a refused request has %s %v", name, got)
		}
	}
	if strings.Contains(stopped, "alice@example.test") {
		t.Error("the log holds an address")
	}
}
