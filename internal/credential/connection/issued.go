package connection

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/url"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// issued holds the data for revoking the tokens of a grant after the server's client or its endpoints have changed. A
// secret that an administrator configured is not in it. Only the server has that secret, so the secret is gone when the
// administrator replaces it.
type issued struct {
	Kind     storage.OAuthClientKind // "": an older version stored the grant
	Endpoint string                  // revocation endpoint
	Method   string
	Secret   seal.Secret
	// Elsewhere reports that the client has a secret, which only the server has.
	Elsewhere bool
	// Sum is the digest of that secret. It is empty in a grant that an older version stored.
	Sum seal.Secret
	// Origins holds the origins of the provider's token and revocation endpoint, blank-separated. It is "" in a grant
	// that an older version stored.
	Origins string
}

func issuedBy(client storage.OAuthClient, auth oauth.ClientAuth) issued {
	at := client.Endpoints
	provider, err := origins(at.TokenEndpoint, at.RevocationEndpoint)
	if err != nil {
		provider = unknownOrigin
	}
	by := issued{Kind: client.Kind, Endpoint: at.RevocationEndpoint, Method: auth.Method, Secret: auth.Secret, Origins: provider}
	if client.Kind == storage.ClientConfigured && !auth.Secret.Empty() {
		by.Secret, by.Elsewhere, by.Sum = seal.Secret{}, true, sumOf(auth.ID, auth.Secret)
	}
	return by
}

// sumOf returns a digest by which a client's secret is recognized. It is a secret too, because administrators may choose
// secrets that can be guessed.
func sumOf(clientID string, secret seal.Secret) seal.Secret {
	sum := sha256.Sum256([]byte(clientID + "\x00" + secret.Reveal()))
	return seal.NewSecret(base64.RawStdEncoding.EncodeToString(sum[:]))
}

// had reports whether the client had this secret when the tokens were issued.
func (i issued) had(clientID string, secret seal.Secret) bool {
	return i.Sum.Equal(sumOf(clientID, secret)) // no secret, and none remembered, have no digest
}

// unknownOrigin is the origin of no URL.
const unknownOrigin = "unknown"

// known reports whether the client can prove its identity without the server. A version before kept nothing of a client
// that an administrator configured with a secret.
func (i issued) known() bool {
	return i.Kind != "" && !i.Elsewhere && (i.Kind != storage.ClientConfigured || i.Endpoint != "")
}

// mayGoTo reports whether the tokens may be sent to an endpoint. Its origin must be one of those that the provider had
// when the user connected, wherever the endpoint was learned: an administrator may set an endpoint, let the gateway learn
// it, and remove it from the entry. Otherwise an administrator who changes endpoints alone would be sent the tokens of
// all users. Entries that an operator keeps may change: an operator has the tokens anyway.
func (i issued) mayGoTo(endpoint string, e *storage.DirectoryEntry) bool {
	if endpoint == "" || i.Origins == "" || e.Source != storage.SourceCustom {
		return true
	}
	u, err := url.Parse(endpoint)
	return err == nil && place{origin: i.Origins}.holds(u)
}

// again returns the data for the same grant after a refresh through a client. The origins stay those of the connect:
// otherwise a refresh would take over an endpoint that somebody has changed since.
func (i issued) again(client storage.OAuthClient, auth oauth.ClientAuth, e *storage.DirectoryEntry) issued {
	next := issuedBy(client, auth)
	if i.Origins == "" {
		return next
	}
	next.Origins = i.Origins
	present := !outdated(client, e)
	if next.Endpoint == "" || !next.mayGoTo(next.Endpoint, e) {
		next.Endpoint, present = i.Endpoint, false
	}
	if !present && !sameOrigin(next.Endpoint, client.Endpoints.TokenEndpoint) {
		next.Sum = i.Sum // a secret that the token endpoint accepts was not meant for a revocation endpoint elsewhere
	}
	return next
}

// outdated reports whether an entry names the endpoints of another provider than the one where a client was learned: an
// administrator has changed the entry, and no user has connected since. A secret that was configured since may be for the
// other provider.
func outdated(c storage.OAuthClient, e *storage.DirectoryEntry) bool {
	at := &c.Endpoints
	for _, endpoint := range [...]struct{ named, learned string }{
		{e.OAuth.TokenEndpoint, at.TokenEndpoint}, {e.OAuth.RevocationEndpoint, at.RevocationEndpoint},
	} {
		if endpoint.named != "" && endpoint.learned != "" && !sameOrigin(endpoint.named, endpoint.learned) {
			return true
		}
	}
	return false
}

// stands reports whether the server of a connection is still at the provider that issued these tokens, so that its client
// may revoke them as it is now.
func (i issued) stands(ended storage.Ended) bool {
	e, c := &ended.Server.Entry, ended.Client
	switch now := c.Endpoints.RevocationEndpoint; {
	case now == "" && i.Endpoint != "", !i.mayGoTo(now, e):
		return false
	case c.Kind != storage.ClientConfigured:
		return true // its secret belongs to this client alone
	}
	where, err := placeOf(siteOf(e), c.Endpoints)
	return err == nil && where == place{ended.Former.Origin, ended.Former.Resource, ended.Former.Issuer} &&
		i.mayGoTo(c.Endpoints.TokenEndpoint, e) && !outdated(*c, e)
}

// revokeAt returns the endpoint at which the tokens are revoked: their client's endpoint now, unless somebody may have put
// it in the provider's place, or else the endpoint at the time of the connect.
func (i issued) revokeAt(now string, e *storage.DirectoryEntry) (string, error) {
	switch {
	case now != "" && i.mayGoTo(now, e):
		return now, nil
	case i.Endpoint != "":
		return i.Endpoint, nil
	case now != "":
		return "", errEndpointMoved
	}
	return "", errNoEndpoint
}

// These say why tokens are not revoked.
var (
	// errEndpointMoved concerns grants that an older version stored without their endpoint.
	errEndpointMoved = errors.New("the revocation endpoint has changed since they were issued")
	errClientUnknown = errors.New("they were issued to a former client, of which nothing is known any more")
	errNoEndpoint    = errors.New("their provider has no address to revoke them at: they stay good until they run out")
)
