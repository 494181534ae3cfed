package evaluator

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/mcp/sighting"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

// known holds a server with everything that is derived from it. Requests share it: it is never changed.
type known struct {
	server storage.Server
	rules  *engine.Set
	// unusable is the reason why the rules cannot be used. Nothing is allowed then.
	unusable error
	// url is the address in the server's entry; badURL is the reason why it is none.
	url    *url.URL
	badURL error
	sight  sighting.Sight
}

// Known is a server as it was when it was looked up, with the rules for calls to it. The zero value knows no server, and
// has no rules.
type Known struct {
	*known

	at cache.Epoch // the organization's epoch, read before the server
}

var errNoServer = errors.New("no server was looked up")

// Rules returns the rules for calls to the server. On an error nothing is allowed.
func (k Known) Rules() (*engine.Set, error) {
	switch {
	case k.known == nil:
		return nil, errNoServer
	case k.unusable != nil:
		return nil, fmt.Errorf("compiling the policies of a server: %w", k.unusable)
	}
	return k.rules, nil
}

// Server returns the server; nil for none. Others share it: it must not be changed.
func (k Known) Server() *storage.Server {
	if k.known == nil {
		return nil
	}
	return &k.server
}

// URL returns the server's own address. Others share it: it must not be changed.
func (k Known) URL() (*url.URL, error) {
	if k.known == nil {
		return nil, errNoServer
	}
	return k.url, k.badURL
}

// Sight returns this node's notes about the server; nil for none.
func (k Known) Sight() *sighting.Sight {
	if k.known == nil {
		return nil
	}
	return &k.sight
}

// At returns the epoch of the server's organization, which was read before the server.
func (k Known) At() cache.Epoch { return k.at }
