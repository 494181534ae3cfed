package authn

import (
	"errors"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/identity/logins"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// consoleURL is the audience of the console's tokens.
const consoleURL = gateway + "/api"

// proven is the time at which the identity provider asked the user who they are.
var proven = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// console logs the user's browser in with the console, and returns the login's id and a token of it.
func (l *loginDoor) console() (id string, access seal.Secret) {
	l.t.Helper()
	id, err := l.server.LogInConsole(l.t.Context(), logins.Draft{
		OrganizationID: l.user.OrganizationID, UserID: l.user.ID, Issuer: "https://id.test", Audience: "durward", Facts: storage.LoginFacts{Roles: []string{"admin"}},
	}, logins.Console{ClientID: "durward-console", ClientName: "Console", Resource: consoleURL, Lifetime: time.Hour})
	if err != nil {
		l.t.Fatal(err)
	}
	made, err := l.server.ConsoleToken(l.t.Context(), l.user.OrganizationID, l.user.ID, id, consoleURL, proven)
	if err != nil {
		l.t.Fatal(err)
	}
	if made.ExpiresIn != logins.ConsoleLifetime || !made.Refresh.Empty() {
		l.t.Errorf("the token is good for %v, and has a refresh token: %v", made.ExpiresIn, !made.Refresh.Empty())
	}
	return id, made.Access
}

// TestConsole checks that a token of the console opens the API alone, whatever clients are admitted, and makes no agent.
func TestConsole(t *testing.T) {
	l := newLoginDoor(t)
	l.Authenticator.logins.Console = consoleURL
	l.shut, l.mute = true, true
	_, access := l.console()
	b, err := l.at(access, consoleURL)
	if err != nil {
		t.Fatal(err)
	}
	if who := b.Caller(); !who.ProvenAt.Equal(proven) || !who.Console || !who.Admin || who.UserID != l.user.ID || b.Agent() != nil {
		t.Errorf("the bearer is %+v, agent %v", who, b.Agent())
	}
	for _, resource := range []string{"", notesURL} {
		if _, err := l.at(access, resource); !errors.Is(err, token.ErrInvalid) {
			t.Errorf("at %q: %v", resource, err)
		}
	}
	// Tokens of identity providers are not for that audience.
	if err := l.refused(l.issuer.Sign(map[string]any{"aud": consoleURL}), consoleURL); !errors.Is(err, token.ErrInvalid) {
		t.Errorf("a token of an identity provider for it: %v", err)
	}
}

// TestConsoleEnds checks that a token of the console ends with the browser's session: when its user logs out, and when the login
// ends.
func TestConsoleEnds(t *testing.T) {
	l := newLoginDoor(t)
	l.Authenticator.logins.Console = consoleURL
	_, before := l.console()
	begun := time.Now().UTC().Add(time.Millisecond)
	if _, err := l.at(before, consoleURL); err != nil {
		t.Fatal(err)
	}
	if err := l.store.LogOutUser(t.Context(), l.user.OrganizationID, l.user.ID, begun); err != nil {
		t.Fatal(err)
	}
	if _, err := l.at(before, consoleURL); !errors.Is(err, token.ErrInvalid) {
		t.Errorf("after its user logged out: %v", err)
	}
	l.turned.Store(int64(time.Second))
	id, after := l.console()
	if _, err := l.at(after, consoleURL); err != nil {
		t.Errorf("a login after that: %v", err)
	}
	if _, err := l.store.EndLogin(t.Context(), l.user.OrganizationID, id, false); err != nil {
		t.Fatal(err)
	}
	if _, err := l.at(after, consoleURL); !errors.Is(err, token.ErrInvalid) {
		t.Errorf("after the login ended: %v", err)
	}
	if _, err := l.server.ConsoleToken(t.Context(), l.user.OrganizationID, l.user.ID, id, consoleURL, proven); !errors.Is(err, logins.ErrNoLogin) {
		t.Errorf("another token of it: %v", err)
	}
}
