package authn

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/logins"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

// Logins accepts the access tokens of the gateway's own authorization server.
type Logins struct {
	// Issuer is the `iss` of these tokens.
	Issuer string
	// Owner is the issuer under which the store keeps their clients as agents. Default: Issuer.
	Owner string
	// Verifier verifies them.
	Verifier *token.Verifier
	// Roles returns the names of the roles that give powers to users of an identity provider, where the gateway is the
	// client audience. It reports false when users do not log in there any more.
	Roles func(issuer, audience string) (names caller.RoleNames, ok bool)
	// Admits reports whether a client may act for users.
	Admits func(client string) bool
	// Asserts reports whether the identity assertions of an identity provider log users in; nil: none do.
	Asserts func(issuer string) bool
	// Console is the audience of tokens of the gateway's own console; "" for none. No client can ask for it.
	Console string
}

func (l *Logins) owner() string { return cmp.Or(l.Owner, l.Issuer) }

// loginFacts holds the facts of a login with which its tokens were verified.
type loginFacts struct {
	storage.LoginFacts
	client  string // its name
	issuer  string // the identity provider at which the user logged in
	console bool   // it is a browser's with the console
	begun   time.Time
	at      time.Time // when its facts were learned
}

// verifyLogin verifies a token of the gateway's own. The token names a login, which has the facts about the user, or the
// credential of an agent without a person.
func (a *Authenticator) verifyLogin(ctx context.Context, unverified token.Unverified, resource string, seenAt time.Time) (*verified, error) {
	claims, err := a.logins.Verifier.VerifyParsed(ctx, unverified, resource)
	if err != nil {
		return nil, err
	}
	text := func(name string) string {
		v, _ := claims.Object.Get(name)
		return v.Str()
	}
	organization, id := text(logins.ClaimOrganization), text(logins.ClaimLogin)
	if _, machine := claims.Object.Get(logins.ClaimCredential); machine {
		return a.verifyAgent(ctx, claims, organization, text("client_id"), seenAt)
	}
	l, err := a.memory.store.Login(ctx, organization, id, a.shared(a.memory.now()))
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, &token.Error{Kind: token.ErrInvalid, Reason: loginEnded}
	case err != nil:
		return nil, err
	case !a.isConsole(l.Resource) && !a.logins.Admits(l.ClientID):
		return nil, &token.Error{Kind: token.ErrInvalid, Reason: "the configuration does not admit the token's client any more"}
	case l.Asserted() && (a.logins.Asserts == nil || !a.logins.Asserts(l.Issuer)):
		return nil, &token.Error{Kind: token.ErrInvalid, Reason: "the configuration does not take the assertions of the login's identity provider any more"}
	case l.UserID != claims.Subject, l.ClientID != text("client_id"), l.Resource != text("aud"):
		return nil, &token.Error{Kind: token.ErrInvalid, Reason: "the token is not one of its login"}
	}
	somebody, err := a.loginPerson(ctx, &l)
	if err != nil {
		return nil, err
	}
	known := newVerified(claims, a.logins.Verifier, somebody, somebody.attributes.Load(), seenAt)
	if known.caller.Console {
		known.caller.ProvenAt, _ = claims.AuthTime()
	}
	return known, nil
}

// loginPerson returns the person that a login's tokens name. Tokens of one login with the same facts share it.
func (a *Authenticator) loginPerson(ctx context.Context, l *storage.Login) (*person, error) {
	names, ok := a.logins.Roles(l.Issuer, l.Audience)
	if !ok {
		return nil, &token.Error{Kind: token.ErrInvalid, Reason: "the login came of an identity provider that is not configured any more"}
	}
	console := a.isConsole(l.Resource)
	key := cache.NewKey("", "login", a.rulesID, l.OrganizationID, l.ID, l.FactsAt.Format(time.RFC3339Nano))
	return a.memory.people.Get(ctx, key, func(ctx context.Context) (*person, error) {
		u, err := a.memory.store.User(ctx, l.OrganizationID, l.UserID)
		if err != nil {
			return nil, err
		}
		made := &person{
			who: Caller{
				Issuer: a.logins.owner(), Subject: u.Subject, OrganizationID: l.OrganizationID, UserID: l.UserID, Name: u.Name, Email: u.Email,
				Roles: l.Facts.Roles, Groups: l.Facts.Groups, Teams: l.Facts.Teams, Projects: l.Facts.Projects, Agent: l.ClientID, Login: l.ID,
				Powers: names.Powers(l.Facts.Roles), Console: console,
			},
			history: a.memory.epochs.Of(l.OrganizationID), notes: a.memory.newNotes(),
			// A user has agreed to the client. Where only registered clients may call, an administrator has to as well.
			// The console is no agent.
			register: !console && (a.registerAgents || !a.requireAgents),
			login:    &loginFacts{l.Facts, l.ClientName, l.Issuer, console, l.CreatedAt, l.FactsAt},
		}
		cache.Compact(&made.who)
		made.attributes.Store(&attributes{claims: cmp.Or(l.Facts.Claims, "{}")})
		return made, nil
	})
}

// isConsole reports whether an audience is that of the gateway's own console.
func (a *Authenticator) isConsole(audience string) bool {
	return a.logins != nil && a.logins.Console != "" && audience == a.logins.Console
}

// loginOf returns the present facts of a person's login; nil when it has ended. A browser's login with the console ends
// with the browser's session, of which only the time of its end is stored, with the user.
func (m *Memory) loginOf(ctx context.Context, p *person, u *storage.User) (*storage.LoginFacts, error) {
	who := &p.who
	if p.login.console && !p.login.begun.After(u.LoggedOutAt) {
		return nil, nil //nolint:nilnil // as below
	}
	l, err := m.store.Login(ctx, who.OrganizationID, who.Login, m.now())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, nil //nolint:nilnil // that it has ended is a fact that is kept like any other
	case err != nil:
		return nil, err
	}
	return &l.Facts, nil
}

// These are the reasons for which tokens of a login are refused.
const (
	loginEnded   = "the login has ended"
	loginChanged = "the login has other roles, groups or claims by now"
)

// refusal says why tokens that were verified with these facts are refused, given the present ones; "" when they are not.
func (f *loginFacts) refusal(now *storage.LoginFacts) string {
	switch {
	case f == nil:
		return ""
	case now == nil:
		return loginEnded
	case !reflect.DeepEqual(f.LoginFacts, *now):
		return loginChanged
	}
	return ""
}

// unknown returns the facts about the bearer of a token that nobody knows.
func (v *verified) unknown() (u engine.Unknown) {
	if v.login != nil {
		u = engine.Unknown{Roles: v.login.RolesUnknown, Groups: v.login.GroupsUnknown}
	}
	if v.of != nil {
		u.Groups = v.groupsUnknown
	}
	return u
}

// outdated reports whether a token was refused last because its login has other facts by now.
func (v *verified) outdated() bool {
	s := v.standing.Load()
	return s != nil && s.refusal == loginChanged
}

// agentName returns the name of the agent that a client becomes when it is first seen.
func (p *person) agentName() string {
	if p.login != nil && p.login.client != "" {
		return p.login.client
	}
	return p.who.Agent
}
