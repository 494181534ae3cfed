// Package demo is the demo third party: the service to which a user of the gateway connects when there is no network.
// It is an origin of its own with an OAuth authorization server, an MCP server that demands its tokens and speaks both
// lifecycles, and an event stream. Its clients and tokens survive a restart; its issues do not.
//
// Logging in as a program: GET <base>/authorize with an ordinary request, then POST the page's form (same address) with
// `ticket`, the value of the hidden input of that name, and `account`, any name of 1 to 64 printable characters; the
// answer is a 303 to the redirect URI with code, state and iss.
package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/proxy/loopback"
	"github.com/durward-gateway/durward/modules/devidp/oauthserver"
)

// Scope is the only scope.
const Scope = "demo"

// DefaultAccount is the account that the login page proposes.
const DefaultAccount = "demo-alice"

const defaultAccessLifetime = 10 * time.Minute

// Options holds the places and times of a demo third party.
type Options struct {
	Dir            string           // keeps one file, mode 0600; made when it does not exist
	BaseURL        string           // http(s)://<loopback host>[:port], without a path: issuer, and origin of everything
	AccessLifetime time.Duration    // of access tokens; 0: 10 minutes
	Now            func() time.Time // nil: time.Now
}

// Demo is the demo third party. Two must not share a directory at the same time.
type Demo struct {
	base    string
	auth    *oauthserver.Server
	server  *mcp.Server
	issues  *issues
	events  *hub
	handler http.Handler

	closing context.Context // ends when Close is called
	close   context.CancelFunc
}

// Open makes a demo third party from the files in its directory. It must be closed.
func Open(o Options) (*Demo, error) {
	u, err := url.Parse(o.BaseURL)
	if err != nil || !loopback.IsURL(u) || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("opening demo third party: %q is not an origin on this machine", o.BaseURL)
	}
	if o.AccessLifetime == 0 {
		o.AccessLifetime = defaultAccessLifetime
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening demo third party: %w", err)
	}
	d := &Demo{base: o.BaseURL, events: newHub()}
	d.issues = newIssues(d.events.publish)
	d.auth, err = oauthserver.Open(oauthserver.Config{
		Issuer: o.BaseURL, StatePath: filepath.Join(o.Dir, "demo-grants.json"), Now: o.Now,
		Site: site, Title: "Connect your demo account", Pick: pick, PickField: "account", PickData: []string{DefaultAccount, "demo-bob"},
		Subject: account, Scopes: scopes, Target: d.isTarget, AccessLifetime: o.AccessLifetime, TokenPrefix: "demo_", Revoked: d.events.revoke,
	})
	if err != nil {
		return nil, fmt.Errorf("opening demo third party: %w", err)
	}
	d.closing, d.close = context.WithCancel(context.Background())
	d.server = d.newServer()
	d.handler = loopback.Guard(d.routes())
	return d, nil
}

// pick is the part of the login form that names the account to connect.
const pick = `<label for="account">Account</label><input id="account" name="account" value="{{index . 0}}" list="accounts" maxlength="64" required autocomplete="off">
<datalist id="accounts">{{range .}}<option value="{{.}}">{{end}}</datalist><p><button class="main">Connect</button></p>`

func account(name string) (string, error) {
	if name == "" || utf8.RuneCountInString(name) > 64 || strings.TrimSpace(name) != name || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return "", errors.New("an account has 1 to 64 printable characters")
	}
	return name, nil
}

func scopes(requested []string) ([]string, error) {
	for _, s := range requested {
		if s != Scope {
			return nil, errors.New("the only scope is " + Scope)
		}
	}
	return []string{Scope}, nil
}

// resource is the identifier of the MCP server and of the event stream beside it.
func (d *Demo) resource() string { return d.base + "/mcp" }

func (d *Demo) isTarget(target string) bool { return target == d.resource() }

// MCPURL returns the address of the MCP server.
func (d *Demo) MCPURL() string { return d.base + "/mcp" }

// EventsURL returns the address of the event stream.
func (d *Demo) EventsURL() string { return d.base + "/events" }

// Handler returns the handler of the demo's origin. It answers on loopback hosts and without a proxy only; after Close,
// with 503.
func (d *Demo) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.closing.Err() != nil {
			unavailable(w, "the demo third party is shutting down")
			return
		}
		d.handler.ServeHTTP(w, r)
		if d.closing.Err() != nil {
			_ = d.closeSessions() // this request may have opened a session after Close looked
		}
	})
}

// Close ends sessions, streams and running tools.
func (d *Demo) Close() error {
	d.close()
	d.events.close()
	return d.closeSessions()
}

func (d *Demo) closeSessions() error {
	var errs []error
	for session := range d.server.Sessions() {
		errs = append(errs, session.Close())
	}
	return errors.Join(errs...)
}

func (d *Demo) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/.well-known/oauth-authorization-server", authserver.Public(func(w http.ResponseWriter, _ *http.Request) {
		m := d.auth.Metadata()
		m["registration_endpoint"] = d.base + "/register"
		m["revocation_endpoint"] = d.base + "/revoke"
		m["revocation_endpoint_auth_methods_supported"] = m["token_endpoint_auth_methods_supported"]
		m["scopes_supported"] = []string{Scope}
		authserver.WriteJSON(w, http.StatusOK, m)
	}))
	mux.Handle("/.well-known/oauth-protected-resource/mcp", authserver.Public(func(w http.ResponseWriter, _ *http.Request) {
		authserver.WriteJSON(w, http.StatusOK, map[string]any{
			"resource": d.resource(), "authorization_servers": []string{d.base}, "scopes_supported": []string{Scope},
			"bearer_methods_supported": []string{"header"}, "resource_name": "Demo third party",
		})
	}))
	mux.Handle("/authorize", d.auth.Authorize())
	mux.Handle("/token", d.auth.Token())
	mux.Handle("/register", d.auth.Register())
	mux.Handle("/revoke", d.auth.Revoke())
	mux.Handle("/mcp", d.authenticated(d.mcpHandler()))
	mux.Handle("/events", d.authenticated(http.HandlerFunc(d.serveEvents)))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		if err := index.WriteIn(w, http.StatusOK, webpage.Frame{Title: "An issue tracker to connect to", Site: site}, d); err != nil {
			http.Error(w, "the page could not be made", http.StatusInternalServerError)
		}
	})
	return mux
}

// site names the third party on its pages.
const site = "Demo third party"

var index = webpage.MustParse(`<p>It stands for a service that others run: an MCP server at <code>{{.MCPURL}}</code> and an event stream at
<code>{{.EventsURL}}</code>, for accounts that log in with OAuth. For development only.</p>`)

// grantKey is the context key of the grant whose token a request carries.
type grantKey struct{}

func grantOf(ctx context.Context) oauthserver.Grant {
	g, _ := ctx.Value(grantKey{}).(oauthserver.Grant)
	return g
}

// authenticated passes on requests with a valid access token; others learn where tokens come from (RFC 9728 section
// 5.1).
func (d *Demo) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if origins := r.Header.Values("Origin"); len(origins) > 1 || len(origins) == 1 && !loopback.IsOrigin(origins[0]) {
			authserver.WriteJSON(w, http.StatusForbidden, map[string]string{"error": "Forbidden", "message": "requests from this origin are refused"})
			return
		}
		challenge := `Bearer resource_metadata="` + d.base + `/.well-known/oauth-protected-resource/mcp", scope="` + Scope + `"`
		values := r.Header.Values("Authorization")
		if len(values) == 0 {
			w.Header().Set("WWW-Authenticate", challenge)
			authserver.WriteJSON(w, http.StatusUnauthorized, map[string]string{"error": "Unauthorized", "message": "an access token is needed"})
			return
		}
		scheme, token, _ := strings.Cut(values[0], " ")
		g, ok := d.auth.Lookup(token)
		if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || !ok || g.Subject == "" {
			w.Header().Set("WWW-Authenticate", challenge+`, error="invalid_token"`)
			authserver.WriteJSON(w, http.StatusUnauthorized, map[string]string{"error": "Unauthorized", "message": "the access token is not good"})
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), grantKey{}, g)))
	})
}

func unavailable(w http.ResponseWriter, message string) {
	w.Header().Set("Retry-After", "1")
	authserver.WriteJSON(w, http.StatusServiceUnavailable, map[string]string{"error": "Unavailable", "message": message})
}
