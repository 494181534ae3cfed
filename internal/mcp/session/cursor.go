package session

import (
	"errors"
	"fmt"

	"github.com/durward-gateway/durward/storage"
)

// MaxCursor is the maximum length of an upstream's cursor that is sealed, in bytes. Servers' cursors have some
// dozens.
const MaxCursor = 4 << 10

// maxSealedCursor is the maximum length of a text that is worth opening as a cursor.
const maxSealedCursor = 6 << 10

var (
	// ErrUnknownCursor says that the cursor was not made here, was altered, or is not this caller's for this list of
	// this server.
	ErrUnknownCursor = errors.New("cursor is not known")
	// ErrUpstreamCursor says that the upstream gave a cursor that is longer than MaxCursor. For the caller it is an
	// upstream error.
	ErrUpstreamCursor = errors.New("upstream's cursor is too long")
)

// SealCursor seals an upstream's cursor for the next page of the list of method, for b's client. Many servers make it
// from the name of the page's last entry, which b may not be allowed to see (attack M11).
func (c *Codec) SealCursor(cursor, method string, b Binding) (string, error) {
	if len(cursor) > MaxCursor {
		return "", ErrUpstreamCursor
	}
	return c.sealer.Seal(append([]byte{layout}, cursor...), b.bound("mcp cursor "+method)), nil
}

// OpenCursor opens a result of SealCursor, for the caller, server and method for which it was made. It fails with
// [ErrUnknownCursor], and with storage.ErrUnavailable when this cannot be decided at the moment.
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
