package session_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/storage"
)

// entry makes a server of its own, of that kind.
func (g *gateway) entry(slug string, provider storage.Provider, oauth storage.OAuthEndpoints) storage.Server {
	g.t.Helper()
	now := time.Now().UTC()
	entry := storage.DirectoryEntry{
		ID: uuid.NewString(), OrganizationID: organization, Name: slug, Slug: slug, URL: "https://mcp.example.com/" + slug, Protocol: storage.ProtocolMCP,
		Provider: provider, RequiresAuth: true, Public: true, OAuth: oauth, Source: storage.SourceCustom, CreatedAt: now, UpdatedAt: now,
	}
	if err := g.core.Store.CreateDirectoryEntry(g.t.Context(), entry); err != nil {
		g.t.Fatal(err)
	}
	server := storage.Server{
		ID: uuid.NewString(), OrganizationID: organization, Name: "The " + slug, Slug: slug, DirectoryID: entry.ID, Status: storage.ServerActive,
		ClientID: "configured", CreatedAt: now, UpdatedAt: now,
	}
	if err := g.core.Store.CreateServer(g.t.Context(), server); err != nil {
		g.t.Fatal(err)
	}
	return server
}

var connectForm = regexp.MustCompile(`action="(/connect/[^"]+)"[^>]*>\s*<input type="hidden" name="form" value="([^"]+)"`)

// fill returns the form of a page with a user's input.
func (a answer) fill(t *testing.T, typed url.Values) url.Values {
	t.Helper()
	found := connectForm.FindStringSubmatch(a.body)
	if found == nil {
		t.Fatalf("%d: no form: %s", a.status, a.body)
	}
	typed.Set("form", found[2])
	return typed
}

func (g *gateway) connection(user, server string) storage.Connection {
	g.t.Helper()
	c, err := g.core.Store.Connection(g.t.Context(), storage.ConnectionKey{OrganizationID: organization, UserID: user, ServerID: server})
	if err != nil {
		return storage.Connection{}
	}
	return c
}

// TestConnectObtained checks that the page of a server whose tokens the gateway gets without its users asks for nothing.
func TestConnectObtained(t *testing.T) {
	for _, provider := range []storage.Provider{storage.ProviderTokenExchange, storage.ProviderClientCredentials, storage.ProviderWorkloadIdentity} {
		t.Run(string(provider), func(t *testing.T) { testConnectObtained(t, provider) })
	}
}

func testConnectObtained(t *testing.T, provider storage.Provider) {
	t.Helper()
	g := newGateway(t)
	_, cookie := g.user("ann@example.com")
	server := g.entry("payroll", provider, storage.OAuthEndpoints{})
	for _, path := range []string{"/connect/payroll", "/connect/payroll?again=1", "/connect/payroll?disconnect=1"} {
		page := g.get(path, cookie)
		if page.status != http.StatusOK || !strings.Contains(page.body, "The payroll needs no account") || strings.Contains(page.body, "Disconnect") {
			t.Errorf("%s: %d %s", path, page.status, page.body)
		}
	}
	if _, err := g.core.Store.UpdateServer(t.Context(), server.OrganizationID, server.ID, func(s *storage.Server) error {
		s.Status = storage.ServerPending
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if page := g.get("/connect/payroll", cookie); page.status != http.StatusConflict || !strings.Contains(page.body, "an administrator must give it its OAuth client first") {
		t.Errorf("pending: %d %s", page.status, page.body)
	}
}

// TestConnectTyped checks that connect_url is a page: it asks for what the server takes, and keeps it for its user
// (W31).
func TestConnectTyped(t *testing.T) {
	g := newGateway(t)
	user, cookie := g.user("ann@example.com")
	for slug, tc := range map[string]struct {
		provider storage.Provider
		typed    url.Values
		bad      url.Values
	}{
		"keyed":  {storage.ProviderAPIKey, url.Values{"api_key": {" k-123 "}}, url.Values{"api_key": {"a b"}}},
		"bearer": {storage.ProviderBearerToken, url.Values{"bearer_token": {"t-123"}}, url.Values{"api_key": {"x"}}},
		"basic":  {storage.ProviderBasicAuth, url.Values{"username": {"ann"}, "password": {" p "}}, url.Values{"username": {"a:b"}, "password": {"p"}}},
	} {
		t.Run(slug, func(t *testing.T) {
			g.t = t
			server := g.entry(slug, tc.provider, storage.OAuthEndpoints{})
			page := g.get("/connect/"+slug, cookie)
			if page.status != http.StatusOK || !strings.Contains(page.body, "Connect your account at The "+slug) {
				t.Fatalf("%d %s", page.status, page.body)
			}
			// CWE-352: without the page's token, from elsewhere, or with another page's token, nothing is kept.
			forged := url.Values{"form": {"x"}, "api_key": {"k"}, "bearer_token": {"k"}, "username": {"u"}, "password": {"p"}}
			if a := g.post("/connect/"+slug, cookie, forged); a.status != http.StatusForbidden {
				t.Errorf("forged: %d", a.status)
			}
			if a := g.post("/connect/"+slug, cookie, page.fill(t, url.Values{}), "Sec-Fetch-Site: cross-site"); a.status != http.StatusForbidden {
				t.Errorf("cross-site: %d", a.status)
			}
			if a := g.post("/connect/"+slug, "", page.fill(t, url.Values{})); a.status != http.StatusForbidden {
				t.Errorf("nobody: %d", a.status)
			}
			if a := g.post("/connect/"+slug, cookie, page.fill(t, tc.bad)); a.status != http.StatusBadRequest || !strings.Contains(a.body, "<form") {
				t.Errorf("bad: %d %s", a.status, a.body)
			}
			if c := g.connection(user, server.ID); c.ID != "" {
				t.Fatalf("kept %v", c)
			}
			a := g.post("/connect/"+slug, cookie, page.fill(t, tc.typed))
			if a.status != http.StatusSeeOther || a.header.Get("Location") != "/connect/"+slug {
				t.Fatalf("%d %v %s", a.status, a.header, a.body)
			}
			if c := g.connection(user, server.ID); c.Status != storage.ConnectionConnected || c.Kind != tc.provider {
				t.Errorf("%v", c)
			}
			a = g.get("/connect/"+slug, cookie)
			if a.status != http.StatusOK || !strings.Contains(a.body, "The "+slug+" is connected") || strings.Contains(a.body, "<input type=\"password\"") {
				t.Errorf("%d %s", a.status, a.body)
			}
			if a = g.get("/connect/"+slug+"?again=1", cookie); !strings.Contains(a.body, `type="password"`) {
				t.Errorf("again: %d %s", a.status, a.body)
			}
		})
	}
}

// TestConnectProvider checks that for an OAuth server the page sends its user to the provider, and not anywhere that a
// link says (W31).
func TestConnectProvider(t *testing.T) {
	g := newGateway(t)
	user, cookie := g.user("ann@example.com")
	var provider *httptest.Server
	provider = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token":"a","token_type":"Bearer","scope":"read"}`)
			return
		}
		if r.URL.Path != "/.well-known/oauth-authorization-server" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": provider.URL, "authorization_endpoint": provider.URL + "/authorize", "token_endpoint": provider.URL + "/token",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
		})
	}))
	t.Cleanup(provider.Close)
	server := g.entry("tracker", storage.ProviderOAuth2, storage.OAuthEndpoints{Issuer: provider.URL})
	a := g.get("/connect/tracker", cookie)
	location, err := url.Parse(a.header.Get("Location"))
	if err != nil || a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), provider.URL+"/authorize?") {
		t.Fatalf("%d %v %s", a.status, a.header, a.body)
	}
	if query := location.Query(); query.Get("redirect_uri") != public+"/api/oauth/callback" || query.Get("state") == "" || query.Get("code_challenge") == "" {
		t.Errorf("%v", location)
	}
	if a := g.get("/connect/tracker?return_url="+url.QueryEscape("https://evil.example/"), cookie); a.status != http.StatusUnprocessableEntity || a.header.Get("Location") != "" {
		t.Errorf("CWE-601: %d %v", a.status, a.header)
	}
	if c := g.connection(user, server.ID); c.ID != "" {
		t.Errorf("connected before the provider said a word: %v", c)
	}

	// W05: the page sends a user whose account is connected there again where the server misses a permission.
	own := func(context.Context, storage.ConnectionKey) (connection.Whose, error) { return connection.Own, nil }
	connected := func(query url.Values) {
		t.Helper()
		if r, err := g.core.Broker.Callback(t.Context(), url.Values{"code": {"c"}, "state": {query.Get("state")}}, own); err != nil || !r.OK {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	connected(location.Query())
	if a := g.get("/connect/tracker", cookie); a.status != http.StatusOK || !strings.Contains(a.body, "is connected") {
		t.Fatalf("%d %v %s", a.status, a.header, a.body)
	}
	key := storage.ConnectionKey{OrganizationID: organization, UserID: user, ServerID: server.ID}
	for _, tc := range []struct{ missed, asked string }{{"", "read"}, {"files:write", "read files:write"}} { // a server need not say which
		if err := g.core.Broker.Want(t.Context(), key, tc.missed); err != nil {
			t.Fatal(err)
		}
		a = g.get("/connect/tracker", cookie)
		location, err := url.Parse(a.header.Get("Location"))
		if err != nil || location.Query().Get("scope") != tc.asked {
			t.Fatalf("%q is missed: %d %v, %v", tc.missed, a.status, a.header, err)
		}
		connected(location.Query())
	}
}

// TestConnectWho checks that nobody connects without being logged in, and no user sees another organization's server.
func TestConnectWho(t *testing.T) {
	g := newGateway(t)
	_, cookie := g.user("ann@example.com")
	g.entry("keyed", storage.ProviderAPIKey, storage.OAuthEndpoints{})
	a := g.get("/connect/keyed?return_url=https%3A%2F%2Fgate.example.com%2Fx", "")
	if want := "/login?return=" + url.QueryEscape("/connect/keyed?return_url=https%3A%2F%2Fgate.example.com%2Fx"); a.status != http.StatusSeeOther || a.header.Get("Location") != want {
		t.Errorf("%d %v", a.status, a.header)
	}
	for _, name := range []string{"unknown", "", "UPPER", "a/b", "%2e%2e", "a\x80"} {
		if a := g.get("/connect/"+url.PathEscape(name), cookie); a.status != http.StatusNotFound {
			t.Errorf("%q: %d", name, a.status)
		}
	}
	if a := g.send("DELETE /connect/keyed HTTP/1.1\nCookie: " + cookie); a.status != http.StatusMethodNotAllowed {
		t.Errorf("DELETE: %d", a.status)
	}
}

// TestConnectWithoutLogin checks that where browsers cannot log in the page says what to do (W31).
func TestConnectWithoutLogin(t *testing.T) {
	g := newGateway(t)
	without := startGateway(t, g.issuer, object{"kind": "oidc", "issuer": g.issuer.URL})
	a := without.get("/connect/notes", "")
	if a.status != http.StatusNotFound || !strings.Contains(a.body, "login_client") || !strings.Contains(a.body, "POST "+public+"/api/servers/by-slug/notes/connect") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestDisconnect checks that a user disconnects their own account on a page, after a question, as by the API.
func TestDisconnect(t *testing.T) {
	g := newGateway(t)
	user, cookie := g.user("ann@example.com")
	server := g.entry("keyed", storage.ProviderAPIKey, storage.OAuthEndpoints{})
	connect := func() {
		t.Helper()
		page := g.get("/connect/keyed", cookie)
		if a := g.post("/connect/keyed", cookie, page.fill(t, url.Values{"api_key": {"k-123"}})); a.status != http.StatusSeeOther {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	connect()
	for _, path := range []string{"/connect", "/connect/keyed", "/mcp/keyed"} {
		g.browse(path, cookie).page(t, http.StatusOK, "/connect/keyed?disconnect=1")
	}
	question := g.get("/connect/keyed?disconnect=1", cookie)
	question.page(t, http.StatusOK, "Disconnect your account at The keyed?", `name="disconnect"`)
	if c := g.connection(user, server.ID); c.Status != storage.ConnectionConnected {
		t.Fatalf("the question alone disconnects: %v", c)
	}
	// CWE-352: neither another site nor another user's page disconnects.
	if a := g.post("/connect/keyed", cookie, url.Values{"form": {"x"}, "disconnect": {"1"}}); a.status != http.StatusForbidden {
		t.Errorf("forged: %d", a.status)
	}
	if a := g.post("/connect/keyed", cookie, question.fill(t, url.Values{"disconnect": {"1"}}), "Sec-Fetch-Site: cross-site"); a.status != http.StatusForbidden {
		t.Errorf("cross-site: %d", a.status)
	}
	_, other := g.user("bob@example.com")
	if a := g.post("/connect/keyed", other, question.fill(t, url.Values{"disconnect": {"1"}})); a.status != http.StatusForbidden {
		t.Errorf("another user's page: %d", a.status)
	}
	if c := g.connection(user, server.ID); c.Status != storage.ConnectionConnected {
		t.Fatalf("disconnected: %v", c)
	}
	g.post("/connect/keyed", cookie, question.fill(t, url.Values{"disconnect": {"1"}})).page(t, http.StatusOK, "The keyed is disconnected")
	if c := g.connection(user, server.ID); c.ID != "" {
		t.Errorf("kept %v", c)
	}
	g.post("/connect/keyed", cookie, question.fill(t, url.Values{"disconnect": {"1"}})).page(t, http.StatusNotFound, "Nothing was disconnected")
	a := g.browse("/connect", cookie)
	a.page(t, http.StatusOK, "not connected", "Connect your account")
	if strings.Contains(a.body, "disconnect=1") {
		t.Errorf("what is not connected can be disconnected: %s", a.body)
	}
	if a := g.get("/connect", ""); a.status != http.StatusSeeOther || a.header.Get("Location") != "/login?return=%2Fconnect" {
		t.Errorf("nobody: %d %v", a.status, a.header)
	}
}

// TestServersThatNeedNoAccount checks that a server without accounts is not said to be connected, and one whose last
// try failed is told, without what that says of the network.
func TestServersThatNeedNoAccount(t *testing.T) {
	g := newGateway(t)
	_, cookie := g.user("ann@example.com")
	server := g.entry("open", storage.ProviderNone, storage.OAuthEndpoints{})
	for _, failing := range []bool{false, true} {
		if failing {
			if err := g.core.Store.NoteServer(g.t.Context(), organization, server.ID, time.Now(), "10.0.0.7 refuses connections"); err != nil {
				t.Fatal(err)
			}
		}
		for path, says := range map[string]string{"/connect": "no account needed", "/connect/open": "The open needs no account", "/mcp/open": "needs no account of yours"} {
			a := g.browse(path, cookie)
			a.page(t, http.StatusOK, says)
			if strings.Contains(a.body, "is connected") || strings.Contains(a.body, "disconnect=1") || strings.Contains(a.body, "10.0.0.7") {
				t.Errorf("%s: %s", path, a.body)
			}
			if strings.Contains(a.body, "last try of this server failed") != failing {
				t.Errorf("%s, failing %t: %s", path, failing, a.body)
			}
		}
	}
}
