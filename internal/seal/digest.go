package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"sync"
)

// Digester makes keyed digests for one purpose (HMAC-SHA256, RFC 2104). They are stored for looking values up: a reader
// who has only the store cannot guess the values. It is safe for concurrent use.
type Digester struct{ keys *derived[*hashes] }

// Digester returns digests for one purpose. Its keys are derived from the data keys and the purpose, like those of Sealer.
func (k *Keyring) Digester(purpose string) *Digester {
	return &Digester{newDerived(k, "durward digest\x00"+purpose, keySize, newHashes)}
}

// Sum returns the digest of a message under the current key, 32 bytes.
func (d *Digester) Sum(message []byte) []byte {
	_, key := d.keys.current()
	return key.sum(nil, message)
}

// Sums returns the digests that Sum gives under each key, the newest key's first.
func (d *Digester) Sums(message []byte) [][]byte {
	d.keys.ring.freshen()
	made := d.keys.all()
	sums, room := make([][]byte, len(made.from.versions)), make([]byte, 0, len(made.from.versions)*sha256.Size)
	for i, version := range made.from.versions {
		room = made.keys[version]().sum(room, message)
		sums[i] = room[len(room)-sha256.Size : len(room) : len(room)]
	}
	return sums
}

// hashes holds hash states of one key. Each has already processed the key, and is used again.
type hashes struct{ idle sync.Pool }

func newHashes(key []byte) *hashes {
	return &hashes{sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

// sum appends the digest of a message.
func (k *hashes) sum(to, message []byte) []byte {
	h := k.idle.Get().(hash.Hash)
	h.Write(message)
	to = h.Sum(to)
	h.Reset() // no part of the message stays
	k.idle.Put(h)
	return to
}
