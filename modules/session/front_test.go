package session_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/websession"
	"github.com/durward-gateway/durward/modules/caddytest"
	"github.com/durward-gateway/durward/storage"
)

const navigates = "\nAccept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\nSec-Fetch-Mode: navigate"

func (g *gateway) browse(path, cookie string) answer {
	g.t.Helper()
	return g.send("GET " + path + " HTTP/1.1\nCookie: " + cookie + navigates)
}

// TestServerPage checks that a browser at the address of a server sees a page about it, and programs see the same as
// before (W32).
func TestServerPage(t *testing.T) {
	g := newGateway(t)
	_, cookie := g.user("alice@example.test")

	t.Run("not logged in", func(t *testing.T) {
		known, unknown := g.browse("/mcp/notes", ""), g.browse("/mcp/zzzz", "")
		known.page(t, http.StatusUnauthorized, "Add this address to your MCP client", "claude mcp add --transport http notes https://gate.example.com/mcp/notes",
			"codex mcp add notes", "mcp-remote", ".vscode/mcp.json", ".cursor/mcp.json", `href="/login?return=%2Fmcp%2Fnotes"`)
		if want := `Bearer resource_metadata="` + public + `/.well-known/oauth-protected-resource/mcp/notes"`; known.header.Get("WWW-Authenticate") != want {
			t.Errorf("WWW-Authenticate: %q", known.header.Get("WWW-Authenticate"))
		}
		// Which servers there are is nobody's business who is not logged in.
		if unknown.status != known.status || strings.ReplaceAll(unknown.body, "zzzz", "notes") != known.body {
			t.Errorf("a server that is there is told from one that is not: %s", unknown.body)
		}
		if strings.Contains(known.body, "Notes &lt;b&gt;") || strings.Contains(known.body, "/connect/") {
			t.Errorf("it tells of the server: %s", known.body)
		}
	})
	t.Run("logged in", func(t *testing.T) {
		a := g.browse("/mcp/notes", cookie)
		a.page(t, http.StatusOK, "Notes &lt;b&gt;", "needs no account of yours", "claude mcp add --transport http notes", "alice@example.test", `href="/"`)
		if a.header.Get("WWW-Authenticate") != "" {
			t.Errorf("a challenge for somebody who is logged in: %v", a.header)
		}
		g.browse("/mcp/other", cookie).page(t, http.StatusNotFound, "There is no such server")
	})
	t.Run("a server that needs an account", func(t *testing.T) {
		g.serve("wiki", storage.ProviderOAuth2, organization)
		g.browse("/mcp/wiki", cookie).page(t, http.StatusOK, "not connected yet", `href="/connect/wiki"`)
		g.browse("/", cookie).page(t, http.StatusOK, `href="/mcp/wiki"`, `href="/connect/wiki"`, `href="/mcp/notes"`)
	})
	t.Run("another organization's", func(t *testing.T) {
		const rival = "0192f0c1-5bd2-7000-8000-0000000000bb"
		g.send("GET /api/servers HTTP/1.1\nAuthorization: Bearer " + g.issuer.Token(public, object{"org_id": rival}))
		g.serve("secret-plans", storage.ProviderNone, rival)
		absent, theirs := g.browse("/mcp/nothing-here", cookie), g.browse("/mcp/secret-plans", cookie)
		if theirs.status != absent.status || formTokens.ReplaceAllString(theirs.body, "") != formTokens.ReplaceAllString(absent.body, "") {
			t.Errorf("%d %s", theirs.status, theirs.body)
		}
		if a := g.browse("/", cookie); strings.Contains(a.body, "secret-plans") {
			t.Errorf("the list: %s", a.body)
		}
	})
	t.Run("programs", func(t *testing.T) {
		for name, header := range map[string]string{
			"anything": "Accept: */*", "a stream": "Accept: text/event-stream", "both": "Accept: text/html, text/event-stream", "nothing": "X-Nothing: 1",
			"a session": "Accept: text/html\nMcp-Session-Id: x", "with a cookie": "Accept: */*\nCookie: " + cookie,
		} {
			a := g.send("GET /mcp/notes HTTP/1.1\n" + header)
			if a.status != http.StatusUnauthorized || a.header.Get("Content-Type") != "application/json" || !strings.Contains(a.header.Get("WWW-Authenticate"), "resource_metadata=") {
				t.Errorf("%s: %d %v", name, a.status, a.header)
			}
		}
		if a := g.send("GET /mcp/notes HTTP/1.1\nAccept: text/html\nAuthorization: Bearer " + g.issuer.Token(public, nil)); a.status != http.StatusAccepted {
			t.Errorf("with a token: %d %s", a.status, a.body)
		}
	})
	t.Run("names that are none", func(t *testing.T) {
		for _, path := range []string{"/mcp/", "/mcp/A%20b", "/mcp/a/b", "/mcp/$(id)", "/mcp/Notes"} {
			a := g.browse(path, "")
			if strings.Contains(a.body, "claude mcp add") || a.status < 400 {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
	})
}

// serve makes a server of an organization.
func (g *gateway) serve(slug string, provider storage.Provider, organization string) {
	g.t.Helper()
	now := time.Now().UTC()
	entry := storage.DirectoryEntry{
		ID: uuid.NewString(), OrganizationID: organization, Name: slug, Slug: slug, URL: "https://mcp.example.com/" + slug, Protocol: storage.ProtocolMCP,
		Provider: provider, RequiresAuth: provider != storage.ProviderNone, Source: storage.SourceCustom, CreatedAt: now, UpdatedAt: now,
	}
	if err := g.core.Store.CreateDirectoryEntry(g.t.Context(), entry); err != nil {
		g.t.Fatal(err)
	}
	if err := g.core.Store.CreateServer(g.t.Context(), storage.Server{
		ID: uuid.NewString(), OrganizationID: organization, Name: slug, Slug: slug, DirectoryID: entry.ID, Status: storage.ServerActive, CreatedAt: now, UpdatedAt: now,
	}); err != nil {
		g.t.Fatal(err)
	}
}

func TestFrontPage(t *testing.T) {
	g := newGateway(t)
	alice, cookie := g.user("alice@example.test")
	a := g.browse("/", "")
	a.page(t, http.StatusOK, "A gateway for MCP servers", `href="/login?return=%2F"`, public+"/mcp/")
	if strings.Contains(a.body, "notes") {
		t.Errorf("it tells of servers: %s", a.body)
	}
	g.browse("/", cookie).page(t, http.StatusOK, "Your MCP servers", `href="/mcp/notes"`, "Pending approvals", "alice@example.test")
	if a := g.get("/", ""); a.status != http.StatusUnauthorized || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("a program: %d %v", a.status, a.header)
	}
	stranger := g.session(websession.Session{OrganizationID: organization, UserID: alice, Issuer: "https://gone.example", Client: client})
	g.browse("/", stranger).page(t, http.StatusOK, "A gateway for MCP servers")
}

// TestPagesWithoutLogins checks that a gateway that has no login says what its addresses are all the same, and offers
// no login.
func TestPagesWithoutLogins(t *testing.T) {
	issuer := caddytest.NewIssuer(t)
	g := startGateway(t, issuer, object{"kind": "oidc", "issuer": issuer.URL})
	for path, want := range map[string]string{"/": "no login for browsers", "/mcp/notes": "claude mcp add"} {
		a := g.browse(path, "")
		if !strings.Contains(a.body, want) || strings.Contains(a.body, "/login") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	g.browse("/api/servers", "").page(t, http.StatusUnauthorized, "This address is for programs")
}
