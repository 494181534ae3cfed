package storage

import (
	"context"
	"errors"
	"time"
)

// RevocationLifetime is for how long a provider is asked again and again to forget tokens.
const RevocationLifetime = 24 * time.Hour

// Revocation asks a provider to forget tokens that nobody will use any more (RFC 7009).
type Revocation struct {
	ID             string
	OrganizationID string
	// Sealed has the tokens, where the provider is to be told, and as which client.
	Sealed    []byte
	CreatedAt time.Time
	// NextAt is when the provider may be asked next.
	NextAt   time.Time
	Attempts int // that failed
}

// Ended is a stored credential that a write takes away, as the transaction of that write sees it.
type Ended struct {
	// Former is the connection before the write.
	Former Connection
	// By takes its place; nil when the connection is deleted, or keeps no credential.
	By *Connection
	// Server and Client are those of the connection. Client is nil where there is none.
	Server Server
	Client *OAuthClient
}

// Ending says what providers are to be told of a credential that ends. It is called in the transaction that ends it, and again
// when that is tried again: it must not use the store but to look up a key. What it returns is stored in the same
// transaction: either the credential is still there, or its revocation is. Its error ends the write.
type Ending func(ctx context.Context, e Ended) ([]Revocation, error)

type endingKey struct{}

// ErrNoEnding: a write would take away a credential, and nobody says what is to be revoked. It is a mistake of the caller, and nothing
// is written.
var ErrNoEnding = errors.New("a credential would end, and nobody says what its provider is told")

// WithEnding makes writes of connections and servers under ctx ask what is to be revoked. Without it those that take tokens of a
// provider away are ErrNoEnding.
func WithEnding(ctx context.Context, of Ending) context.Context {
	return context.WithValue(ctx, endingKey{}, of)
}

// EndingOf returns what WithEnding put there, nil when nothing.
func EndingOf(ctx context.Context) Ending {
	of, _ := ctx.Value(endingKey{}).(Ending)
	return of
}
