package seal

import (
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
)

// TokenSealer makes short opaque tokens for one purpose. It is safe for concurrent use.
type TokenSealer struct {
	keys    map[uint32]cipher.AEAD
	current uint32
}

// Strict: a token has exactly one spelling.
var tokenText = base64.RawURLEncoding.Strict()

// Seal encrypts plaintext bound to ad and writes it in base64url without padding (RFC 4648 section 5). The token is
// 44 characters plus four for every three bytes of plaintext.
func (t *TokenSealer) Seal(plaintext, ad []byte) string {
	aead := t.keys[t.current]
	out := make([]byte, headerSize, headerSize+aead.Overhead()+len(plaintext))
	out[0] = format
	binary.BigEndian.PutUint32(out[1:], t.current)
	return tokenText.EncodeToString(aead.Seal(out, nil, plaintext, tokenAD(ad, t.current)))
}

// Open decrypts what Seal made with the same ad. Every failure is ErrOpen.
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
	aead, ok := t.keys[version]
	if !ok {
		return nil, fmt.Errorf("%w: no data key %d", ErrOpen, version)
	}
	plain, err := aead.Open(nil, nil, body, tokenAD(ad, version))
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
