package session

import (
	"errors"
	"fmt"

	"github.com/durward-gateway/durward/storage"
)

// MaxEndpoint is the maximum length of an endpoint that is sealed, in bytes.
const MaxEndpoint = 2 << 10

// maxSealedEndpoint is the maximum length of a text that is worth opening as an endpoint.
const maxSealedEndpoint = 4 << 10

// SealEndpoint seals the address that an upstream of revision 2024-11-05 announced for the messages of a session, for b's
// client. It fails with [ErrUpstreamID] when the address is not 1 to MaxEndpoint bytes of visible ASCII.
func (c *Codec) SealEndpoint(endpoint string, b Binding) (string, error) {
	if !visible(endpoint) || len(endpoint) > MaxEndpoint {
		return "", ErrUpstreamID
	}
	return c.sealer.Seal(append([]byte{layout}, endpoint...), b.bound("mcp endpoint")), nil
}

// OpenEndpoint opens a result of SealEndpoint, for b's caller and server. It fails with [ErrUnknownSession], and with
// storage.ErrUnavailable when this cannot be decided at the moment.
func (c *Codec) OpenEndpoint(id string, b Binding) (string, error) {
	if !visible(id) || len(id) > maxSealedEndpoint {
		return "", ErrUnknownSession
	}
	p, err := c.sealer.Open(id, b.bound("mcp endpoint"))
	if errors.Is(err, storage.ErrUnavailable) {
		return "", fmt.Errorf("opening an endpoint: %w", err)
	}
	if err != nil || len(p) < 2 || p[0] != layout || len(p) > 1+MaxEndpoint || !visible(string(p[1:])) {
		return "", ErrUnknownSession
	}
	return string(p[1:]), nil
}
