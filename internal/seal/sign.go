package seal

import (
	"crypto/ed25519"
	"encoding/binary"
)

// Signer signs statements for one purpose with Ed25519 (RFC 8032), so that a checker of signatures need not be able
// to make them. It is safe for concurrent use.
type Signer struct{ keys *derived[ed25519.PrivateKey] }

// Signer returns a signer for one purpose. Its keys are derived from the data keys and the purpose, like those of Sealer.
func (k *Keyring) Signer(purpose string) *Signer {
	return &Signer{newDerived(k, "durward signature\x00"+purpose, ed25519.SeedSize, ed25519.NewKeyFromSeed)}
}

// Sign returns the version of the key (4 bytes, big-endian) and the signature (64 bytes).
func (s *Signer) Sign(message []byte) []byte {
	version, key := s.keys.current()
	out := binary.BigEndian.AppendUint32(make([]byte, 0, 4+ed25519.SignatureSize), version)
	return append(out, ed25519.Sign(key, message)...)
}

// Verify reports whether the signature is one of this signer's, with any of its keys.
func (s *Signer) Verify(message, signature []byte) bool { return s.Public().Verify(message, signature) }

// Public returns the public keys, which check signatures and cannot make any.
func (s *Signer) Public() PublicKeys {
	made := s.keys.all()
	public := make(PublicKeys, len(made.keys))
	for version, key := range made.keys {
		public[version] = key().Public().(ed25519.PublicKey)
	}
	return public
}

// PublicKeys checks signatures of a Signer, by the version of its key.
type PublicKeys map[uint32]ed25519.PublicKey

// Verify reports whether the signature is good.
func (p PublicKeys) Verify(message, signature []byte) bool {
	if len(signature) != 4+ed25519.SignatureSize {
		return false
	}
	key, ok := p[binary.BigEndian.Uint32(signature)]
	return ok && ed25519.Verify(key, message, signature[4:])
}
