package exchange

import (
	"context"
	"strings"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// These are the types of proofs.
const (
	AccessToken = directory.TokenAccess
	IDToken     = directory.TokenID
)

// Subject is an identity provider's proof of a user.
type Subject struct {
	// Issuer is the identity provider, as in its tokens.
	Issuer string
	// ID names the proof in memory. Whoever has a proof with this ID may have the tokens that were got with it.
	ID string
	// Type is AccessToken or IDToken.
	Type string
	// Proof returns the proof. It is called when the token is needed, by one caller for all who wait for it, and may be
	// called after its request has ended. Its errors are *connection.NotConnectedError, *connection.UnavailableError and
	// the store's.
	Proof func(ctx context.Context) (seal.Secret, error)
}

// Asking says for whom, and for which server, a token is asked for.
type Asking struct {
	OrganizationID, UserID string
	// Server is shared, and nobody changes it.
	Server *storage.Server
	// Subject is the zero value for a server whose tokens are the gateway's own.
	Subject Subject
}

// ForItself returns the question for a token of the gateway's own, which serves everybody in the organization.
func ForItself(server *storage.Server, organization string) Asking {
	return Asking{OrganizationID: organization, Server: server}
}

// giver says, within a sentence, who gave a token.
func (a *Asking) giver() string {
	switch kind := connection.KindOf(&a.Server.Entry); {
	case kind.ForItself():
		return "its authorization server gives the gateway"
	case a.Server.Entry.Asserts():
		return "its authorization server gives for you"
	}
	return "the identity provider gives for you"
}

// key names a token in memory: by everything that it depends on. The proof belongs to it, because a token that was got with
// a strong proof must not serve a weak one, such as that of another client.
type key struct {
	organization, user, server, issuer, subject, kind string
	// These come of the server and its entry. Tokens that were got for others are of no use, or must not go to it.
	provider, url, events, wanted, endpoint, audience, resource, scopes, requested, subjectType, method, trusted, file, client, secret string
}

func (a *Asking) key() key {
	s, e := a.Server, &a.Server.Entry
	k := key{
		organization: a.OrganizationID, user: a.UserID, server: s.ID, issuer: a.Subject.Issuer, subject: a.Subject.ID, kind: a.Subject.Type,
		provider: string(e.Provider), url: e.URL, events: e.EventsURL, wanted: e.OAuth.Issuer, endpoint: e.OAuth.TokenEndpoint,
		audience: e.Options.Audience, resource: e.OAuth.Resource, scopes: strings.Join(e.Scopes, " "), requested: e.Options.RequestedTokenType,
		subjectType: e.Options.SubjectTokenType, method: e.Options.AuthMethod, trusted: e.Options.TrustedCA, file: e.Options.AssertionFile,
		client: s.ClientID, secret: string(s.SealedClientSecret),
	}
	if e.Options.ResourceOff {
		k.resource = directory.Off // which is no URI
	}
	return k
}

// subjectType returns the type under which the proof is sent, or the reason why an entry does not take it.
func (a *Asking) subjectType() (string, error) {
	wanted := a.Server.Entry.Options.SubjectTokenType
	if wanted == "" && a.Server.Entry.Asserts() {
		wanted = IDToken // the draft has no access tokens here (section 4.3)
	}
	switch wanted {
	case "", a.Subject.Type:
		return a.Subject.Type, nil
	case directory.TokenJWT: // either of them
		return wanted, nil
	case IDToken:
		return "", refused("this server is only for clients whose user logs in at the gateway. Let your client log in there")
	}
	return "", refused("this server is only for clients whose user logs in at the identity provider itself")
}

// refused returns the error for a user who cannot mend it by connecting an account.
func refused(reason string) error { return &connection.NotConnectedError{Reason: reason, NoStep: true} }
