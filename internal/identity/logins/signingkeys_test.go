package logins

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/base64"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/storage"
)

// ids returns the ids of the published keys.
func (n *node) ids(t *testing.T) (ids []string) {
	t.Helper()
	keys, err := n.Keys.Public(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		ids = append(ids, k.ID)
	}
	return ids
}

// TestKeyRotation checks that all nodes have the same keys, that a new one signs after 30 days, and that the former one
// stays until its last token has ended.
func TestKeyRotation(t *testing.T) {
	nodes := newNodes(t, 2, nil)
	a, b := nodes[0], nodes[1]
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { nodes[i%2].ids(t) })
	}
	wg.Wait()
	first := a.ids(t)
	if len(first) != 1 || b.ids(t)[0] != first[0] {
		t.Fatalf("keys %v and %v", first, b.ids(t))
	}
	a.clock.forward(keyLifetime - time.Minute)
	former := a.logIn(t, nil)
	a.clock.forward(time.Minute)
	tokens := b.logIn(t, nil)
	both := b.ids(t)
	if len(both) != 2 || both[1] != first[0] {
		t.Errorf("after 30 days the keys are %v, were %v", both, first)
	}
	// The other node learns the new key from the first token that it signed.
	if _, err := a.verify(t, tokens.Access, resource); err != nil {
		t.Error(err)
	}
	a.clock.forward(AccessLifetime - 2*time.Minute)
	if _, err := b.verify(t, former.Access, resource); err != nil {
		t.Error(err)
	}
	a.clock.forward(keyKept)
	if last := b.ids(t); len(last) != 1 || last[0] != both[0] {
		t.Errorf("in the end the keys are %v", last)
	}
}

// TestPublicKeys checks that the published key is the one that signs.
func TestPublicKeys(t *testing.T) {
	n := newNode(t)
	keys, err := n.Keys.Public(t.Context())
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	coordinate := func(text string) []byte {
		b, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || len(b) != 32 {
			t.Errorf("%q: %v", text, err)
		}
		return b
	}
	key := keys[0]
	published, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, coordinate(key.X), coordinate(key.Y)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := n.Keys.Key(t.Context(), key.ID, "ES256")
	if err != nil || !published.Equal(got) || key.KeyType != "EC" || key.Curve != "P-256" || key.Algorithm != "ES256" || key.Use != "sig" {
		t.Errorf("%+v, error %v", key, err)
	}
	for _, c := range [][2]string{{key.ID, "RS256"}, {key.ID, "none"}, {"", "ES256"}, {"other", "ES256"}} {
		if _, err := n.Keys.Key(t.Context(), c[0], c[1]); !errors.Is(err, token.ErrInvalid) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// awayStore has no keys while it is away, and counts the reads.
type awayStore struct {
	storage.Clients
	away  bool
	reads int
}

func (s *awayStore) SigningKeys(ctx context.Context) ([]storage.SigningKey, error) {
	s.reads++
	if s.away {
		return nil, storage.ErrUnavailable
	}
	return s.Clients.SigningKeys(ctx)
}

// TestStoreAway checks that a node goes on with the keys that it knows while the store is away, and that unknown keys do
// not make it read again and again.
func TestStoreAway(t *testing.T) {
	n := newNode(t)
	store := &awayStore{Clients: n.Store}
	n.Keys.store = store
	known := n.ids(t)[0]
	n.clock.forward(time.Hour)
	store.away = true
	if _, err := n.Keys.Key(t.Context(), known, "ES256"); err != nil {
		t.Error(err)
	}
	if _, err := n.Keys.Key(t.Context(), "other", "ES256"); !errors.Is(err, token.ErrUnavailable) {
		t.Errorf("a key that cannot be looked up: %v", err)
	}
	if _, err := n.Keys.Public(t.Context()); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("the keys: %v", err)
	}
	store.away = false
	n.ids(t)
	before := store.reads
	for range 10 {
		if _, err := n.Keys.Key(t.Context(), "other", "ES256"); !errors.Is(err, token.ErrInvalid) {
			t.Error(err)
		}
	}
	if store.reads != before {
		t.Errorf("%d reads for an unknown key", store.reads-before)
	}
	n.clock.forward(keysFresh)
	if _, err := n.Keys.Key(t.Context(), "other", "ES256"); !errors.Is(err, token.ErrInvalid) || store.reads != before+1 {
		t.Errorf("%d reads a second later, error %v", store.reads-before, err)
	}
	// A key that another program put there, or that was changed, signs nothing.
	if err := n.Store.AddSigningKey(t.Context(), storage.SigningKey{ID: "forged", Sealed: []byte("key"), CreatedAt: n.clock.time().Add(time.Second), ExpiresAt: n.clock.time().Add(time.Hour)}, known); err != nil {
		t.Fatal(err)
	}
	n.clock.forward(keysKnown)
	if _, err := n.Keys.Public(t.Context()); err == nil {
		t.Error("a forged key is published")
	}
	if _, err := n.Keys.Key(t.Context(), "forged", "ES256"); !errors.Is(err, token.ErrUnavailable) {
		t.Errorf("a forged key: %v", err)
	}
}
