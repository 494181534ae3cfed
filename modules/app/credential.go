package app

import (
	"context"

	"github.com/durward-gateway/durward/internal/credential/connection"
)

// CredentialSource provides the caller's credential for the call's server, at the last moment. durward_credential sets
// it.
type CredentialSource interface {
	// Credential returns the credential, refreshed when it is about to expire. Errors are the broker's (ErrNotConnected,
	// ErrUnavailable), the store's, and *streams.Ended when the server is gone.
	Credential(ctx context.Context) (connection.Credential, error)
	// Rejected reports to the source that the upstream answered 401 to the credential. It returns a fresh one when a
	// refresh gave one.
	Rejected(ctx context.Context, used connection.Credential) (connection.Credential, error)
}
