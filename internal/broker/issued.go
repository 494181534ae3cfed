package broker

import (
	"github.com/durward-gateway/durward/internal/oauthflow"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// issued is what revokes the tokens of a grant once the server's client is another one. Of a client with a secret that an
// administrator has configured it is the kind alone: only the server has that secret, so that it is gone when they replace it.
type issued struct {
	Kind     storage.OAuthClientKind // "": an older version has stored the grant
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

// known reports whether the client can show who it is.
func (i issued) known() bool {
	return i.Kind != "" && (i.Kind != storage.ClientConfigured || i.Endpoint != "")
}
