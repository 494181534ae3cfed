package seal

import (
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
)

// TokenSealer makes short opaque tokens for one purpose. It is safe for concurrent use.
type TokenSealer struct{ keys *derived[cipher.AEAD] }

// Sealer returns a sealer of tokens for one purpose. Its keys are derived from the data keys and the purpose: a token made
// for one purpose does not open for another.
func (k *Keyring) Sealer(purpose string) *TokenSealer {
	return &TokenSealer{newDerived(k, "durward token\x00"+purpose, keySize, func(key []byte) cipher.AEAD {
		aead, err := newAEAD(key)
		if err != nil {
			panic("seal: preparing a key of fixed length: " + err.Error())
		}
		return aead
	})}
}

// tokenText is strict: a token has exactly one spelling.
var tokenText = base64.RawURLEncoding.Strict()

// Seal encrypts plaintext bound to ad and writes it in base64url without padding (RFC 4648 section 5). The token is
// 44 characters plus four for every three bytes of plaintext.
func (t *TokenSealer) Seal(plaintext, ad []byte) string {
	version, aead := t.keys.current()
	out := make([]byte, headerSize, headerSize+aead.Overhead()+len(plaintext))
	out[0] = format
	binary.BigEndian.PutUint32(out[1:], version)
	return tokenText.EncodeToString(aead.Seal(out, nil, plaintext, tokenAD(ad, version)))
}

// Open decrypts a result of Seal with the same ad. A token stays valid for a day after its key has a successor.
// Errors are those of Keyring.Open.
func (t *TokenSealer) Open(s string, ad []byte) ([]byte, error) {
	// The decoder skips line breaks: without this a token would have many spellings.
	if strings.ContainsAny(s, "\r\n") {
		return nil, fmt.Errorf("%w: unknown format", ErrOpen)
	}
	raw, err := tokenText.DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("%w: unknown format", ErrOpen)
	}
	version, body, err := splitHeader(raw)
	if err != nil {
		return nil, err
	}
	t.keys.ring.freshen()
	made := t.keys.all()
	aead, ok := made.keys[version]
	if !ok {
		if err := t.keys.ring.learn(version); err != nil {
			return nil, err
		}
		made = t.keys.all()
		aead = made.keys[version]
	}
	if made.from.retired(version, t.keys.ring.now()) {
		return nil, fmt.Errorf("%w: data key %d is retired", ErrOpen, version)
	}
	plain, err := aead().Open(nil, nil, body, tokenAD(ad, version))
	if err != nil {
		return nil, ErrOpen
	}
	return plain, nil
}

func tokenAD(ad []byte, version uint32) []byte {
	b := make([]byte, 0, len(ad)+headerSize)
	b = append(b, format)
	b = binary.BigEndian.AppendUint32(b, version)
	return append(b, ad...)
}
