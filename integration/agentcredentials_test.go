package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// machines is a gateway at which agents log in without a person.
type machines struct {
	*dev
	t                *testing.T
	boss, eve        string
	server, serverID string // the server's slug and id
}

// newMachines makes a server with tools: one that everybody may call, one that asks, and one that is for an agent alone.
func newMachines(t *testing.T) *machines {
	t.Helper()
	m := &machines{dev: devGateway(t, "", ""), t: t}
	m.boss, m.eve = m.tokenWith(t, "admin@example.test", "dev-console"), m.tokenWith(t, "eve@rival.test", "dev-console")
	entry := m.made(m.boss, "/api/server-directory", members{"name": "Tools", "url": newMCPServer(t, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}).url, "provider": "none", "requires_auth": false})
	server := m.made(m.boss, "/api/servers?test=false", members{"name": "Tools", "mcp_server_directory_id": entry["id"]})
	m.serverID, _ = server["id"].(string)
	_, shown := m.api(t, m.boss, http.MethodGet, "/api/servers/"+m.serverID)
	var whole struct{ Slug string }
	if err := json.Unmarshal([]byte(shown), &whole); err != nil || whole.Slug == "" {
		t.Fatalf("the server: %s", shown)
	}
	m.server = whole.Slug
	return m
}

// made sends a write that must be granted.
func (m *machines) made(token, path string, body any) members {
	m.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		m.t.Fatal(err)
	}
	status, said := m.asked(m.t, token, http.MethodPost, path, string(text))
	var object members
	if err := json.Unmarshal([]byte(said), &object); err != nil || status/100 != 2 {
		m.t.Fatalf("%s: %d %s", path, status, said)
	}
	return object
}

// agent registers an agent of acme's, and returns its id.
func (m *machines) agent(client string) string {
	m.t.Helper()
	id, _ := m.made(m.boss, "/api/agents", members{"application_directory": members{"external_id": client}})["id"].(string)
	return id
}

func (m *machines) govern(rules ...map[string]any) {
	m.t.Helper()
	m.made(m.boss, "/api/policy", members{"name": "Rules", "mcp_server_id": m.serverID, "status": "ACTIVE", "rules": rules})
}

// ask asks the token endpoint, with a secret in the header when there is one.
func (m *machines) ask(form url.Values, id, secret string) (int, map[string]any) {
	m.t.Helper()
	request, err := http.NewRequestWithContext(m.t.Context(), http.MethodPost, m.url+"/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		m.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if secret != "" {
		request.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(secret))
	}
	status, body := devAnswer(m.t, request)
	var answer map[string]any
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		m.t.Fatalf("%d %s", status, body)
	}
	return status, answer
}

func (m *machines) form(changes ...string) url.Values {
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {m.url + "/mcp/" + m.server}}
	for i := 0; i < len(changes); i += 2 {
		if form.Set(changes[i], changes[i+1]); changes[i+1] == "" {
			form.Del(changes[i])
		}
	}
	return form
}

// accessOf returns the access token of an answer.
func (m *machines) accessOf(status int, answer map[string]any) string {
	m.t.Helper()
	access, _ := answer["access_token"].(string)
	if status != http.StatusOK || access == "" || answer["token_type"] != "Bearer" || answer["expires_in"] != 900.0 || answer["refresh_token"] != nil {
		m.t.Fatalf("no token: %d %v", status, answer)
	}
	return access
}

// call calls a tool of the server.
func (m *machines) call(token, tool string) (int, string) {
	m.t.Helper()
	request, err := http.NewRequestWithContext(m.t.Context(), http.MethodPost, m.url+"/mcp/"+m.server, strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":{"text":"said"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	if err != nil {
		m.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		request.Header.Set(name, value)
	}
	return devAnswer(m.t, request)
}

func (m *machines) wantCall(token, tool, what string, status int, says string) {
	m.t.Helper()
	if got, body := m.call(token, tool); got != status || !strings.Contains(body, says) {
		m.t.Errorf("%s: %d %s, want %d with %q", what, got, body, status, says)
	}
}

func signingKey(t *testing.T) (*ecdsa.PrivateKey, members) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return key, members{"kty": "EC", "crv": "P-256", "x": base64url(point[1:33]), "y": base64url(point[33:]), "kid": "k"}
}

// assertion signs an assertion of a client. changes replace claims; nil removes one.
func (m *machines) assertion(method jwt.SigningMethod, key any, client string, changes jwt.MapClaims) string {
	m.t.Helper()
	claims := jwt.MapClaims{"iss": client, "sub": client, "aud": m.url, "jti": rand.Text(), "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix()}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	unsigned := jwt.NewWithClaims(method, claims)
	unsigned.Header["kid"] = "k"
	signed, err := unsigned.SignedString(key)
	if err != nil {
		m.t.Fatal(err)
	}
	return signed
}

// asserting returns a request with an assertion.
func (m *machines) asserting(assertion string) url.Values {
	return m.form("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", "client_assertion", assertion)
}

// TestAgentCredentials checks that agents log in without a person, with a secret or a key, and may do what policies grant
// them until their credential is deleted.
func TestAgentCredentials(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	robot, other := m.agent("robot"), m.agent("other")
	m.govern(limited(granting("tools/call:echo"), when(`request.principal.agent == "`+robot+`"`)), granting("tools/call:upper:approve"))
	path := "/api/agents/" + robot + "/credentials"
	secret := m.made(m.boss, path, members{"name": "Nightly"})
	key, public := signingKey(t)
	keyed := m.made(m.boss, path, members{"jwks": members{"keys": []any{public}}})
	text, _ := secret["client_secret"].(string)
	if secret["client_id"] != robot || secret["token_endpoint_auth_method"] != "client_secret_basic" || len(text) < 50 || keyed["client_secret"] != nil || keyed["token_endpoint_auth_method"] != "private_key_jwt" {
		t.Fatalf("made %v and %v", secret, keyed)
	}

	t.Run("the metadata", func(t *testing.T) {
		_, body := m.api(t, m.boss, http.MethodGet, "/.well-known/oauth-authorization-server")
		var metadata struct {
			Grants     []string `json:"grant_types_supported"`
			Methods    []string `json:"token_endpoint_auth_methods_supported"`
			Algorithms []string `json:"token_endpoint_auth_signing_alg_values_supported"`
		}
		err := json.Unmarshal([]byte(body), &metadata)
		if err != nil || !slices.Contains(metadata.Grants, "client_credentials") || !slices.Contains(metadata.Methods, "private_key_jwt") || !slices.Contains(metadata.Algorithms, "ES256") {
			t.Errorf("%v %s", err, body)
		}
	})
	t.Run("with a secret", func(t *testing.T) {
		for name, form := range map[string]url.Values{
			"in the header": nil, "in the body": m.form("client_id", robot, "client_secret", text),
		} {
			asks := func() (int, map[string]any) { return m.ask(form, "", "") }
			if form == nil {
				asks = func() (int, map[string]any) { return m.ask(m.form("scope", "anything"), robot, text) }
			}
			access := m.accessOf(asks())
			m.wantCall(access, "echo", name, http.StatusOK, `"text":"said"`)
			m.wantCall(access, "upper", "a call that needs approval", http.StatusOK, "there is nobody to ask")
			m.wantCall(access, "delete", "a call that nothing grants", http.StatusOK, `"error"`)
			if status, body := m.api(t, access, http.MethodGet, "/api/servers"); status != http.StatusUnauthorized {
				t.Errorf("the server's token at the API: %d %s", status, body)
			}
		}
		if _, body := m.api(t, m.boss, http.MethodGet, "/api/approvals?limit=10"); strings.Contains(body, "upper") {
			t.Errorf("somebody was asked: %s", body)
		}
	})
	t.Run("with a key", func(t *testing.T) {
		for _, audience := range []string{m.url, m.url + "/oauth/token"} {
			access := m.accessOf(m.ask(m.asserting(m.assertion(jwt.SigningMethodES256, key, robot, jwt.MapClaims{"aud": audience})), "", ""))
			m.wantCall(access, "echo", "for "+audience, http.StatusOK, `"text":"said"`)
		}
		form := m.asserting(m.assertion(jwt.SigningMethodES256, key, robot, nil))
		m.accessOf(m.ask(form, "", ""))
		if status, answer := m.ask(form, "", ""); status != http.StatusUnauthorized || answer["error"] != "invalid_client" {
			t.Errorf("A09 the assertion once more: %d %v", status, answer)
		}
	})
	t.Run("refused", func(t *testing.T) {
		stranger, _ := signingKey(t)
		hash := sha256.Sum256([]byte("x"))
		asserted := func(method jwt.SigningMethod, key any, client string, changes jwt.MapClaims) url.Values {
			return m.asserting(m.assertion(method, key, client, changes))
		}
		with := func(form url.Values, changes ...string) url.Values {
			for i := 0; i < len(changes); i += 2 {
				form.Set(changes[i], changes[i+1])
			}
			return form
		}
		good := func() url.Values { return asserted(jwt.SigningMethodES256, key, robot, nil) }
		for name, c := range map[string]struct {
			form   url.Values
			secret string // in the header, with the robot's id
			want   string
		}{
			"a wrong secret":               {m.form(), "dws_wrong", "invalid_client"},
			"no secret":                    {m.form("client_id", robot), "", "invalid_client"},
			"the secret of another agent":  {m.form("client_id", other, "client_secret", text), "", "invalid_client"},
			"a secret and an assertion":    {good(), text, "invalid_request"},
			"both in the body":             {with(good(), "client_secret", text), "", "invalid_request"},
			"another type of assertion":    {with(good(), "client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:saml2-bearer"), "", "invalid_client"},
			"another client_id":            {with(good(), "client_id", other), "", "invalid_client"},
			"J16 another audience":         {asserted(jwt.SigningMethodES256, key, robot, jwt.MapClaims{"aud": "https://other.example"}), "", "invalid_client"},
			"J18 two audiences":            {asserted(jwt.SigningMethodES256, key, robot, jwt.MapClaims{"aud": []string{m.url, "https://other.example"}}), "", "invalid_client"},
			"J12 expired":                  {asserted(jwt.SigningMethodES256, key, robot, jwt.MapClaims{"exp": time.Now().Add(-time.Minute).Unix(), "iat": nil}), "", "invalid_client"},
			"J15 for an hour":              {asserted(jwt.SigningMethodES256, key, robot, jwt.MapClaims{"exp": time.Now().Add(time.Hour).Unix()}), "", "invalid_client"},
			"without exp":                  {asserted(jwt.SigningMethodES256, key, robot, jwt.MapClaims{"exp": nil}), "", "invalid_client"},
			"without jti":                  {asserted(jwt.SigningMethodES256, key, robot, jwt.MapClaims{"jti": nil}), "", "invalid_client"},
			"about another agent":          {asserted(jwt.SigningMethodES256, key, robot, jwt.MapClaims{"sub": other}), "", "invalid_client"},
			"with another agent's name":    {asserted(jwt.SigningMethodES256, key, other, nil), "", "invalid_client"},
			"signed by a stranger":         {asserted(jwt.SigningMethodES256, stranger, robot, nil), "", "invalid_client"},
			"J04 unsigned":                 {asserted(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, robot, nil), "", "invalid_client"},
			"J05 signed with the key":      {asserted(jwt.SigningMethodHS256, key.X.FillBytes(make([]byte, 32)), robot, nil), "", "invalid_client"},
			"J05 signed with its hash":     {asserted(jwt.SigningMethodHS256, hash[:], robot, nil), "", "invalid_client"},
			"no JWT":                       {m.asserting("x"), "", "invalid_client"},
			"another organization's place": {m.form("resource", "https://elsewhere.example/mcp/tools"), text, "invalid_target"},
			"two resources":                {with2(m.form(), "resource", m.url), text, "invalid_target"},
			"a scope with a line break":    {m.form("scope", "a\"b"), text, "invalid_scope"},
			"another grant":                {m.form("grant_type", "refresh_token"), text, "unauthorized_client"},
			"J09 a large assertion":        {m.asserting(strings.Repeat("x", 17<<10)), "", "invalid_request"},
		} {
			status, answer := m.ask(c.form, robot, c.secret)
			if answer["error"] != c.want || status < 400 || status >= 500 || answer["access_token"] != nil {
				t.Errorf("%s: %d %v, want %s", name, status, answer, c.want)
			}
		}
		m.accessOf(m.ask(m.form(), robot, text)) // nobody is locked out by these
	})
	t.Run("no more than a machine", func(t *testing.T) {
		access := m.accessOf(m.ask(m.form("resource", ""), robot, text))
		if status, body := m.api(t, access, http.MethodGet, "/api/servers"); status != http.StatusOK || !strings.Contains(body, m.serverID) {
			t.Errorf("the servers of its organization: %d %s", status, body)
		}
		for path, body := range map[string]string{path: `{}`, "/api/llm-gateway/user/api-keys": `{"name":"Mine","scopes":["llm"]}`} {
			if status, said := m.asked(t, access, http.MethodPost, path, body); status != http.StatusForbidden {
				t.Errorf("%s: %d %s", path, status, said)
			}
		}
		if status, body := m.asked(t, access, http.MethodPost, "/oauth/revoke", ""); status == http.StatusOK {
			t.Errorf("revoking as nobody: %d %s", status, body)
		}
		form := url.Values{"token": {access}, "client_id": {robot}, "client_secret": {text}}
		if status, body := m.post("/oauth/revoke", form); status != http.StatusBadRequest || !strings.Contains(body, "unsupported_token_type") {
			t.Errorf("its own token: %d %s", status, body)
		}
	})
	t.Run("for another organization", func(t *testing.T) {
		for _, c := range []struct{ method, path string }{
			{http.MethodGet, path}, {http.MethodPost, path}, {http.MethodDelete, path + "/" + secret["id"].(string)},
		} {
			if status, body := m.asked(t, m.eve, c.method, c.path, ""); status != http.StatusNotFound {
				t.Errorf("%s %s: %d %s", c.method, c.path, status, body)
			}
		}
		foreign, _ := m.made(m.eve, "/api/agents", members{"application_directory": members{"external_id": "robot"}})["id"].(string)
		made := m.made(m.eve, "/api/agents/"+foreign+"/credentials", members{})
		access := m.accessOf(m.ask(m.form(), foreign, made["client_secret"].(string)))
		m.wantCall(access, "echo", "an agent of another organization", http.StatusNotFound, "")
	})
	t.Run("the list", func(t *testing.T) {
		status, body := m.api(t, m.boss, http.MethodGet, path)
		if status != http.StatusOK || strings.Contains(body, text) || strings.Contains(body, public["x"].(string)) || !strings.Contains(body, `"key_thumbprints"`) || !strings.Contains(body, "Nightly") {
			t.Errorf("%d %s", status, body)
		}
		if status, body := m.api(t, m.token(t), http.MethodGet, path); status != http.StatusForbidden {
			t.Errorf("for a user: %d %s", status, body)
		}
	})
	t.Run("deleted", func(t *testing.T) {
		bySecret := m.accessOf(m.ask(m.form(), robot, text))
		byKey := m.accessOf(m.ask(m.asserting(m.assertion(jwt.SigningMethodES256, key, robot, nil)), "", ""))
		m.wantCall(bySecret, "echo", "before", http.StatusOK, `"text":"said"`)
		if status, body := m.api(t, m.boss, http.MethodDelete, path+"/"+secret["id"].(string)); status != http.StatusNoContent {
			t.Fatalf("%d %s", status, body)
		}
		m.wantCall(bySecret, "echo", "with a deleted secret", http.StatusUnauthorized, "")
		m.wantCall(byKey, "echo", "with the other credential", http.StatusOK, `"text":"said"`)
		if status, answer := m.ask(m.form(), robot, text); status != http.StatusUnauthorized || answer["error"] != "invalid_client" {
			t.Errorf("the deleted secret: %d %v", status, answer)
		}
		if status, body := m.api(t, m.boss, http.MethodDelete, "/api/agents/"+robot); status != http.StatusNoContent {
			t.Fatalf("%d %s", status, body)
		}
		m.wantCall(byKey, "echo", "with a deleted agent", http.StatusUnauthorized, "")
		_, body := m.api(t, m.boss, http.MethodGet, "/api/audit?kind=admin&limit=100")
		for _, event := range []string{"agent_credential.create", "agent_credential.delete"} {
			if !strings.Contains(body, event) {
				t.Errorf("%s is not recorded", event)
			}
		}
	})
}

// TestAgentSecretGuesses checks that nobody can try secrets as often as they like, and that who guesses does not lock out
// an agent at the same address.
func TestAgentSecretGuesses(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	robot, other := m.agent("robot"), m.agent("other")
	secrets := make(map[string]string)
	for _, id := range []string{robot, other} {
		secrets[id], _ = m.made(m.boss, "/api/agents/"+id+"/credentials", members{})["client_secret"].(string)
	}
	m.accessOf(m.ask(m.form(), robot, secrets[robot]))
	refused := 0
	for i := range 70 {
		if status, answer := m.ask(m.form(), other, "guess-"+strconv.Itoa(i)); status == http.StatusTooManyRequests && answer["access_token"] == nil {
			refused++
		}
	}
	if refused < 40 {
		t.Errorf("%d of 70 guesses were refused", refused)
	}
	if status, answer := m.ask(m.form(), other, secrets[other]); status != http.StatusTooManyRequests {
		t.Errorf("a guess that is right: %d %v", status, answer)
	}
	m.accessOf(m.ask(m.form(), robot, secrets[robot]))
}

// TestAgentPublishedClients checks that clients which others wrote log in without a person: the official MCP clients, and
// openid-client, which is certified for OpenID Connect.
func TestAgentPublishedClients(t *testing.T) {
	t.Parallel()
	tools, clients := conformanceTools(t), officialClients(t)
	m := newMachines(t)
	robot := m.agent("robot")
	m.govern(granting("tools/call:echo"))
	path := "/api/agents/" + robot + "/credentials"
	secret, _ := m.made(m.boss, path, members{})["client_secret"].(string)
	key, public := signingKey(t)
	m.made(m.boss, path, members{"jwks": members{"keys": []any{public}}})
	private, err := json.Marshal(members{"kty": "EC", "crv": "P-256", "x": public["x"], "y": public["y"], "d": base64url(secretOf(t, key))})
	if err != nil {
		t.Fatal(err)
	}
	want := "mcp legacy secret said\nmcp legacy key said\nmcp modern secret said\nmcp modern key said\n" +
		"openid-client basic bearer 900 said\nopenid-client post bearer 900 said\nopenid-client key bearer 900 said\n"
	if got := runNode(t, tools, "clients/machine.mjs", m.url, m.server, clients, robot, secret, string(private)); got != want {
		t.Errorf("they said %q, want %q", got, want)
	}
}

// with2 adds a value to a form.
func with2(form url.Values, name, value string) url.Values {
	form.Add(name, value)
	return form
}

func (m *machines) post(path string, form url.Values) (int, string) {
	m.t.Helper()
	response, err := newClient(m.t).PostForm(m.url+path, form) //nolint:noctx // the client has a time-out
	if err != nil {
		m.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// secretOf returns the private part of a key as it stands in a JWK (RFC 7518 section 6.2.2.1).
func secretOf(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	secret, err := key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return secret
}
