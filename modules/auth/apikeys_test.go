package auth_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/apikey"
	"github.com/durward-gateway/durward/internal/identity/bruteforce"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/storage"
)

// keyOf makes a key of the user whose token the gateway's issuer gives out.
func (g *gateway) keyOf(scopes ...string) (raw string, stored storage.APIKey) {
	g.t.Helper()
	if got := g.get("/api/servers", "Authorization: Bearer "+g.token()); got.status != http.StatusAccepted {
		g.t.Fatalf("%d %s", got.status, got.body)
	}
	calls := g.calls()
	core, who := calls[0].Core, calls[0].Caller
	key := apikey.New()
	stored = storage.APIKey{
		MadeWith: "console",
		ID:       uuid.NewString(), OrganizationID: who.OrganizationID, Name: "k", Prefix: apikey.Prefix(key), HMAC: apikey.NewDigester(core.Keyring).Digest(key),
		Scopes: scopes, UserID: who.UserID, CreatedBy: who.UserID, CreatedAt: time.Now(),
	}
	if err := core.Store.CreateAPIKey(g.t.Context(), stored); err != nil {
		g.t.Fatal(err)
	}
	return key.Reveal(), stored
}

const runtime = "/api/llm-gateway/v1/" // of models

// TestK07DoorsOfKeys checks which key opens which address, in which header.
func TestK07DoorsOfKeys(t *testing.T) {
	g := newGateway(t, nil)
	mcp, _ := g.keyOf("mcp")
	llm, _ := g.keyOf("llm")
	model, _ := g.keyOf("model:small")
	unknown := apikey.New().Reveal()
	for _, tc := range []struct {
		path   string
		status map[string]int
	}{
		// There is no server of that name: whoever is told so was let in.
		{"/mcp/demo", map[string]int{mcp: 404, llm: 403, model: 403, unknown: 401}},
		{"/sse/demo", map[string]int{mcp: 404, llm: 403, model: 403, unknown: 401}},
		{runtime + "models", map[string]int{mcp: 403, llm: 202, model: 202, unknown: 401}},
		{runtime + "chat/completions", map[string]int{mcp: 403, llm: 202, model: 202, unknown: 401}},
		{runtime + "messages", map[string]int{mcp: 403, llm: 202, model: 202, unknown: 401}},
	} {
		for key, want := range tc.status {
			for _, lines := range [][]string{{"Authorization: Bearer " + key}, {"x-api-key: " + key}, {"Authorization: bearer " + key, "X-Api-Key: " + key}} {
				got := g.get(tc.path, lines...)
				if got.status != want {
					t.Errorf("%s: %d instead of %d: %s", tc.path, got.status, want, got.body)
				}
				for _, call := range g.calls() {
					if call.Caller == nil || call.Caller.Key == nil || call.Caller.Powers != (caller.Powers{}) || call.Caller.Roles != nil || call.Agent != nil {
						t.Errorf("%s: caller %+v", tc.path, call.Caller)
					}
				}
			}
		}
	}
	for _, path := range []string{
		"/api/servers", "/api/approvals", "/api/llm-gateway/admin/api-keys", "/api/llm-gateway/user/api-keys", "/api/llm-gateway/v1", "/API/llm-gateway/v1/models",
		"/mcp/demo//", "//mcp/demo", "/api/audit", "/",
	} {
		for _, key := range []string{mcp, llm} {
			for _, line := range []string{"Authorization: Bearer " + key, "X-Api-Key: " + key} {
				if got := g.get(path, line); got.status != http.StatusUnauthorized {
					t.Errorf("%s: %d %s", path, got.status, got.body)
				}
			}
		}
	}
	if n := len(g.calls()); n != 0 {
		t.Errorf("%d calls came through", n)
	}
	token := "Authorization: Bearer " + g.token()
	for name, tc := range map[string]struct {
		lines  []string
		status int
	}{
		"a token":                     {[]string{token}, 202},
		"a token and another's key":   {[]string{token, "X-Api-Key: sk-theirs"}, 202},
		"a token and a key of ours":   {[]string{token, "X-Api-Key: " + llm}, 401},
		"two keys":                    {[]string{"Authorization: Bearer " + llm, "X-Api-Key: " + model}, 401},
		"two keys in one header":      {[]string{"X-Api-Key: " + llm, "X-Api-Key: " + llm}, 401},
		"a key and Basic":             {[]string{"Authorization: Basic eDp5", "X-Api-Key: " + llm}, 401},
		"a token in the key's header": {[]string{"X-Api-Key: " + g.token()}, 401},
		"a key as Basic":              {[]string{"Authorization: Basic " + llm}, 401},
		"a key alone":                 {[]string{"Authorization: " + llm}, 401},
		"a key in another case":       {[]string{"X-Api-Key: " + strings.ToUpper(llm)}, 401},
		"a key with more":             {[]string{"X-Api-Key: " + llm + "," + llm}, 401},
	} {
		if got := g.get(runtime+"models", tc.lines...); got.status != tc.status {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	g.calls()
	if got := g.get("/api/servers", token, "X-Api-Key: "+mcp); got.status != http.StatusAccepted {
		t.Errorf("where keys are nothing: %d", got.status)
	}
	log := g.stop()
	for _, key := range []string{mcp, llm, model, unknown} {
		for line := range strings.Lines(log) {
			if strings.Contains(line, key) && !strings.Contains(line, "X-Api-Key") && !strings.Contains(line, `"Authorization":["`+key) {
				t.Errorf("the log holds a key outside of what the sample configurations filter: %s", line)
			}
		}
	}
	if !strings.Contains(log, `"api_key":"`) {
		t.Error("the access log does not say which key it was")
	}
}

// TestRefusalsOfTheRuntime checks that clients of models read refusals in the form of their API.
func TestRefusalsOfTheRuntime(t *testing.T) {
	g := newGateway(t, nil)
	mcp, _ := g.keyOf("mcp")
	g.calls()
	for _, tc := range []struct {
		lines              []string
		status             int
		code, kind, wanted string
	}{
		{nil, 401, "invalid_api_key", "authentication_error", "Bearer"},
		{[]string{"X-Api-Key: " + apikey.New().Reveal()}, 401, "invalid_api_key", "authentication_error", `Bearer error="invalid_token"`},
		{[]string{"Authorization: Bearer x"}, 401, "invalid_api_key", "authentication_error", `Bearer error="invalid_token"`},
		{[]string{"X-Api-Key: " + mcp}, 403, "insufficient_permissions", "permission_error", ""},
	} {
		for _, path := range []string{"chat/completions", "responses", "embeddings", "models", "messages"} {
			got := g.get(runtime+path, tc.lines...)
			var body struct {
				Type  string
				Error struct{ Message, Type, Code string }
			}
			if err := json.Unmarshal([]byte(got.body), &body); err != nil {
				t.Fatalf("%v: %s", err, got.body)
			}
			anthropic := path == "messages"
			if got.status != tc.status || body.Error.Type != tc.kind || body.Error.Message == "" || (body.Type == "error") != anthropic || (body.Error.Code == tc.code) == anthropic {
				t.Errorf("%s: %d %s", path, got.status, got.body)
			}
			if got.header.Get("WWW-Authenticate") != tc.wanted || got.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: headers %v", path, got.header)
			}
		}
	}
}

// TestT12Guesses checks the limits for guesses of keys and of tokens, over HTTP.
func TestT12Guesses(t *testing.T) {
	g := newGateway(t, nil)
	known, _ := g.keyOf("llm")
	fresh, _ := g.keyOf("llm")
	if got := g.get(runtime+"models", "X-Api-Key: "+known); got.status != http.StatusAccepted {
		t.Fatalf("%d %s", got.status, got.body)
	}
	told := make(map[int]int)
	for i := range 2 * bruteforce.PerAddress {
		// T04: what a header says of the address is nothing.
		got := g.get(runtime+"models", "X-Api-Key: "+apikey.New().Reveal(), fmt.Sprintf("X-Forwarded-For: 203.0.113.%d", i), fmt.Sprintf("Forwarded: for=203.0.113.%d", i))
		if told[got.status]++; got.status == http.StatusTooManyRequests && (got.header.Get("Retry-After") == "" || !strings.Contains(got.body, "rate_limit_exceeded")) {
			t.Fatalf("%v %s", got.header, got.body)
		}
	}
	if told[http.StatusUnauthorized] != bruteforce.PerAddress || told[http.StatusTooManyRequests] != bruteforce.PerAddress {
		t.Errorf("answered %v", told)
	}
	g.get("/mcp/demo", "Authorization: Bearer e30.e30.e30").service(t, http.StatusTooManyRequests, "RateLimitExceeded")
	g.get("/api/servers", "Authorization: Bearer e30.e30.e31").service(t, http.StatusTooManyRequests, "RateLimitExceeded")
	if got := g.get(runtime+"models", "X-Api-Key: "+fresh); got.status != http.StatusTooManyRequests {
		t.Errorf("a key that was never seen: %d", got.status)
	}
	expired := g.issuer.Token(public, object{"exp": time.Now().Add(-time.Hour).Unix(), "iat": time.Now().Add(-2 * time.Hour).Unix()})
	g.get("/api/servers", "Authorization: Bearer "+expired).service(t, http.StatusUnauthorized, "Unauthorized")
	g.get("/api/servers").service(t, http.StatusUnauthorized, "Unauthorized")
	// Nobody whose credential is good is locked out.
	if got := g.get(runtime+"models", "X-Api-Key: "+known); got.status != http.StatusAccepted {
		t.Errorf("a key that was good from there: %d %s", got.status, got.body)
	}
	if got := g.get("/api/servers", "Authorization: Bearer "+g.issuer.Token(public, object{"sub": "somebody new"})); got.status != http.StatusAccepted {
		t.Errorf("a good token: %d %s", got.status, got.body)
	}
}

// TestK02Revocation checks that a key that is asked for all the time is refused by the time that its revocation is
// answered.
func TestK02Revocation(t *testing.T) {
	g := newGateway(t, nil)
	raw, stored := g.keyOf("llm")
	store := func() storage.Store {
		g.get("/api/servers", "Authorization: Bearer "+g.token())
		return g.calls()[0].Core.Store
	}()
	revoked, finished := make(chan struct{}), make(chan struct{})
	good := 0
	go func() {
		defer close(finished)
		for late := 0; late < 20; {
			over := false
			select {
			case <-revoked:
				over = true
				late++
			default:
			}
			switch got := g.get(runtime+"models", "X-Api-Key: "+raw); {
			case over && got.status != http.StatusUnauthorized:
				t.Errorf("after the revocation: %d", got.status)
			case !over && got.status == http.StatusAccepted:
				good++
			}
		}
	}()
	for range 20 { // others' writes meanwhile
		g.keyOf("llm")
	}
	if _, err := store.RevokeAPIKey(t.Context(), stored.OrganizationID, stored.ID, time.Now()); err != nil {
		t.Error(err)
	}
	close(revoked)
	<-finished
	if good == 0 {
		t.Error("the key was never good")
	}
}
