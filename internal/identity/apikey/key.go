// Package apikey defines the raw form of API keys: how they are made, recognized and digested, and what their scopes
// allow. It knows no store and no request.
package apikey

import (
	"crypto/rand"
	"errors"
	"hash/crc32"
	"math/big"
	"strings"

	"github.com/durward-gateway/durward/internal/seal"
)

// Parts of a raw key: `dw-`, 43 base62 characters of 256 random bits, 6 of checksum. Scanners for
// leaked secrets recognize it by its beginning, and the checksum excludes chance matches.
const (
	Begin        = "dw-"
	randomBits   = 256
	randomChars  = 43
	checksumSize = 6
	// Size is the length of a raw key in bytes.
	Size = len(Begin) + randomChars + checksumSize
	// PrefixSize is the length of the part that people may see.
	PrefixSize = 8
)

// ErrMalformed says that a text does not have the form of a key.
var ErrMalformed = errors.New("not an API key")

// New makes a key.
func New() seal.Secret {
	random := make([]byte, randomBits/8)
	_, _ = rand.Read(random) // never fails: it crashes the process instead
	body := Begin + base62(new(big.Int).SetBytes(random), randomChars)
	return seal.NewSecret(body + checksum(body))
}

// Check checks that a text has the form of a key, checksum included. It does not check whether there is such a key. It
// needs no secret, so its timing reveals nothing.
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

// Prefix returns the part of a key that people may see.
func Prefix(key seal.Secret) string { return key.Reveal()[:PrefixSize] }

// checksum returns the CRC-32 (IEEE 802.3), which detects typing errors and cut keys.
func checksum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	var text [checksumSize]byte
	for i := len(text) - 1; i >= 0; i-- {
		text[i] = digits[sum%62]
		sum /= 62
	}
	return string(text[:])
}

// digits lists the digits of base62, in the order of [big.Int.Text].
const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// base62 writes n with digits, lower case and upper case letters, padded with zeros to width, which must be wide
// enough.
func base62(n *big.Int, width int) string {
	text := n.Text(62)
	return strings.Repeat("0", width-len(text)) + text
}

// Digester makes the digests that are stored for keys.
type Digester struct{ digests *seal.Digester }

// NewDigester makes a Digester with keys that are derived from the keyring's.
func NewDigester(keyring *seal.Keyring) *Digester { return &Digester{keyring.Digester("api key")} }

// Digest returns the stored digest for a new key: an HMAC of the whole key.
func (d *Digester) Digest(key seal.Secret) []byte { return d.digests.Sum([]byte(key.Reveal())) }

// Lookup returns the possible stored digests of a presented key, the likeliest first. There is one for each key of the
// keyring, so that API keys outlive a change of it.
func (d *Digester) Lookup(key seal.Secret) [][]byte { return d.digests.Sums([]byte(key.Reveal())) }
