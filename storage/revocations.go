package storage

import (
	"context"
	"errors"
	"time"
)

// RevocationLifetime is the time for which a provider is asked repeatedly to revoke tokens.
const RevocationLifetime = 24 * time.Hour

// Revocation is a request to a provider to revoke tokens that are no longer used (RFC 7009).
type Revocation struct {
	ID             string
	OrganizationID string
	// Sealed holds the tokens, the address of the request, and the client.
	Sealed    []byte
	CreatedAt time.Time
	// NextAt is the earliest time of the next attempt.
	NextAt   time.Time
	Attempts int // that failed
}

// Ended describes a stored credential that a write removes, as the transaction of that write sees it.
type Ended struct {
	// Former is the connection before the write.
	Former Connection
	// By is its replacement; nil when the connection is deleted, or keeps no credential.
	By *Connection
	// Server and Client are those of the connection. Client is nil where there is none.
	Server Server
	Client *OAuthClient
}

// Ending returns the revocations for a credential that ends. It is called in the transaction that ends the
// credential, and again when that is tried again. It must not use the store except to look up a key. Its result is
// stored in the same transaction: either the credential is still there, or its revocation is. Its error ends the
// write.
type Ending func(ctx context.Context, e Ended) ([]Revocation, error)

type endingKey struct{}

// ErrNoEnding says that a write would remove a credential without an Ending that decides on its revocation. It is a
// mistake of the caller, and nothing is written.
var ErrNoEnding = errors.New("a credential would end, and nobody says what its provider is told")

// WithEnding makes writes of connections and servers under ctx call an Ending. Without it, writes that remove tokens
// of a provider fail with ErrNoEnding.
func WithEnding(ctx context.Context, of Ending) context.Context {
	return context.WithValue(ctx, endingKey{}, of)
}

// EndingOf returns the value of WithEnding, nil when there is none.
func EndingOf(ctx context.Context) Ending {
	of, _ := ctx.Value(endingKey{}).(Ending)
	return of
}
