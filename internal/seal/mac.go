package seal

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"slices"
)

// MAC makes keyed digests for one purpose (HMAC-SHA256, RFC 2104): what is stored for looking something up cannot be
// guessed at by whoever has only the store. It is safe for concurrent use.
type MAC struct {
	keys [][]byte // the current one first
}

// MAC returns digests for one purpose. Its keys are derived from the data keys and the purpose, like those of Sealer.
func (k *Keyring) MAC(purpose string) *MAC {
	versions := make([]uint32, 0, len(k.keys))
	for version := range k.keys {
		versions = append(versions, version)
	}
	slices.Sort(versions)
	slices.Reverse(versions)
	m := &MAC{}
	for _, version := range versions {
		key, err := hkdf.Key(sha256.New, k.keys[version].raw, nil, "durward digest\x00"+purpose, keySize)
		if err != nil {
			panic("seal: deriving a key of fixed length: " + err.Error()) // only lengths can be wrong
		}
		m.keys = append(m.keys, key)
	}
	return m
}

// Sum is the digest of a message under the current key, 32 bytes.
func (m *MAC) Sum(message []byte) []byte { return sum(m.keys[0], message) }

// Sums are the digests that Sum has given or would give, under each key, the current one's first.
func (m *MAC) Sums(message []byte) [][]byte {
	sums := make([][]byte, len(m.keys))
	for i, key := range m.keys {
		sums[i] = sum(key, message)
	}
	return sums
}

func sum(key, message []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(message)
	return h.Sum(nil)
}
