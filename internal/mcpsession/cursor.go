package mcpsession

import (
	"errors"
	"fmt"

	"github.com/durward-gateway/durward/storage"
)

// MaxCursor is the longest cursor of an upstream that is sealed, in bytes. Those of servers are some dozens.
const MaxCursor = 4 << 10

// maxSealedCursor is the longest text worth opening as a cursor.
const maxSealedCursor = 6 << 10

var (
	// ErrUnknownCursor: the cursor was not made here, was altered, or is not this caller's for this list of this server.
	ErrUnknownCursor = errors.New("cursor is not known")
	// ErrUpstreamCursor: the upstream gave a cursor that is longer than MaxCursor. An upstream error at the caller.
	ErrUpstreamCursor = errors.New("upstream's cursor is too long")
)

// SealCursor seals the cursor that an upstream gave for the next page of what method lists, for b's client. Many servers
// make it of the name of the page's last entry, which b may not be allowed to see (attack M11).
func (c *Codec) SealCursor(cursor, method string, b Binding) (string, error) {
	if len(cursor) > MaxCursor {
		return "", ErrUpstreamCursor
	}
	return c.sealer.Seal(append([]byte{layout}, cursor...), b.bound("mcp cursor "+method)), nil
}

// OpenCursor reads what SealCursor made, for the caller, server and method that it was made for. It fails with
// [ErrUnknownCursor], and with storage.ErrUnavailable when that cannot be told at the moment.
func (c *Codec) OpenCursor(sealed, method string, b Binding) (string, error) {
	if !visible(sealed) || len(sealed) > maxSealedCursor {
		return "", ErrUnknownCursor
	}
	p, err := c.sealer.Open(sealed, b.bound("mcp cursor "+method))
	if errors.Is(err, storage.ErrUnavailable) {
		return "", fmt.Errorf("opening a cursor: %w", err)
	}
	if err != nil || len(p) < 1 || p[0] != layout || len(p) > 1+MaxCursor {
		return "", ErrUnknownCursor
	}
	return string(p[1:]), nil
}
