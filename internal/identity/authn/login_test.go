package authn

import (
	"context"
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/logins"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

const (
	gateway   = "https://gateway.test"
	notesURL  = gateway + "/mcp/notes"
	verifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM" // RFC 7636 appendix B
)

// loginDoor is a door that also lets in the tokens of a gateway's own logins.
type loginDoor struct {
	*door
	server *logins.Server
	user   storage.User
	editor *authserver.Client
	gone   bool // nobody logs in at the identity provider any more
	mute   bool // its assertions are not taken any more
	shut   bool // the client is not admitted any more
}

func newLoginDoor(t *testing.T) *loginDoor {
	t.Helper()
	l := &loginDoor{editor: &authserver.Client{ID: "https://editor.test/client.json", Name: "An editor", GrantTypes: []string{authserver.GrantCode, authserver.GrantRefresh}}}
	l.door = newDoor(t, func(o *Options) { o.RegisterAgents = true })
	master, err := seal.ParseMasterKey(seal.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	ring, err := seal.OpenKeyring(t.Context(), []seal.MasterKey{master}, l.store, l.now)
	if err != nil {
		t.Fatal(err)
	}
	keys := logins.NewSigningKeys(l.store, ring, l.now)
	l.server = logins.New(logins.Options{Store: l.store, Vault: ring, MACs: ring.MAC("login"), Keys: keys, Issuer: gateway, Now: l.now})
	v, err := token.NewVerifier(token.Options{Issuer: gateway, Audiences: []string{gateway}, AudSingle: true, Algorithms: []string{"ES256"}, RequireTyp: true}, keys, l.now)
	if err != nil {
		t.Fatal(err)
	}
	l.Authenticator.logins = &Logins{Issuer: gateway, Verifier: v, Admits: func(string) bool { return !l.shut }, Roles: func(issuer, audience string) (caller.RoleNames, bool) {
		return caller.RoleNames{Admin: "admin", Auditor: "auditor"}, !l.gone && issuer == "https://id.test" && audience == "durward"
	}, Asserts: func(issuer string) bool { return !l.mute && issuer == "https://id.test" }}
	first := l.bearer(l.issuer.Sign(nil)).Caller() // a user, whatever issuer named them
	if l.user, err = l.store.User(t.Context(), first.OrganizationID, first.UserID); err != nil {
		t.Fatal(err)
	}
	return l
}

// logIn logs the user in.
func (l *loginDoor) logIn(facts storage.LoginFacts) *logins.Tokens {
	l.t.Helper()
	draft, err := l.server.Draft(l.t.Context(), logins.Draft{
		OrganizationID: l.user.OrganizationID, UserID: l.user.ID, Issuer: "https://id.test", Audience: "durward", Facts: facts,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	code, err := l.server.Agree(l.t.Context(), logins.Agreement{
		OrganizationID: l.user.OrganizationID, UserID: l.user.ID, Draft: draft, Client: l.editor, Resource: notesURL, RedirectURI: "http://127.0.0.1/back",
		Challenge: challenge,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	tokens, err := l.server.Redeem(l.t.Context(), l.editor, url.Values{"code": {code.Reveal()}, "redirect_uri": {"http://127.0.0.1/back"}, "code_verifier": {verifier}})
	if err != nil {
		l.t.Fatal(err)
	}
	return tokens
}

func (l *loginDoor) refresh(tokens *logins.Tokens) *logins.Tokens {
	l.t.Helper()
	next, err := l.server.Refresh(l.t.Context(), l.editor, url.Values{"refresh_token": {tokens.Refresh.Reveal()}})
	if err != nil {
		l.t.Fatal(err)
	}
	return next
}

// at lets a token in at an address.
func (l *loginDoor) at(access seal.Secret, resource string) (*Bearer, error) {
	b, err := l.Token(l.t.Context(), access.Reveal(), resource)
	return &b, err
}

// TestLoginTokens checks that a token of the gateway's own has the facts of its login, for its server alone.
func TestLoginTokens(t *testing.T) {
	l := newLoginDoor(t)
	facts := storage.LoginFacts{Roles: []string{"admin", "writer"}, Groups: []string{"sales"}, Teams: []string{"a"}, Projects: []string{"p"}, Claims: `{"department":"north"}`}
	tokens := l.logIn(facts)
	b, err := l.at(tokens.Access, notesURL)
	if err != nil {
		t.Fatal(err)
	}
	who := b.Caller()
	if who.UserID != l.user.ID || who.OrganizationID != l.user.OrganizationID || who.Login != tokens.Login.ID || who.Agent != l.editor.ID || !who.Admin || who.Machine ||
		!slices.Equal(who.Roles, facts.Roles) || !slices.Equal(who.Groups, facts.Groups) || !slices.Equal(who.Teams, facts.Teams) || !slices.Equal(who.Projects, facts.Projects) {
		t.Errorf("the caller is %+v", who)
	}
	if a := b.Agent(); a == nil || a.Application.Issuer != gateway || a.Application.ExternalID != l.editor.ID || a.Application.Name != "An editor" || !a.Application.DCR {
		t.Errorf("the agent is %+v", a)
	}
	claims, ok := b.token.attributes.Read()
	if !ok || claims["department"] != "north" || len(claims) != 1 {
		t.Errorf("policies see %v", claims)
	}
	for _, resource := range []string{"", gateway + "/mcp/other"} {
		if _, err := l.at(tokens.Access, resource); !errors.Is(err, token.ErrInvalid) {
			t.Errorf("at %q: %v", resource, err)
		}
	}
	// The next token of the login names the same person, while nothing changes.
	next, err := l.at(l.refresh(tokens).Access, notesURL)
	if err != nil || !reflect.DeepEqual(next.token.who, b.token.who) {
		t.Errorf("another person, error %v", err)
	}
	auditor, err := l.at(l.logIn(storage.LoginFacts{Roles: []string{"auditor"}}).Access, notesURL)
	if err != nil || auditor.Caller().Powers != (caller.Powers{Auditor: true}) {
		t.Errorf("an auditor: %+v, error %v", auditor.Caller(), err)
	}
	if plain, err := l.at(l.logIn(storage.LoginFacts{Groups: []string{"sales"}}).Access, notesURL); err != nil || plain.Caller().Powers != (caller.Powers{}) || plain.token.claims != "{}" {
		t.Errorf("a user without the role: %+v, error %v", plain.Caller(), err)
	}
}

// TestOwner checks that clients are kept as agents under another issuer than that of the tokens, where the options say so.
func TestOwner(t *testing.T) {
	l := newLoginDoor(t)
	l.Authenticator.logins.Owner = "urn:owner"
	b, err := l.at(l.logIn(storage.LoginFacts{}).Access, notesURL)
	if err != nil {
		t.Fatal(err)
	}
	if a := b.Agent(); a == nil || a.Application.Issuer != "urn:owner" || b.Caller().Issuer != "urn:owner" {
		t.Errorf("the agent is %+v of %+v", a, b.Caller())
	}
	if b, err = l.at(l.robot(), notesURL); err != nil {
		t.Fatal(err)
	}
	if u, err := l.store.User(t.Context(), l.user.OrganizationID, b.Caller().UserID); err != nil || u.Issuer != "urn:owner" {
		t.Errorf("the machine is %+v, error %v", u, err)
	}
}

// TestLoginEnds checks that tokens end with their login, at once, also for streams that are open.
func TestLoginEnds(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, l *loginDoor, tokens *logins.Tokens) error{
		"ended": func(t *testing.T, l *loginDoor, tokens *logins.Tokens) error {
			_, err := l.store.EndLogin(t.Context(), tokens.Login.OrganizationID, tokens.Login.ID, false)
			return err
		},
		"revoked by its client": func(t *testing.T, l *loginDoor, tokens *logins.Tokens) error {
			return l.server.Revoke(t.Context(), l.editor, tokens.Refresh.Reveal(), func(context.Context, storage.Login) error { return nil })
		},
		"consent taken back": func(t *testing.T, l *loginDoor, _ *logins.Tokens) error {
			return l.store.EndConsents(t.Context(), l.user.OrganizationID, l.user.ID, l.editor.ID)
		},
		"user revoked": func(t *testing.T, l *loginDoor, _ *logins.Tokens) error {
			_, err := l.store.RevokeUser(t.Context(), l.user.OrganizationID, l.user.ID, l.now().Add(-time.Hour)) // even by a clock that is behind
			return err
		},
		"other groups": func(t *testing.T, l *loginDoor, tokens *logins.Tokens) error {
			return l.store.RenewLogin(t.Context(), storage.Login{
				ID: tokens.Login.ID, OrganizationID: l.user.OrganizationID, Facts: storage.LoginFacts{Groups: []string{"support"}}, FactsAt: l.now(),
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoginDoor(t)
			tokens, others := l.logIn(storage.LoginFacts{Groups: []string{"sales"}}), l.logIn(storage.LoginFacts{})
			b, err := l.at(tokens.Access, notesURL)
			if err != nil {
				t.Fatal(err)
			}
			if err := end(t, l, tokens); err != nil {
				t.Fatal(err)
			}
			if err := l.Recheck(t.Context(), b); !errors.Is(err, token.ErrInvalid) {
				t.Errorf("an open stream goes on: %v", err)
			}
			again, err := l.at(tokens.Access, notesURL)
			if name == "other groups" { // the token goes on, with these
				if err != nil || !slices.Equal(again.Caller().Groups, []string{"support"}) {
					t.Errorf("%+v, error %v", again, err)
				}
			} else if !errors.Is(err, token.ErrInvalid) {
				t.Errorf("the token is let in: %v", err)
			}
			_, err = l.at(others.Access, notesURL)
			if all := name == "user revoked" || name == "consent taken back"; (err != nil) != all {
				t.Errorf("the other login: %v", err)
			}
		})
	}
}

// TestLoginsElsewhere checks that a login ends where its identity provider is not configured any more, and that a gateway
// without an authorization server takes none of its tokens.
func TestLoginsElsewhere(t *testing.T) {
	l := newLoginDoor(t)
	tokens := l.logIn(storage.LoginFacts{})
	l.gone = true
	if _, err := l.at(tokens.Access, notesURL); !errors.Is(err, token.ErrInvalid) {
		t.Errorf("nobody logs in there any more: %v", err)
	}
	l.gone, l.shut = false, true
	if _, err := l.at(tokens.Access, notesURL); !errors.Is(err, token.ErrInvalid) {
		t.Errorf("a client that is not admitted any more: %v", err)
	}
	l.shut = false
	if _, err := l.at(tokens.Access, notesURL); err != nil {
		t.Fatal(err)
	}
	l.Authenticator.logins = nil
	if _, err := l.at(tokens.Access, notesURL); !errors.Is(err, token.ErrInvalid) {
		t.Errorf("without an authorization server: %v", err)
	}
}

// TestAssertedLogin checks that what an assertion does not name is unknown, and that its tokens end where assertions are not
// taken any more.
func TestAssertedLogin(t *testing.T) {
	l := newLoginDoor(t)
	serial := 0
	asserted := func(facts storage.LoginFacts) *logins.Tokens {
		serial++
		tokens, err := l.server.Assert(t.Context(), logins.Assertion{
			OrganizationID: l.user.OrganizationID, UserID: l.user.ID, Issuer: "https://id.test", Audience: "durward", Client: l.editor, Resource: notesURL, Facts: facts,
			ID: strconv.Itoa(serial), IssuedAt: l.now(), GoodUntil: l.now().Add(time.Minute), SeenAt: l.now(),
		}, func(context.Context, storage.Login) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return tokens
	}
	rule := storage.Rule{Name: "all", Active: true, Authorized: true, Actions: []string{"*"}, RolesGroups: []string{"*"}}
	sales := rule
	sales.Name, sales.Authorized, sales.RolesGroups = "no sales", false, []string{"group:sales"}
	rules, err := engine.Compile("notes", "s", []storage.Policy{{ID: "p", Status: storage.PolicyActive, ServerID: "s", Rules: []storage.Rule{rule, sales}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		facts storage.LoginFacts
		want  engine.Effect
	}{
		"named, and none": {storage.LoginFacts{}, engine.Allow},
		"others":          {storage.LoginFacts{Groups: []string{"support"}}, engine.Allow},
		"those denied":    {storage.LoginFacts{Groups: []string{"sales"}}, engine.Deny},
		"not named":       {storage.LoginFacts{GroupsUnknown: true}, engine.Deny},
		"other unknown":   {storage.LoginFacts{RolesUnknown: true}, engine.Allow},
	} {
		b, err := l.at(asserted(c.facts).Access, notesURL)
		if err != nil {
			t.Fatal(err)
		}
		d := rules.Decide(t.Context(), engine.Call{Principal: b.Principal(""), Kind: engine.ToolsCall, Name: "x"})
		if unknown := c.facts.RolesUnknown || c.facts.GroupsUnknown; d.Effect != c.want || b.RolesUnknown() != unknown {
			t.Errorf("groups that are %s: %v, unknown %v", name, d.Effect, b.RolesUnknown())
		}
	}
	tokens := asserted(storage.LoginFacts{RolesUnknown: true, GroupsUnknown: true, Claims: `{"department":"north"}`})
	b, err := l.at(tokens.Access, notesURL)
	if err != nil {
		t.Fatal(err)
	}
	if who := b.Caller(); !b.RolesUnknown() || who.Admin || who.Login != tokens.Login.ID {
		t.Errorf("the caller is %+v, unknown %v", who, b.RolesUnknown())
	}
	l.mute = true
	if _, err := l.at(asserted(storage.LoginFacts{}).Access, notesURL); !errors.Is(err, token.ErrInvalid) {
		t.Errorf("its assertions are not taken any more: %v", err)
	}
	if _, err := l.at(l.logIn(storage.LoginFacts{}).Access, notesURL); err != nil {
		t.Errorf("a login with a browser there: %v", err)
	}
}

// otherLogin is a store that gives other facts for a login than the token's.
type otherLogin struct {
	Store
	change func(*storage.Login)
}

func (s *otherLogin) Login(ctx context.Context, organization, id string, now time.Time) (storage.Login, error) {
	l, err := s.Store.Login(ctx, organization, id, now)
	s.change(&l)
	return l, err
}

// TestForeignLogin checks that a token is compared with its login, so that no mistake elsewhere makes one a token of
// another user, client or server.
func TestForeignLogin(t *testing.T) {
	for name, change := range map[string]func(*storage.Login){
		"user":     func(l *storage.Login) { l.UserID = "other" },
		"client":   func(l *storage.Login) { l.ClientID = "other" },
		"resource": func(l *storage.Login) { l.Resource = gateway + "/mcp/other" },
	} {
		l := newLoginDoor(t)
		tokens := l.logIn(storage.LoginFacts{})
		l.memory.store = &otherLogin{l.store, change}
		if _, err := l.at(tokens.Access, notesURL); !errors.Is(err, token.ErrInvalid) {
			t.Errorf("another %s: %v", name, err)
		}
	}
}
