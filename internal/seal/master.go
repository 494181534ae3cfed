package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

const keySize = 32

// MasterKey wraps data keys. It never encrypts anything else and is never stored.
type MasterKey struct {
	id   string
	aead hidden[cipher.AEAD]
}

// ID names the key without revealing anything about it: 16 hexadecimal digits of a hash.
func (m MasterKey) ID() string { return m.id }

const masterKeyHelp = "want 32 random bytes as base64 or as 64 hexadecimal digits; make one with: openssl rand -base64 32"

// ParseMasterKey reads 32 bytes written as base64 (either alphabet, with or without padding) or as 64 hexadecimal
// digits. White space around them is ignored. It refuses keys that were not drawn at random (attack row L10). No
// error repeats any part of the text.
func ParseMasterKey(s Secret) (MasterKey, error) {
	text := strings.TrimSpace(s.Reveal())
	if text == "" {
		return MasterKey{}, errors.New("master key is empty: " + masterKeyHelp)
	}
	raw, ok := decodeKey(text)
	if !ok {
		return MasterKey{}, errors.New("master key is malformed: " + masterKeyHelp)
	}
	defer clear(raw)
	if guessable(raw) {
		return MasterKey{}, errors.New("master key is not random: " + masterKeyHelp)
	}
	aead, err := newAEAD(raw)
	if err != nil {
		return MasterKey{}, fmt.Errorf("preparing master key: %w", err)
	}
	sum := sha256.Sum256(append([]byte("durward master key id\x00"), raw...))
	return MasterKey{id: hex.EncodeToString(sum[:8]), aead: hide(aead)}, nil
}

// NewMasterKey draws a key, in the form that ParseMasterKey reads.
func NewMasterKey() Secret {
	raw := make([]byte, keySize)
	_, _ = rand.Read(raw) // never fails: it crashes the process instead
	defer clear(raw)
	return NewSecret(base64.StdEncoding.EncodeToString(raw))
}

func decodeKey(text string) ([]byte, bool) {
	if len(text) == hex.EncodedLen(keySize) {
		raw, err := hex.DecodeString(text)
		return raw, err == nil
	}
	text = strings.TrimRight(text, "=")
	// The decoder skips line breaks, which are not part of a key.
	if len(text) != base64.RawStdEncoding.EncodedLen(keySize) || strings.ContainsAny(text, "\r\n") {
		return nil, false
	}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if raw, err := enc.Strict().DecodeString(text); err == nil {
			return raw, true
		}
	}
	return nil, false
}

// guessable reports whether a key is zero, repeated, counted up, or typed text. A random key looks like that once in
// about 10^13 times.
func guessable(raw []byte) bool {
	distinct := map[byte]bool{}
	steps := map[byte]bool{}
	printable := true
	for i, b := range raw {
		distinct[b] = true
		if i > 0 {
			steps[b-raw[i-1]] = true
		}
		printable = printable && b >= 0x20 && b < 0x7f
	}
	return len(distinct) < 16 || len(steps) < 8 || printable
}

// newAEAD returns AES-256-GCM that draws a nonce for each message and puts it before the ciphertext.
func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
