package connection

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// provider is a third party: an MCP server's 401, its metadata, and an authorization server that rotates refresh tokens
// and ends the whole grant when one is used twice.
type provider struct {
	*httptest.Server
	t testing.TB

	mu          sync.Mutex
	codes       map[string]*codeGrant
	live        map[string]*family // by refresh token
	spent       map[string]*family
	access      map[string]*family
	registers   int
	refreshes   int
	exchanges   int
	discoveries int
	revoked     []string
	revokedAs   map[string]string // by token: id and secret of the client that asked
	// revokesNothing puts the revocation endpoint out of order.
	revokesNothing bool
	reuses         int // families ended because a refresh token came twice

	// Settings that a test may change. They are read under mu.
	issuer     string // the issuer in metadata; default its URL
	noRegister bool
	noIss      bool     // iss is neither promised nor sent
	grants     []string // in place of those for users in a browser
	tolerant   bool     // a spent refresh token still works
	expiresIn  int
	scope      string        // of answers with tokens; "" for none
	tokenError string        // error code of the token endpoint
	down       bool          // the token endpoint answers 503
	gate       chan struct{} // the token endpoint waits for it
	// instead answers a token request; it reports whether it did.
	instead     func(w http.ResponseWriter, form url.Values) bool
	registering func() // runs before a registration is answered
	clientID    string // "": any registered client
	secret      string
	bodyOnly    bool // the secret counts in the body only
	forgetful   bool // registered clients are forgotten: only clients registered from now on are known
	registered  map[string]bool
	expires     int64 // client_secret_expires_at, with a secret
	forms       []url.Values
}

type codeGrant struct{ challenge, redirect, client, resource string }

type family struct{ ended bool }

func newProvider(t testing.TB) *provider {
	p := &provider{
		t: t, codes: map[string]*codeGrant{}, live: map[string]*family{}, spent: map[string]*family{}, access: map[string]*family{},
		expiresIn: 3600, revokedAs: map[string]string{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+p.URL+`/.well-known/oauth-protected-resource/mcp"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		answer(w, http.StatusOK, map[string]any{
			"resource": p.URL + "/mcp", "authorization_servers": []string{p.issuerLocked()}, "scopes_supported": []string{"read"},
		})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", p.metadata)
	mux.HandleFunc("/.well-known/oauth-authorization-server/other", p.metadata)
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, _ *http.Request) {
		if meanwhile := get(p, func(p *provider) func() { return p.registering }); meanwhile != nil {
			meanwhile()
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.registers++
		id := "client-" + random()
		if p.registered == nil {
			p.registered = map[string]bool{}
		}
		p.registered[id] = true
		client := map[string]any{"client_id": id, "token_endpoint_auth_method": "none", "redirect_uris": []string{gatewayURL + CallbackPath}}
		if p.expires != 0 {
			client["token_endpoint_auth_method"], client["client_secret"], client["client_secret_expires_at"] = "client_secret_basic", random(), p.expires
		}
		answer(w, http.StatusCreated, client)
	})
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("POST /revoke", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.revokesNothing {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		id, secret, _ := r.BasicAuth()
		if id == "" {
			id = r.FormValue("client_id")
		}
		p.revoked = append(p.revoked, r.FormValue("token"))
		p.revokedAs[r.FormValue("token")] = id + " " + secret
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) issuerLocked() string {
	if p.issuer != "" {
		return p.issuer
	}
	return p.URL
}

func (p *provider) metadata(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.discoveries++
	m := map[string]any{
		"issuer": p.issuerLocked(), "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
		"revocation_endpoint": p.URL + "/revoke", "code_challenge_methods_supported": []string{"S256"},
		"response_types_supported": []string{"code"}, "grant_types_supported": []string{"authorization_code", "refresh_token"},
		"token_endpoint_auth_methods_supported": []string{"none", "client_secret_basic"},
	}
	if p.grants != nil {
		m["grant_types_supported"] = p.grants
	}
	if !p.noRegister {
		m["registration_endpoint"] = p.URL + "/register"
	}
	if !p.noIss {
		m["authorization_response_iss_parameter_supported"] = true
	}
	answer(w, http.StatusOK, m)
}

// set changes the behavior of the provider.
func (p *provider) set(f func(p *provider)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p)
}

func get[T any](p *provider, f func(p *provider) T) T {
	p.mu.Lock()
	defer p.mu.Unlock()
	return f(p)
}

// approve gives the user's consent. It returns the parameters that the browser brings back.
func (p *provider) approve(authURL string) url.Values {
	p.t.Helper()
	u, err := url.Parse(authURL)
	if err != nil {
		p.t.Fatal(err)
	}
	q := u.Query()
	p.mu.Lock()
	defer p.mu.Unlock()
	code := "code-" + random()
	p.codes[code] = &codeGrant{challenge: q.Get("code_challenge"), redirect: q.Get("redirect_uri"), client: q.Get("client_id"), resource: q.Get("resource")}
	back := url.Values{"state": {q.Get("state")}, "code": {code}}
	if !p.noIss {
		back.Set("iss", p.issuerLocked())
	}
	return back
}

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	if gate := get(p, func(p *provider) chan struct{} { return p.gate }); gate != nil {
		<-gate
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	refuse := func(code string) { answer(w, http.StatusBadRequest, map[string]any{"error": code}) }
	refreshing := r.FormValue("grant_type") == "refresh_token"
	if refreshing {
		p.refreshes++
	} else {
		p.exchanges++
	}
	p.forms = append(p.forms, r.Form)
	if p.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if p.instead != nil && p.instead(w, r.Form) {
		return
	}
	if p.tokenError != "" {
		refuse(p.tokenError)
		return
	}
	if p.clientID != "" {
		id, secret, _ := r.BasicAuth()
		if p.bodyOnly {
			id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
		}
		if id != p.clientID || secret != p.secret {
			refuse("invalid_client")
			return
		}
	}
	if p.forgetful {
		id := r.FormValue("client_id")
		if basic, _, ok := r.BasicAuth(); ok {
			id = basic
		}
		if !p.registered[id] {
			refuse("invalid_client")
			return
		}
	}
	var f *family
	if refreshing {
		token := r.FormValue("refresh_token")
		f = p.live[token]
		if f == nil && p.tolerant {
			f = p.spent[token]
		}
		if old := p.spent[token]; f == nil && old != nil && !old.ended {
			old.ended = true
			p.reuses++
		}
		if f == nil || f.ended {
			refuse("invalid_grant")
			return
		}
		delete(p.live, token)
		p.spent[token] = f
	} else {
		c := p.codes[r.FormValue("code")]
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if c == nil || base64.RawURLEncoding.EncodeToString(sum[:]) != c.challenge || r.FormValue("redirect_uri") != c.redirect ||
			r.FormValue("resource") != c.resource {
			refuse("invalid_grant")
			return
		}
		delete(p.codes, r.FormValue("code"))
		f = &family{}
	}
	access, refresh := "access-"+random(), "refresh-"+random()
	p.live[refresh], p.access[access] = f, f
	given := map[string]any{"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": p.expiresIn}
	if p.scope != "" {
		given["scope"] = p.scope
	}
	answer(w, http.StatusOK, given)
}

// accepts reports whether an Authorization header carries a token of a living grant.
func (p *provider) accepts(header string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.access[strings.TrimPrefix(header, "Bearer ")]
	return f != nil && !f.ended
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func random() string { return rand.Text() }
