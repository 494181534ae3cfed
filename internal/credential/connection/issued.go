package connection

import (
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

// mayGoTo reports whether the tokens may be sent to an endpoint of the provider. configured is the endpoint in the
// directory entry; an endpoint that the entry leaves out comes from the metadata of the issuer that the connection is
// bound to. An endpoint in the entry must be at an origin that the provider had when the user connected. Otherwise an
// administrator who changes the entry alone would be sent the tokens of all users.
func (i issued) mayGoTo(endpoint, configured string) bool {
	if configured == "" || i.Origins == "" {
		return true
	}
	u, err := url.Parse(endpoint)
	return err == nil && place{origin: i.Origins}.holds(u)
}
