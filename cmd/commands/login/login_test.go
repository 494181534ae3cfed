package login

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/devidp/idp"
)

// serve serves a development identity provider; wrap may change its answers.
func serve(t *testing.T, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	var handler http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	provider, err := idp.Open(idp.Options{Dir: t.TempDir(), Issuer: server.URL + issuerPath, Audiences: []string{server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	handler = provider
	if wrap != nil {
		handler = wrap(provider)
	}
	return server.URL
}

func TestLogin(t *testing.T) {
	provider, err := Find(t.Context(), http.DefaultClient, serve(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	session, err := provider.User(t.Context(), "alice@example.test", Credentials{ID: idp.ClientAgent})
	if err != nil || strings.Count(session.Token.Reveal(), ".") != 2 {
		t.Errorf("alice: %v", err)
	}
	token, err := provider.Client(t.Context(), Credentials{ID: idp.ClientService, Secret: seal.NewSecret(idp.ServiceSecret)})
	if err != nil || strings.Count(token.Reveal(), ".") != 2 {
		t.Errorf("the service: %v", err)
	}
	_, err = provider.Client(t.Context(), Credentials{ID: idp.ClientService, Secret: seal.NewSecret("another")})
	if err == nil || !strings.Contains(err.Error(), "invalid_client") {
		t.Errorf("a wrong secret: %v", err)
	}
	_, err = provider.User(t.Context(), "mallory@example.test", Credentials{ID: idp.ClientAgent})
	if unknown := (*UnknownUserError)(nil); !errors.As(err, &unknown) || len(unknown.Known) != len(idp.Users()) {
		t.Errorf("mallory: %v", err)
	}
}

// TestAnswersOfOthers checks redirects that this login did not ask for, or that come from another server (RFC 9700).
func TestAnswersOfOthers(t *testing.T) {
	for _, test := range []struct{ name, location, want string }{
		{"another state", redirectURI + "?code=c&state=other&iss=", "another state"},
		{"no code", "", "no code"},
		{"another issuer", "", "another provider"},
		{"refused", redirectURI + "?error=access_denied&error_description=no", "access_denied: no"},
		{"another address", "/elsewhere", "did not accept"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var issuer string
			gateway := serve(t, func(next http.Handler) http.Handler {
				state := ""
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/authorize") {
						state = r.URL.Query().Get("state")
					}
					if r.Method != http.MethodPost {
						next.ServeHTTP(w, r)
						return
					}
					location := test.location
					switch test.name {
					case "no code":
						location = redirectURI + "?state=" + state + "&iss=" + issuer
					case "another issuer":
						location = redirectURI + "?code=c&state=" + state + "&iss=http://127.0.0.1/other"
					}
					http.Redirect(w, r, location, http.StatusSeeOther)
				})
			})
			issuer = gateway + issuerPath
			provider, err := Find(t.Context(), http.DefaultClient, gateway)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = provider.User(t.Context(), "alice@example.test", Credentials{ID: idp.ClientAgent}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestFind(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"issuer":"http://` + r.Host + issuerPath + `","authorization_endpoint":"https://evil.example/authorize","token_endpoint":"https://evil.example/token"}`))
	}))
	defer elsewhere.Close()
	if _, err := Find(t.Context(), http.DefaultClient, elsewhere.URL); err == nil {
		t.Error("endpoints of another host were taken")
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
}
