package broker

import (
	"github.com/durward-gateway/durward/internal/oauthflow"
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
}

func issuedBy(client storage.OAuthClient, auth oauthflow.ClientAuth) issued {
	if client.Kind == storage.ClientConfigured && !auth.Secret.Empty() {
		return issued{Kind: client.Kind}
	}
	return issued{Kind: client.Kind, Endpoint: client.Endpoints.RevocationEndpoint, Method: auth.Method, Secret: auth.Secret}
}

// known reports whether the client can prove its identity.
func (i issued) known() bool {
	return i.Kind != "" && (i.Kind != storage.ClientConfigured || i.Endpoint != "")
}
