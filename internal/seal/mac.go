package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
)

// MACSize is the length of a MAC: the version of its key (4 bytes, big-endian) and the first half of an HMAC-SHA256.
const MACSize = 4 + sha256.Size/2

// MAC makes message authentication codes for one purpose (HMAC-SHA256, RFC 2104, cut to 128 bits). A code shows that
// its maker has the master key. It names its key, and stays valid when the master key, or the data key, is rotated. MAC
// is safe for concurrent use.
type MAC struct{ keys *derived[*hashes] }

// MAC returns the codes of one purpose. Its keys are derived from the data keys and the purpose, like those of Sealer.
func (k *Keyring) MAC(purpose string) *MAC {
	return &MAC{newDerived(k, "durward tag\x00"+purpose, keySize, newHashes)}
}

// AppendMAC appends the code of a message under the current key. A node that does nothing but make codes does not learn
// of new data keys.
func (m *MAC) AppendMAC(to, message []byte) []byte {
	version, key := m.keys.latest()
	start := len(to)
	return key.sum(binary.BigEndian.AppendUint32(to, version), message)[:start+MACSize]
}

// CheckMAC reports whether a code is one of the message, under any of the keys. It takes the same time for every wrong
// one.
func (m *MAC) CheckMAC(message, code []byte) bool {
	if len(code) != MACSize {
		return false
	}
	key, ok := m.keys.all().keys[binary.BigEndian.Uint32(code)]
	if !ok {
		return false
	}
	var room [sha256.Size]byte
	return hmac.Equal(key().sum(room[:0], message)[:MACSize-4], code[4:])
}
