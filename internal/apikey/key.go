// Package apikey is about the raw form of API keys: how they are made, recognized and digested, and what their scopes
// say. It knows no store and no request.
package apikey

import (
	"crypto/rand"
	"errors"
	"hash/crc32"
	"math/big"
	"strings"

	"github.com/durward-gateway/durward/internal/seal"
)

// Form of a raw key: `dw-`, 43 base62 characters of 256 random bits, 6 of checksum. Scanners for leaked secrets know it
// by its beginning and tell it from chance by the checksum.
const (
	Begin        = "dw-"
	randomBits   = 256
	randomChars  = 43
	checksumSize = 6
	// Size of a raw key in bytes.
	Size = len(Begin) + randomChars + checksumSize
	// PrefixSize is how much of a key people may see.
	PrefixSize = 8
)

// ErrMalformed is a text that is no key that was ever made.
var ErrMalformed = errors.New("not an API key")

// New makes a key.
func New() seal.Secret {
	random := make([]byte, randomBits/8)
	_, _ = rand.Read(random) // never fails: it crashes the process instead
	body := Begin + base62(new(big.Int).SetBytes(random), randomChars)
	return seal.NewSecret(body + checksum(body))
}

// Check reports whether a text has the form of a key, checksum included. It says nothing about whether there is such a
// key, and needs no secret: how long it takes tells nothing.
func Check(raw string) error {
	if len(raw) != Size || !strings.HasPrefix(raw, Begin) {
		return ErrMalformed
	}
	for i := len(Begin); i < len(raw); i++ {
		if c := raw[i]; (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return ErrMalformed
		}
	}
	body := raw[:Size-checksumSize]
	if checksum(body) != raw[len(body):] {
		return ErrMalformed
	}
	return nil
}

// Prefix is what people may see of a key.
func Prefix(key seal.Secret) string { return key.Reveal()[:PrefixSize] }

// checksum is CRC-32 (IEEE 802.3), which finds what typing and cutting do.
func checksum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	var text [checksumSize]byte
	for i := len(text) - 1; i >= 0; i-- {
		text[i] = digits[sum%62]
		sum /= 62
	}
	return string(text[:])
}

// digits are base62's, in the order of [big.Int.Text].
const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// base62 writes n with digits, lower case and upper case letters, filled up with zeros to a width that it fits in.
func base62(n *big.Int, width int) string {
	text := n.Text(62)
	return strings.Repeat("0", width-len(text)) + text
}

// Digester makes what is stored of keys.
type Digester struct{ mac *seal.MAC }

// NewDigester digests under keys that are derived from the keyring's.
func NewDigester(keyring *seal.Keyring) *Digester { return &Digester{keyring.MAC("api key")} }

// Digest is what is stored of a new key: an HMAC of the whole of it.
func (d *Digester) Digest(key seal.Secret) []byte { return d.mac.Sum([]byte(key.Reveal())) }

// Lookup is what can be stored of a key that was presented, the likeliest first: one for each key of the keyring's, so
// that API keys outlive a change of it.
func (d *Digester) Lookup(key seal.Secret) [][]byte { return d.mac.Sums([]byte(key.Reveal())) }
