package connection

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"
	"time"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// Whose names the owner of the browser that ends an attempt, as far as it is known.
type Whose int

// Values of Whose. The zero value refuses the browser.
const (
	// Foreign: another user is logged in with the browser, or nobody can ever be known to be its user.
	Foreign Whose = iota
	// Unproven: no user is logged in with the browser, although a login is required.
	Unproven
	// Own: the attempt's user is logged in with the browser, or knowing the state is enough.
	Own
)

// BrowserCheck finds out whose browser ends an attempt of the given user. An error ends the attempt, and nothing is
// stored.
type BrowserCheck func(ctx context.Context, user storage.ConnectionKey) (Whose, error)

// heldLifetime is the time that the provider's answer waits for its user to log in. Codes do not live much longer.
const heldLifetime = 2 * time.Minute

// maxState limits the length in bytes of states and handles that come back. Ours are shorter.
const maxState = 128

func stateHash(state string) []byte {
	hash := sha256.Sum256([]byte(state))
	return hash[:]
}

// heldHash differs from stateHash, because a handle is no state. With a state, a browser could bring a code of its own.
func heldHash(handle string) []byte { return stateHash("held\x00" + handle) }

// keepAnswer keeps the provider's answer, sealed, and returns a handle. With the handle the browser can come back to
// the answer. The old attempt is spent; the answer is kept in a new attempt with the same contents.
func (b *Broker) keepAnswer(ctx context.Context, a storage.Attempt, made attempt, query url.Values) (string, error) {
	handle := oauth.NewState()
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
