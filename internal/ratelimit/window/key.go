package window

import (
	"crypto/sha256"
	"encoding/binary"
)

const digestSize = 16

// Digest is one half of a key: 128 bits that name a group of counters, or a member of a group. A uuid serves unchanged.
type Digest [digestSize]byte

// NewDigest returns the first half of SHA-256 over the fields, each preceded by its length, so that no two lists of
// fields give the same input. Two of a million digests are equal with a probability of 2^-88. Finding two equal ones
// takes 2^64 hashes and gains nothing: a caller can only choose names for itself inside a group, and two of its own
// names would then share one counter.
func NewDigest(fields ...string) Digest {
	room := make([]byte, 0, 256)
	for _, f := range fields {
		room = binary.BigEndian.AppendUint64(room, uint64(len(f)))
		room = append(room, f...)
	}
	sum := sha256.Sum256(room)
	return Digest(sum[:digestSize])
}

// Key names a counter: first its group, then its member name within the group. Keys are compared in full.
type Key [2 * digestSize]byte

// NewKey joins the halves of a key.
func NewKey(group, member Digest) Key {
	var k Key
	copy(k[:digestSize], group[:])
	copy(k[digestSize:], member[:])
	return k
}

func (k *Key) group() Digest { return Digest(k[:digestSize]) }

func (k *Key) member() Digest { return Digest(k[digestSize:]) }
