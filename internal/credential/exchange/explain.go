package exchange

import (
	"errors"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
)

// party says who gave an answer, and whose client asked.
type party struct{ name, client string }

var (
	// atProvider is the identity provider, asked as the server's client there.
	atProvider = party{"the identity provider", "the server's OAuth client"}
	// atLogin is the identity provider, asked as the client of the gateway's logins.
	atLogin = party{"the identity provider", "the gateway's own client, its login_client"}
	// atServer is the upstream's own authorization server.
	atServer = party{"the server's authorization server", "the server's OAuth client"}
)

// partyError is an error of a party.
type partyError struct {
	by    party
	cause error
}

func (e *partyError) Error() string { return e.by.name + ": " + e.cause.Error() }
func (e *partyError) Unwrap() error { return e.cause }

// by notes whose answer an error is.
func by(p party, err error) error {
	if err == nil {
		return nil
	}
	return &partyError{p, err}
}

// words says why somebody gave no token, and who can solve it. Their own text is not shown.
func (a *Asking) words(err error) string {
	const administrator = "; an administrator must look at this server's directory entry, and the gateway's log says why"
	from := atProvider
	if said, ok := errors.AsType[*partyError](err); ok {
		from = said.by
	}
	if oauth.ClientRefused(err) {
		return from.name + " does not accept " + from.client + "; an administrator must look at it, and the gateway's log says why"
	}
	switch oauth.Code(err) {
	case "":
		return from.name + "'s answer cannot be used; the gateway's log says why"
	case oauth.CodeInvalidTarget:
		return from.name + " gives no tokens for this server" + administrator
	case "invalid_scope":
		return from.name + " does not give the scopes of this server" + administrator
	case "unsupported_grant_type":
		if from == atServer {
			return from.name + " gives no tokens in this way" + administrator
		}
		return from.name + " does not exchange tokens" + administrator
	}
	if connection.KindOf(&a.Server.Entry).ForItself() {
		return from.name + " refuses the gateway a token for this server" + administrator
	}
	return from.name + " refuses you a token for this server. Ask whoever gives access to it; the gateway's log says why"
}

// explain returns the error for the user, and logs the cause.
func (e *Exchanger) explain(a *Asking, err error) error {
	said := (*connection.NotConnectedError)(nil)
	away := (*connection.UnavailableError)(nil)
	_, protocol := errors.AsType[*oauth.ProtocolError](err)
	_, unusable := errors.AsType[*oauth.UnusableError](err)
	switch {
	case errors.As(err, &said):
		e.logFailure(a, err)
		return said
	case errors.As(err, &away):
		e.logFailure(a, err)
		return away
	case errors.Is(err, oauth.ErrUnavailable):
		e.logFailure(a, err)
		return &connection.UnavailableError{Cause: err}
	case errors.Is(err, connection.ErrOAuthConfiguration):
		e.logFailure(a, err)
		return refused("the server's authorization server cannot be found or used, or is another one than before. An administrator must look at this server; the gateway's log says why")
	case protocol, unusable, errors.Is(err, oauth.ErrMalformed), errors.Is(err, oauth.ErrUnsupported), errors.Is(err, oauth.ErrMismatch):
		e.logFailure(a, err)
		return refused(a.words(err))
	}
	return err
}

func (e *Exchanger) logFailure(a *Asking, err error) {
	what, whose := "exchanging a token", a.Subject.Issuer
	if connection.KindOf(&a.Server.Entry).ForItself() {
		what, whose = "getting a token for the gateway itself", ""
	}
	e.Log.Warn(what, "organization", a.OrganizationID, "user", a.UserID, "server", a.Server.Slug, "issuer", whose,
		"error", err.Error(), "description", oauth.Description(err), "advice", netguard.Advice(err))
}
