package connection

import (
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// refusedInHeader connects an account at a provider that refuses the client's secret in the header. The account's token
// is due. With the secret in the body the provider answers as other does.
func refusedInHeader(t *testing.T, other func(http.ResponseWriter)) *bundle {
	t.Helper()
	b := setup(t)
	b.configured(storage.EntryOptions{})
	b.connect()
	b.provider.set(func(p *provider) {
		p.instead = func(w http.ResponseWriter, form url.Values) bool {
			if form.Has("client_secret") {
				other(w)
			} else {
				answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
			}
			return true
		}
	})
	b.clock.advance(time.Hour)
	return b
}

// TestOtherMethodProvesNothing checks W15: an answer to the other authentication method that does not show that the
// client was accepted changes nothing. The method, which applies to everybody, and the user's tokens stay.
func TestOtherMethodProvesNothing(t *testing.T) {
	words := func(status int, text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
		}
	}
	for name, tc := range map[string]struct {
		other func(http.ResponseWriter)
		want  error
	}{
		"invalid_request": {words(400, `{"error":"invalid_request"}`), errAdministrator},
		"invalid_request, with words": {
			words(400, `{"error":"invalid_request","error_description":"the secret does not belong here"}`), errAdministrator,
		},
		"a bare 403":  {words(403, ""), errAdministrator},
		"a page":      {words(200, "<html>"), errAdministrator},
		"away":        {words(503, ""), ErrUnavailable},
		"another one": {words(401, `{"error":"invalid_client"}`), errAdministrator},
	} {
		t.Run(name, func(t *testing.T) {
			b := refusedInHeader(t, tc.other)
			if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
			if got := b.client().AuthMethod; got != "client_secret_basic" {
				t.Errorf("the method is %s", got)
			}
			if c := b.connection(); c.Status != storage.ConnectionConnected || c.SealedCredential == nil {
				t.Errorf("the connection is %s: %s", c.Status, c.Reason)
			}
		})
	}
}

// TestOtherMethodProven checks W15: invalid_grant answers a client that was accepted, and so does a refresh token.
func TestOtherMethodProven(t *testing.T) {
	for name, given := range map[string]map[string]any{
		"invalid_grant": {"error": "invalid_grant"},
		"a refresh token beside an access token that cannot be used": {"access_token": "a", "token_type": "DPoP", "refresh_token": "next"},
	} {
		t.Run(name, func(t *testing.T) {
			b := refusedInHeader(t, func(w http.ResponseWriter) { answer(w, http.StatusOK, given) })
			if _, err := b.Credential(t.Context(), b.key, &b.server); err == nil {
				t.Error("a credential")
			}
			if got := b.client().AuthMethod; got != "client_secret_post" {
				t.Errorf("the method is %s", got)
			}
			if b.server = b.reload(b.server); b.server.Status != storage.ServerActive {
				t.Errorf("server is %s", b.server.Status)
			}
		})
	}
}

// TestOtherMethodAway checks W15: a provider that refuses the secret in one place, and is away when asked with the
// other, has refused nothing yet. The secret stays where it is.
func TestOtherMethodAway(t *testing.T) {
	b := setup(t)
	a := &asking{b: b.Broker, server: b.server, auth: oauth.ClientAuth{ID: "id", Secret: seal.NewSecret("s"), Method: oauth.AuthBasic}}
	var by []string
	_, err := a.eitherMethod(func() (oauth.Tokens, error) {
		if by = append(by, a.auth.Method); len(by) == 1 {
			return oauth.Tokens{}, &oauth.ProtocolError{Code: oauth.CodeInvalidClient}
		}
		return oauth.Tokens{}, oauth.ErrUnavailable
	})
	if oauth.ClassOf(err) != oauth.Later || oauth.ClientRefused(err) || a.auth.Method != oauth.AuthBasic || len(by) != 2 || by[1] != oauth.AuthPost {
		t.Errorf("%v, asked by %v, then by %s", err, by, a.auth.Method)
	}
}

// TestResourceRefusedThatWasNotSent checks that a refresh token is not sent again for a resource that was not sent.
func TestResourceRefusedThatWasNotSent(t *testing.T) {
	b := setup(t)
	b.change(func(e *storage.DirectoryEntry) { e.Options.ResourceOff = true })
	b.connect()
	b.provider.set(func(p *provider) { p.tokenError = "invalid_target" })
	b.clock.advance(time.Hour)
	if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) || b.refreshes() != 1 {
		t.Errorf("%v, %d refreshes", err, b.refreshes())
	}
}
