package connection

import (
	"errors"
	"net/url"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// issued holds the data for revoking the tokens of a grant after the server's client has changed. For a client with a
// secret that an administrator configured, it holds the kind alone. Only the server has that secret, so the secret is
// gone when the administrator replaces it.
type issued struct {
	Kind     storage.OAuthClientKind // "": an older version stored the grant
	Endpoint string                  // revocation endpoint
	Method   string
	Secret   seal.Secret
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
	if client.Kind == storage.ClientConfigured && !auth.Secret.Empty() {
		return issued{Kind: client.Kind, Origins: provider}
	}
	return issued{Kind: client.Kind, Endpoint: at.RevocationEndpoint, Method: auth.Method, Secret: auth.Secret, Origins: provider}
}

// unknownOrigin is the origin of no URL.
const unknownOrigin = "unknown"

// known reports whether the client can prove its identity.
func (i issued) known() bool {
	return i.Kind != "" && (i.Kind != storage.ClientConfigured || i.Endpoint != "")
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
	if !next.mayGoTo(next.Endpoint, e) {
		next.Endpoint = i.Endpoint
	}
	return next
}

// errEndpointMoved says why tokens are not revoked.
var errEndpointMoved = errors.New("the revocation endpoint has changed since they were issued")
