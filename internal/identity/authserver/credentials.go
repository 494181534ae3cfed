package authserver

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// MACs makes and checks tags under a key of the gateway's that stays good for ever.
type MACs interface {
	AppendMAC(to, message []byte) []byte
	CheckMAC(message, tag []byte) bool
}

// Credentials makes the codes and refresh tokens that a gateway hands out, and reads them. They name a login and carry a
// tag, so that nobody can make one, and nothing secret has to be stored. Whether one is still good is the store's to say:
// a login counts the generations of its refresh tokens. It is safe for concurrent use.
type Credentials struct{ macs MACs }

// NewCredentials makes Credentials. macs must be for this purpose alone.
func NewCredentials(macs MACs) *Credentials { return &Credentials{macs} }

// These are the prefixes of codes and refresh tokens, which scanners for leaked secrets can look for.
const (
	codePrefix    = "dwc_"
	refreshPrefix = "dwr_"
)

// Handle names a login in a credential.
type Handle struct {
	Organization, Login string
	// Generation is the number of a refresh token; 0 for a code.
	Generation int
}

// Code returns the authorization code of a login.
func (c *Credentials) Code(h Handle) string { return c.write(codePrefix, h) }

// Refresh returns the refresh token of a login of that generation.
func (c *Credentials) Refresh(h Handle) string { return c.write(refreshPrefix, h) }

// OpenCode reads a code of the gateway's.
func (c *Credentials) OpenCode(code string) (Handle, bool) { return c.open(codePrefix, code) }

// OpenRefresh reads a refresh token of the gateway's.
func (c *Credentials) OpenRefresh(token string) (Handle, bool) { return c.open(refreshPrefix, token) }

// credentialText is strict: a credential has exactly one spelling.
var credentialText = base64.RawURLEncoding.Strict()

func (c *Credentials) write(prefix string, h Handle) string {
	body := h.append(nil)
	return prefix + credentialText.EncodeToString(c.macs.AppendMAC(body, append([]byte(prefix), body...)))
}

func (c *Credentials) open(prefix, text string) (Handle, bool) {
	encoded, ok := strings.CutPrefix(text, prefix)
	if !ok || len(text) > maxText || strings.ContainsAny(encoded, "\r\n") { // which the decoder skips
		return Handle{}, false
	}
	raw, err := credentialText.DecodeString(encoded)
	if err != nil {
		return Handle{}, false
	}
	h, size, ok := readHandle(raw)
	if !ok || !c.macs.CheckMAC(append([]byte(prefix), raw[:size]...), raw[size:]) {
		return Handle{}, false
	}
	return h, true
}

// append writes the handle: two texts with their lengths, and the generation.
func (h Handle) append(to []byte) []byte {
	for _, text := range [...]string{h.Organization, h.Login} {
		to = append(binary.AppendUvarint(to, uint64(len(text))), text...)
	}
	return binary.AppendUvarint(to, uint64(h.Generation))
}

// readHandle reads what append wrote, and its size.
func readHandle(raw []byte) (h Handle, size int, ok bool) {
	rest := raw
	for _, to := range [...]*string{&h.Organization, &h.Login} {
		length, n := binary.Uvarint(rest)
		if n <= 0 || length > uint64(len(rest)-n) {
			return Handle{}, 0, false
		}
		*to, rest = string(rest[n:n+int(length)]), rest[n+int(length):]
	}
	generation, n := binary.Uvarint(rest)
	if n <= 0 || generation > 1<<31 {
		return Handle{}, 0, false
	}
	h.Generation = int(generation)
	return h, len(raw) - len(rest) + n, true
}
