package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
)

// TagSize is the length of a tag: the version of its key (4 bytes, big-endian) and the first half of an HMAC-SHA256.
const TagSize = 4 + sha256.Size/2

// Tagger makes tags for one purpose (HMAC-SHA256, RFC 2104, cut to 128 bits). A tag shows that its maker has the
// master key. A tag names its key: it stays valid when the master key, or the data key, is rotated. It is safe for
// concurrent use.
type Tagger struct{ keys *derived[*hashes] }

// Tagger returns tags for one purpose. Its keys are derived from the data keys and the purpose, like those of Sealer.
func (k *Keyring) Tagger(purpose string) *Tagger {
	return &Tagger{newDerived(k, "durward tag\x00"+purpose, keySize, newHashes)}
}

// AppendMAC appends the tag of a message under the current key. A node that does nothing but make tags does not learn
// of new data keys.
func (t *Tagger) AppendMAC(to, message []byte) []byte {
	version, key := t.keys.latest()
	start := len(to)
	return key.sum(binary.BigEndian.AppendUint32(to, version), message)[:start+TagSize]
}

// CheckMAC reports whether a tag is one of the message, under any of the keys. It takes the same time for every wrong
// one.
func (t *Tagger) CheckMAC(message, tag []byte) bool {
	if len(tag) != TagSize {
		return false
	}
	key, ok := t.keys.all().keys[binary.BigEndian.Uint32(tag)]
	if !ok {
		return false
	}
	var room [sha256.Size]byte
	return hmac.Equal(key().sum(room[:0], message)[:TagSize-4], tag[4:])
}
