package session_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/caddyserver/caddy/v2/modules/standard" // the modules that the shipped binary links
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/websession"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/browsers"
	_ "github.com/durward-gateway/durward/modules/auth"
	"github.com/durward-gateway/durward/modules/caddytest"
	_ "github.com/durward-gateway/durward/modules/identities"
	_ "github.com/durward-gateway/durward/modules/session"
	_ "github.com/durward-gateway/durward/modules/stores"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
)

type object = caddytest.Object

const (
	public       = "https://gate.example.com"
	client       = "console"
	organization = "0192f0c1-5bd2-7000-8000-0000000000aa"
	bound        = 30 * time.Second
)

// gateway is a running configuration of durward_session, durward_auth and a handler that keeps the requests it gets.
type gateway struct {
	t       *testing.T
	address string
	issuer  *caddytest.Issuer
	core    *app.Core
	server  storage.Server

	mu      sync.Mutex
	call    *app.Call
	browser *browsers.Browser
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	issuer := caddytest.NewIssuer(t)
	return startGateway(t, issuer, object{"kind": "oidc", "issuer": issuer.URL, "login_client": client})
}

// startGateway starts a gateway with these identities, of which the first one's issuer is given.
func startGateway(t *testing.T, issuer *caddytest.Issuer, identities ...any) *gateway {
	t.Helper()
	g := run(t, issuer, configOf(t, identities...))
	now := time.Now().UTC()
	entry := storage.DirectoryEntry{
		ID: uuid.NewString(), OrganizationID: organization, Name: "Notes", Slug: "notes", URL: "https://mcp.example.com/", Protocol: storage.ProtocolMCP,
		Provider: storage.ProviderNone, Source: storage.SourceCustom, CreatedAt: now, UpdatedAt: now,
	}
	if err := g.core.Store.CreateDirectoryEntry(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	g.server = storage.Server{
		ID: uuid.NewString(), OrganizationID: organization, Name: "Notes <b>", Slug: "notes", DirectoryID: entry.ID, Status: storage.ServerActive,
		CreatedAt: now, UpdatedAt: now,
	}
	if err := g.core.Store.CreateServer(t.Context(), g.server); err != nil {
		t.Fatal(err)
	}
	return g
}

// configOf returns the configuration of a gateway with these identities and a store of its own.
func configOf(t *testing.T, identities ...any) object {
	t.Helper()
	dir := caddytest.Directory(t)
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte(seal.NewMasterKey().Reveal()), 0o600); err != nil {
		t.Fatal(err)
	}
	return object{
		"public_url": public, "store": object{"driver": "sqlite", "path": sqlitetest.PathIn(t, dir)}, "master_key": []string{"{file." + key + "}"},
		"identity": identities, "egress": object{"http": []string{"127.0.0.0/8"}},
	}
}

func (g *gateway) pass(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.call, _ = app.CallOf(r)
	g.browser, _ = browsers.BrowserOf(r)
	w.WriteHeader(http.StatusAccepted)
}

// user makes a user, and logs them in; it returns their id and the session's cookie.
func (g *gateway) user(email string) (id, cookie string) {
	g.t.Helper()
	subject := uuid.NewString()
	u, err := g.core.Store.ResolveUser(g.t.Context(), storage.UserClaim{
		OrganizationID: organization, Issuer: g.issuer.URL, Subject: subject, ID: subject, DerivedID: uuid.NewString(), Kind: storage.UserPerson, Email: email,
	}, time.Now())
	if err != nil {
		g.t.Fatal(err)
	}
	return u.ID, g.session(websession.Session{OrganizationID: organization, UserID: u.ID, Issuer: g.issuer.URL, Client: client})
}

func (g *gateway) session(s websession.Session) string {
	g.t.Helper()
	sealed, err := g.core.Logins.Browsers.Start(s)
	if err != nil {
		g.t.Fatal(err)
	}
	return "__Host-durward=" + sealed
}

// hold holds a call of a user's and returns its approval.
func (g *gateway) hold(user, tool, arguments string) storage.Approval {
	g.t.Helper()
	return g.holdBeside(user, tool, arguments, nil)
}

func (g *gateway) holdBeside(user, tool, arguments string, beside []byte) storage.Approval {
	g.t.Helper()
	canonical, err := approval.CanonicalArguments([]byte(arguments))
	if err != nil {
		g.t.Fatal(err)
	}
	a, err := g.core.Approvals.Request(g.t.Context(), &approval.Call{
		OrganizationID: organization, UserID: user, Client: "some-agent", ServerID: g.server.ID, Tool: tool, PolicyID: uuid.NewString(), PolicyRevision: 1,
		Rule: "ask", Arguments: canonical, Beside: beside, Channel: storage.ChannelOutOfBand,
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return a
}

type answer struct {
	status int
	header http.Header
	body   string
}

// send writes a request as it stands, to the gateway's own name. Lines end in LF here; the body follows two of them.
func (g *gateway) send(text string) answer {
	g.t.Helper()
	var dialer net.Dialer
	ctx, cancel := context.WithTimeout(g.t.Context(), bound)
	defer cancel()
	connection, err := dialer.DialContext(ctx, "tcp", g.address)
	if err != nil {
		g.t.Fatal(err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(bound))
	head, body, _ := strings.Cut(text, "\n\n")
	line, rest, _ := strings.Cut(head, "\n")
	if !strings.Contains(rest, "Host:") {
		rest = "Host: gate.example.com\n" + rest
	}
	head = strings.ReplaceAll(line+"\n"+strings.TrimSuffix(rest, "\n")+"\nConnection: close", "\n", "\r\n")
	if _, err := io.WriteString(connection, head+"\r\n\r\n"+body); err != nil {
		g.t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		g.t.Fatalf("%q: %v", text, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(content)}
}

func (g *gateway) get(path, cookie string) answer {
	g.t.Helper()
	return g.send("GET " + path + " HTTP/1.1\nCookie: " + cookie)
}

func (g *gateway) post(path, cookie string, form url.Values, lines ...string) answer {
	g.t.Helper()
	body := form.Encode()
	return g.send("POST " + path + " HTTP/1.1\nCookie: " + cookie + "\nContent-Type: application/x-www-form-urlencoded\nContent-Length: " +
		strconv.Itoa(len(body)) + strings.Join(append([]string{""}, lines...), "\n") + "\n\n" + body)
}

var formField = regexp.MustCompile(`action="(/approvals/[^"]+)">\s*<input type="hidden" name="form" value="([^"]+)"`)

// form returns the values that a page's buttons send.
func (a answer) form(t *testing.T, says string) url.Values {
	t.Helper()
	found := formField.FindStringSubmatch(a.body)
	if found == nil {
		t.Fatalf("%d: no form: %s", a.status, a.body)
	}
	return url.Values{"form": {found[2]}, "decision": {says}}
}

func (g *gateway) status(id string) storage.ApprovalStatus {
	g.t.Helper()
	a, err := g.core.Approvals.Approval(g.t.Context(), organization, id)
	if err != nil {
		g.t.Fatal(err)
	}
	return a.Status
}
