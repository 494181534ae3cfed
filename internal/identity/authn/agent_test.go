package authn

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/identity/logins"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// These are the ids of an agent and its credential.
const (
	robotID      = "0192f0c1-5bd2-7000-8000-0000000000c1"
	credentialID = "0192f0c1-5bd2-7000-8000-0000000000c2"
)

// robot makes an agent with a credential, and returns a token that it got with that.
func (l *loginDoor) robot() seal.Secret {
	l.t.Helper()
	at := l.now()
	agent := storage.Agent{ID: robotID, OrganizationID: l.user.OrganizationID, CreatedAt: at, UpdatedAt: at, Application: storage.Application{
		ID: "0192f0c1-5bd2-7000-8000-0000000000c3", OrganizationID: l.user.OrganizationID, Issuer: "https://id.test", ExternalID: "nightly", Name: "The nightly run", CreatedAt: at, UpdatedAt: at,
	}}
	if err := l.store.CreateAgent(l.t.Context(), agent); err != nil {
		l.t.Fatal(err)
	}
	secret, hash := logins.NewAgentSecret()
	c := storage.AgentCredential{ID: credentialID, OrganizationID: l.user.OrganizationID, AgentID: robotID, SecretHash: hash, CreatedAt: at}
	if err := l.store.CreateAgentCredential(l.t.Context(), c); err != nil {
		l.t.Fatal(err)
	}
	client, err := l.server.Prove(l.t.Context(), authserver.Proof{ClientID: robotID, Secret: secret}, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	tokens, err := l.server.Machine(l.t.Context(), client, url.Values{}, notesURL)
	if err != nil {
		l.t.Fatal(err)
	}
	return tokens.Access
}

// TestAgentToken checks that an agent without a person is a machine, that agent, and nothing more.
func TestAgentToken(t *testing.T) {
	l := newLoginDoor(t)
	l.shut = true // it needs nobody's leave: an administrator made it
	access := l.robot()
	b, err := l.at(access, notesURL)
	if err != nil {
		t.Fatal(err)
	}
	who := *b.Caller()
	want := Caller{
		Issuer: gateway, Subject: robotID, OrganizationID: l.user.OrganizationID, UserID: robotID, Name: "The nightly run", Agent: "nightly",
		Credential: credentialID, Machine: true, ExpiresAt: who.ExpiresAt,
	}
	if diff := cmp.Diff(want, who); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if a := b.Agent(); a == nil || a.ID != robotID || a.Application.Issuer != "https://id.test" {
		t.Errorf("the agent is %+v", a)
	}
	if b.RolesUnknown() {
		t.Error("a machine has no groups, which is known")
	}
	u, err := l.store.User(t.Context(), who.OrganizationID, who.UserID)
	if err != nil || u.Kind != storage.UserMachine || u.Subject != robotID || u.Issuer != gateway {
		t.Errorf("the user is %+v, error %v", u, err)
	}
	for _, resource := range []string{"", gateway + "/mcp/other"} {
		if _, err := l.at(access, resource); !errors.Is(err, token.ErrInvalid) {
			t.Errorf("at %q: %v", resource, err)
		}
	}
	l.Authenticator.logins = nil
	if _, err := l.at(access, notesURL); !errors.Is(err, token.ErrInvalid) {
		t.Errorf("without an authorization server: %v", err)
	}
}

// TestAgentTokenEnds checks that tokens end with their credential, at once, also for streams that are open.
func TestAgentTokenEnds(t *testing.T) {
	for name, end := range map[string]func(l *loginDoor) error{
		"credential deleted": func(l *loginDoor) error {
			return l.store.DeleteAgentCredential(l.t.Context(), l.user.OrganizationID, robotID, credentialID)
		},
		"agent deleted": func(l *loginDoor) error {
			return l.store.DeleteAgent(l.t.Context(), l.user.OrganizationID, robotID, "", l.now())
		},
		"its user revoked": func(l *loginDoor) error {
			_, err := l.store.RevokeUser(l.t.Context(), l.user.OrganizationID, robotID, l.now().Add(time.Minute))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoginDoor(t)
			access := l.robot()
			b, err := l.at(access, notesURL)
			if err != nil {
				t.Fatal(err)
			}
			principal := l.PrincipalNow(b)
			if err := end(l); err != nil {
				t.Fatal(err)
			}
			if err := l.Recheck(t.Context(), b); !errors.Is(err, token.ErrInvalid) || RefusedCaller(err) == nil {
				t.Errorf("an open stream goes on: %v", err)
			}
			if p, err := principal(t.Context()); err != nil || p.AgentID() != robotID {
				t.Errorf("the stream has another principal: %v", err)
			}
			for range 2 { // known, and verified anew
				if _, err := l.at(access, notesURL); !errors.Is(err, token.ErrInvalid) {
					t.Errorf("the token is let in: %v", err)
				}
				l.Authenticator = l.other(func(o *Options) { o.Logins, o.RulesID = l.Authenticator.logins, "anew" })
			}
		})
	}
}

// otherCredential is a store that gives another agent's credential than the token's.
type otherCredential struct{ Store }

func (s *otherCredential) AgentCredential(ctx context.Context, organization, id string) (storage.AgentCredentialHolder, error) {
	h, err := s.Store.AgentCredential(ctx, organization, id)
	h.AgentID = "other"
	return h, err
}

// TestForeignCredential checks that a token is compared with its credential, so that no mistake elsewhere makes it the
// token of another agent.
func TestForeignCredential(t *testing.T) {
	l := newLoginDoor(t)
	access := l.robot()
	l.memory.store = &otherCredential{l.store}
	if _, err := l.at(access, notesURL); !errors.Is(err, token.ErrInvalid) {
		t.Errorf("another agent's credential: %v", err)
	}
}
