package broker

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"
	"time"

	"github.com/durward-gateway/durward/internal/oauthflow"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// Whose says what is known of the browser that ends an attempt.
type Whose int

// Values of Whose. The zero value refuses.
const (
	// Foreign: somebody else is logged in with it, or nobody can ever be known to be its user.
	Foreign Whose = iota
	// Unproven: nobody is logged in with it, and somebody must be.
	Unproven
	// Own: its user is logged in with it, or knowing the state is enough.
	Own
)

// BrowserCheck finds out whose browser ends an attempt, which is the given user's. An error ends the attempt and stores
// nothing.
type BrowserCheck func(ctx context.Context, user storage.ConnectionKey) (Whose, error)

// heldLifetime is how long the provider's answer waits for its user to log in. Codes do not live much longer.
const heldLifetime = 2 * time.Minute

// maxState bounds states and handles as they come back, in bytes. Ours are shorter.
const maxState = 128

func stateHash(state string) []byte {
	hash := sha256.Sum256([]byte(state))
	return hash[:]
}

// heldHash is apart from stateHash: a handle is no state, to which a browser could bring a code of its own.
func heldHash(handle string) []byte { return stateHash("held\x00" + handle) }

// keepAnswer keeps the provider's answer, sealed, and returns the handle with which its browser can come back to it. The attempt
// was spent; this is a new one with the same contents.
func (b *Broker) keepAnswer(ctx context.Context, a storage.Attempt, made attempt, query url.Values) (string, error) {
	handle := oauthflow.NewState()
	a.StateHash = heldHash(handle)
	made.Answer = seal.NewSecret(query.Encode())
	plain, err := made.encode()
	if err != nil {
		return "", fmt.Errorf("encoding attempt: %w", err)
	}
	defer clear(plain)
	if a.Sealed, err = b.keyring.Seal(plain, attemptAD(a.ConnectionKey, a.StateHash)); err != nil {
		return "", fmt.Errorf("sealing attempt: %w", err)
	}
	a.CreatedAt = b.now().UTC()
	a.ExpiresAt = a.CreatedAt.Add(heldLifetime)
	if err := b.store.CreateAttempt(ctx, a); err != nil {
		return "", fmt.Errorf("holding attempt: %w", err)
	}
	return handle, nil
}
