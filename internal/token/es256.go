package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/fips140"
	"sync"
	"sync/atomic"
)

// usualLead is the number of good signatures that a key must have more than all others before its multiples are made.
// Making them takes as long as a hundred checks without them.
const usualLead = 200

// es256 verifies signatures of ES256. An issuer signs with one key for months. Once that key has been seen often
// enough, its multiples are kept, and checking its signatures takes less than half the time.
type es256 struct {
	usual  atomic.Pointer[p256Multiples] // nil until there is one
	making sync.Mutex                    // held while multiples are made: other goroutines continue without it

	mu        sync.Mutex
	candidate *ecdsa.PublicKey
	lead      int // of candidate, from 0 to usualLead
}

var onP256 = ecSignatures{crypto.SHA256, p256Width}

// Verify verifies a signature. The key must be on P-256.
func (e *es256) Verify(signed string, signature []byte, key any) error {
	public := key.(*ecdsa.PublicKey)
	usual := e.usual.Load()
	known := usual != nil && sameKey(usual.key, public)
	if known {
		if !usual.verify([p256Width]byte(onP256.digest(signed)), signature) {
			return errSignature
		}
	} else if err := onP256.Verify(signed, signature, public); err != nil {
		return err
	}
	// Only good signatures are counted: a request that anybody can send leaves nothing here.
	if leads := e.count(public); leads && !known && !fips140.Enabled() { // FIPS 140-3 wants the validated module's check
		e.makeUsual(public)
	}
	return nil
}

// makeUsual makes the multiples of key, unless another goroutine is already making some: a later signature tries
// again.
func (e *es256) makeUsual(key *ecdsa.PublicKey) {
	if !e.making.TryLock() {
		return
	}
	defer e.making.Unlock()
	if usual := e.usual.Load(); usual != nil && sameKey(usual.key, key) {
		return
	}
	if multiples, err := newP256Multiples(key); err == nil {
		e.usual.Store(multiples)
	}
}

// count counts a good signature as a vote for its key (Boyer and Moore's majority vote). It reports whether the key
// has the necessary lead. During a change of keys the new key must first outweigh the old one's lead.
func (e *es256) count(key *ecdsa.PublicKey) (leads bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.lead == 0:
		e.candidate, e.lead = key, 1
	case !sameKey(e.candidate, key):
		e.lead--
	case e.lead < usualLead:
		e.lead++
	}
	return e.lead == usualLead
}
