package seal

import (
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/seal/sealtest"
)

// TestSilent checks L01: no key shows itself, wherever it is held.
func TestSilent(t *testing.T) {
	key := []byte(sealtest.Canary)
	aead, err := newAEAD(key)
	if err != nil {
		t.Fatal(err)
	}
	dk := &dataKey{raw: hide(key), aead: hide(aead)}
	known := &dataKeys{keys: map[uint32]*dataKey{1: dk}, versions: []uint32{1}}
	ring := &Keyring{masters: map[string]MasterKey{"x": {id: "x", aead: hide(aead)}}, now: time.Now}
	ring.known.Store(known)
	signing := ed25519.NewKeyFromSeed(key)
	signer := &Signer{&derived[ed25519.PrivateKey]{ring: ring}}
	made := &derivedKeys[ed25519.PrivateKey]{from: known, keys: map[uint32]hidden[ed25519.PrivateKey]{1: hide(signing)}}
	signer.keys.made.Store(made)
	sealtest.Silent(t, dk, *dk, known, *known, ring, ring.masters["x"], signer, made, newHashes(key), NewSecret(sealtest.Canary))
}
