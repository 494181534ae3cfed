package login

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/devidp/clients"
)

const alice = "alice@example.test"

// fake is a gateway with its identity provider, as far as a login needs them.
type fake struct {
	*http.ServeMux
	url      string
	wanted   url.Values // the parameters of the authorization request
	consent  string     // the page that asks about the client
	location string     // where its form leads; "": back to the client
	answer   url.Values // is sent back to the client; "STATE" stands for its state, and "URL" for the gateway
}

// serve serves a fake gateway.
func serve(t *testing.T) *fake {
	t.Helper()
	f := &fake{
		ServeMux: http.NewServeMux(),
		answer:   url.Values{"code": {"the code"}, "state": {"STATE"}, "iss": {"URL"}},
		consent:  `<form action="/logout"><input name="form" value="other"></form><h1>Let it?</h1><form action="/agree"><input name="form" value="f1"><button name="decision" value="approve">Yes</button></form>`,
	}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.url = server.URL
	f.metadata(issuerPath+"/.well-known/openid-configuration", f.url+issuerPath, f.url+issuerPath)
	f.metadata(metadataPath, f.url, f.url)
	f.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		f.wanted = r.URL.Query()
		http.Redirect(w, r, issuerPath+"/login", http.StatusSeeOther)
	})
	f.HandleFunc("GET "+issuerPath+"/login", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `<form action="%s/login"><button name="user" value="%s">Alice</button><button name="user" value="bob@example.test">Bob</button></form>`, issuerPath, alice)
	})
	f.HandleFunc("POST "+issuerPath+"/login", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "user", Value: r.FormValue("user"), Path: "/"})
		http.Redirect(w, r, "/asks", http.StatusSeeOther)
	})
	f.HandleFunc("GET /asks", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, f.consent) })
	f.HandleFunc("POST /agree", func(w http.ResponseWriter, r *http.Request) {
		if user, err := r.Cookie("user"); err != nil || user.Value != alice || r.FormValue("form") != "f1" || r.FormValue("decision") != "approve" {
			t.Errorf("agreed with %v, %v", r.PostForm, user)
		}
		location := f.location
		if location == "" {
			answer := strings.NewReplacer("STATE", f.wanted.Get("state"), "URL", url.QueryEscape(f.url)).Replace(f.answer.Encode())
			location = f.wanted.Get("redirect_uri") + "?" + answer
		}
		http.Redirect(w, r, location, http.StatusSeeOther)
	})
	f.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.FormValue("grant_type") == "client_credentials" && id == clients.ServiceID && secret == clients.ServiceSecret:
			fmt.Fprint(w, `{"access_token":"machine's","token_type":"Bearer"}`)
		case r.FormValue("code") == "the code" && base64.RawURLEncoding.EncodeToString(sum[:]) == f.wanted.Get("code_challenge") && r.FormValue("client_id") == clients.Agent:
			fmt.Fprint(w, `{"access_token":"alice's","token_type":"Bearer"}`)
		default:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"invalid_client","error_description":"no"}`)
		}
	})
	return f
}

// metadata serves a document that names endpoints below base.
func (f *fake) metadata(path, issuer, base string) {
	f.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": issuer, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token"})
	})
}

func (f *fake) find(t *testing.T) *Gateway {
	t.Helper()
	g, err := Find(t.Context(), http.DefaultClient, f.url)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestLogin checks that a user logs in at the identity provider, and agrees to the client at the gateway.
func TestLogin(t *testing.T) {
	g := serve(t).find(t)
	session, err := g.User(t.Context(), alice, clients.Agent)
	if err != nil {
		t.Fatal(err)
	}
	if session.Token.Reveal() != "alice's" || session.Question != "Let it?" {
		t.Errorf("got %+v", session)
	}
	if diff := gocmp.Diff([]int{2, 2, 1}, []int{len(session.Begun), len(session.Entered), len(session.Agreed)}); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff([]string{"code", "iss", "state"}, session.Returned); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	_, err = g.User(t.Context(), "mallory@example.test", clients.Agent)
	if unknown := (*UnknownUserError)(nil); !errors.As(err, &unknown) || len(unknown.Known) != 2 {
		t.Errorf("mallory: %v", err)
	}
	if _, err = g.User(t.Context(), alice, clients.Console); err == nil || !strings.Contains(err.Error(), "invalid_client: no") {
		t.Errorf("a refused code: %v", err)
	}
}

func TestMachine(t *testing.T) {
	g := serve(t).find(t)
	if token, err := g.Machine(t.Context(), clients.ServiceID, seal.NewSecret(clients.ServiceSecret)); err != nil || token.Reveal() != "machine's" {
		t.Errorf("the service: %v", err)
	}
	if _, err := g.Machine(t.Context(), clients.ServiceID, seal.NewSecret("another")); err == nil || !strings.Contains(err.Error(), "invalid_client") {
		t.Errorf("a wrong secret: %v", err)
	}
}

// TestAnswersOfOthers checks answers that this login did not ask for, or that come from another server (RFC 9700), and
// refusals.
func TestAnswersOfOthers(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*fake)
		want   string
	}{
		{"another state", func(f *fake) { f.answer.Set("state", "other") }, "another state"},
		{"no code", func(f *fake) { f.answer.Del("code") }, "no code"},
		{"another issuer", func(f *fake) { f.answer.Set("iss", "http://127.0.0.1/other") }, "another server"},
		{"refused", func(f *fake) { f.answer = url.Values{"error": {"access_denied"}, "error_description": {"no"}} }, "access_denied: no"},
		{"another address", func(f *fake) { f.location = "/elsewhere" }, "/elsewhere answered 404"},
		{"no question", func(f *fake) { f.consent = "<p>The client is not known.</p>" }, "/asks answered 200: The client is not known"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := serve(t)
			test.change(f)
			if _, err := f.find(t).User(t.Context(), alice, clients.Agent); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

// TestLoginPageOfOthers checks that the user is picked on no page but the identity provider's.
func TestLoginPageOfOthers(t *testing.T) {
	for name, page := range map[string]string{
		"/company/login":     `<h1>Log in</h1><form><button name="user" value="alice@example.test">Alice</button></form>`,
		issuerPath + "/page": `<p>The gateway is not known here.</p>`,
	} {
		f := serve(t)
		f.HandleFunc("GET "+name, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, page) })
		f.HandleFunc("GET /oauth", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, name, http.StatusSeeOther) })
		g := f.find(t)
		g.metadata.AuthorizationEndpoint = f.url + "/oauth"
		if _, err := g.User(t.Context(), alice, clients.Agent); err == nil || !strings.Contains(err.Error(), "the login page is not shown: "+f.url+name+" answered 200") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFind(t *testing.T) {
	for name, test := range map[string]struct {
		issuer, base string // of the gateway's own metadata
		want         string
	}{
		"endpoints of another host": {"", "https://evil.example", "sends clients to"},
		"another issuer":            {"https://evil.example", "", "sends clients to"},
		"no metadata":               {"none", "", "authorization_server off"},
	} {
		mux := http.NewServeMux()
		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)
		f := &fake{ServeMux: mux}
		f.metadata(issuerPath+"/.well-known/openid-configuration", server.URL+issuerPath, server.URL+issuerPath)
		if test.issuer != "none" {
			f.metadata(metadataPath, cmp.Or(test.issuer, server.URL), cmp.Or(test.base, server.URL))
		}
		if _, err := Find(t.Context(), http.DefaultClient, server.URL); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, test.want)
		}
	}
	other := httptest.NewServer(http.NotFoundHandler())
	if _, err := Find(t.Context(), http.DefaultClient, other.URL); !errors.Is(err, ErrNotDevelopment) {
		t.Errorf("another server: %v", err)
	}
	other.Close()
	_, err := Find(t.Context(), http.DefaultClient, other.URL)
	if unreachable := (*UnreachableError)(nil); !errors.As(err, &unreachable) {
		t.Errorf("nothing listens: %v", err)
	}
	f := serve(t)
	if _, err := Find(t.Context(), http.DefaultClient, strings.Replace(f.url, "127.0.0.1", "localhost", 1)); err == nil || !strings.Contains(err.Error(), f.url) {
		t.Errorf("another name of the gateway: %v", err)
	}
}
