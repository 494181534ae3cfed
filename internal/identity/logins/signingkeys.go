package logins

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

const (
	// keyLifetime is the time for which a key signs.
	keyLifetime = 30 * 24 * time.Hour
	// keyKept is the time for which a key is published when it signs no more. It covers the tokens, and clocks that differ.
	keyKept = AccessLifetime + time.Hour
	// keysFresh is the time for which a node does not look for keys that it does not know: such a look costs a read.
	keysFresh = time.Second
	// keysKnown is the time after which a node reads the keys again.
	keysKnown = time.Minute
)

// signatureAlgorithm is the algorithm of access tokens (RFC 7518 section 3.4).
const signatureAlgorithm = "ES256"

// Vault seals private keys, as *seal.Keyring does.
type Vault interface {
	Seal(plaintext []byte, ad seal.AD) ([]byte, error)
	Open(sealed []byte, ad seal.AD) ([]byte, error)
}

// SigningKeys holds the keys that sign access tokens. All nodes have the same ones: the first that finds the newest key
// too old makes the next. It implements token.KeySource, and is safe for concurrent use.
type SigningKeys struct {
	store storage.Clients
	vault Vault
	now   func() time.Time

	reading sync.Mutex // held while keys are read or made
	known   atomic.Pointer[knownKeys]
}

// knownKeys holds the keys of the store at a time. It is never changed.
type knownKeys struct {
	keys   []signingKey // the newest first
	readAt time.Time
}

type signingKey struct {
	id      string
	private *ecdsa.PrivateKey
	created time.Time
	expires time.Time
}

// NewSigningKeys makes SigningKeys. It reads none yet.
func NewSigningKeys(store storage.Clients, vault Vault, now func() time.Time) *SigningKeys {
	k := &SigningKeys{store: store, vault: vault, now: now}
	k.known.Store(new(knownKeys))
	return k
}

// newest returns the newest key; its id is "" when there is none.
func (k *knownKeys) newest() signingKey {
	if len(k.keys) == 0 {
		return signingKey{}
	}
	return k.keys[0]
}

// find returns a key that has not expired.
func (k *knownKeys) find(kid string, now time.Time) (signingKey, bool) {
	for _, key := range k.keys {
		if key.id == kid && now.Before(key.expires) {
			return key, true
		}
	}
	return signingKey{}, false
}

func (k *knownKeys) age(now time.Time) time.Duration { return now.Sub(k.readAt) }

// current returns the keys of the store, of which the newest signs now. It is made when there is none.
func (k *SigningKeys) current(ctx context.Context) (*knownKeys, error) {
	now := k.now()
	if known := k.known.Load(); known.signs(now) && known.age(now) < keysKnown {
		return known, nil
	}
	k.reading.Lock()
	defer k.reading.Unlock()
	known, err := k.read(ctx, now)
	if err != nil || known.signs(now) {
		return known, err
	}
	if err := k.add(ctx, known.newest().id, now); err != nil {
		return nil, err
	}
	if known, err = k.read(ctx, now); err == nil && !known.signs(now) {
		err = errors.New("the store keeps no signing key")
	}
	return known, err
}

// signs reports whether the newest key may sign.
func (k *knownKeys) signs(now time.Time) bool {
	newest := k.newest()
	return newest.id != "" && now.Before(newest.created.Add(keyLifetime))
}

// add stores a new key behind the newest one. When another node was faster, its key is as good.
func (k *SigningKeys) add(ctx context.Context, newest string, now time.Time) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making a signing key: %w", err)
	}
	plain, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return fmt.Errorf("encoding a signing key: %w", err)
	}
	made := storage.SigningKey{ID: rand.Text(), CreatedAt: now.UTC(), ExpiresAt: now.UTC().Add(keyLifetime + keyKept)}
	if made.Sealed, err = k.vault.Seal(plain, seal.SigningKeyPlace(made.ID)); err != nil {
		return fmt.Errorf("sealing a signing key: %w", err)
	}
	if err := k.store.AddSigningKey(ctx, made, newest); err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("storing a signing key: %w", err)
	}
	return nil
}

// read reads the keys of the store. One that cannot be opened fails all: its tokens would be refused on this node alone.
// Only one call runs at a time.
func (k *SigningKeys) read(ctx context.Context, now time.Time) (*knownKeys, error) {
	stored, err := k.store.SigningKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the signing keys: %w", err)
	}
	known := &knownKeys{readAt: now}
	for _, s := range stored {
		if !now.Before(s.ExpiresAt) {
			continue
		}
		key, err := k.open(s)
		if err != nil {
			return nil, fmt.Errorf("reading signing key %s: %w", s.ID, err)
		}
		known.keys = append(known.keys, key)
	}
	k.known.Store(known)
	return known, nil
}

func (k *SigningKeys) open(s storage.SigningKey) (signingKey, error) {
	for _, known := range k.known.Load().keys {
		if known.id == s.ID {
			return known, nil
		}
	}
	plain, err := k.vault.Open(s.Sealed, seal.SigningKeyPlace(s.ID))
	if err != nil {
		return signingKey{}, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(plain)
	if err != nil {
		return signingKey{}, err
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return signingKey{}, errors.New("it is no key for " + signatureAlgorithm)
	}
	return signingKey{s.ID, private, s.CreatedAt, s.ExpiresAt}, nil
}

// Key implements token.KeySource. A key that another node has just made is read from the store. A store that is away
// takes nothing from the keys that are known.
func (k *SigningKeys) Key(ctx context.Context, kid, alg string) (any, error) {
	if alg != signatureAlgorithm || kid == "" {
		return nil, &token.Error{Kind: token.ErrInvalid, Reason: "the gateway signs with " + signatureAlgorithm + " and names its key"}
	}
	now := k.now()
	known := k.known.Load()
	key, ok := known.find(kid, now)
	if ok {
		return &key.private.PublicKey, nil
	}
	if known.age(now) >= keysFresh {
		if err := k.reread(ctx, known, now); err != nil {
			return nil, &token.Error{Kind: token.ErrUnavailable, Reason: "the signing keys cannot be read", Cause: err}
		}
	}
	if key, ok = k.known.Load().find(kid, now); ok {
		return &key.private.PublicKey, nil
	}
	return nil, &token.Error{Kind: token.ErrInvalid, Reason: "the gateway has no key of that kid"}
}

// reread reads the keys unless another call has done so since known.
func (k *SigningKeys) reread(ctx context.Context, known *knownKeys, now time.Time) error {
	k.reading.Lock()
	defer k.reading.Unlock()
	if k.known.Load() != known {
		return nil
	}
	_, err := k.read(ctx, now)
	return err
}

// JWK is a public key as a JSON Web Key (RFC 7517).
type JWK struct {
	KeyType   string `json:"kty"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	ID        string `json:"kid"`
	Curve     string `json:"crv"`
	X         string `json:"x"`
	Y         string `json:"y"`
}

// Public returns the public keys of all tokens that are good now, and of those to come.
func (k *SigningKeys) Public(ctx context.Context) ([]JWK, error) {
	known, err := k.current(ctx)
	if err != nil {
		return nil, err
	}
	var all []JWK
	for _, key := range known.keys {
		point, err := key.private.PublicKey.Bytes() // 0x04, X, Y (SEC 1 section 2.3.3)
		if err != nil {
			return nil, fmt.Errorf("encoding a public key: %w", err)
		}
		half := (len(point) - 1) / 2
		all = append(all, JWK{
			KeyType: "EC", Use: "sig", Algorithm: signatureAlgorithm, ID: key.id, Curve: "P-256",
			X: base64.RawURLEncoding.EncodeToString(point[1 : 1+half]), Y: base64.RawURLEncoding.EncodeToString(point[1+half:]),
		})
	}
	return all, nil
}
