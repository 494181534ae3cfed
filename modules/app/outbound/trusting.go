package outbound

import (
	"crypto/x509"
	"fmt"
	"sync"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/proxy/forward"
)

// maxTrusting is the number of sets of certificate authorities for which a handler keeps connections.
const maxTrusting = 100

// Trusting holds a handler's forwarders for upstreams whose directory entries name certificate authorities. Each
// forwarder has connections of its own: an authority that one organization trusts must not vouch for the upstream of
// another. A Trusting is safe for concurrent use.
type Trusting struct {
	// Build makes the forwarder that trusts these authorities in addition to the usual ones, and the function that closes
	// its idle connections.
	Build func([]*x509.Certificate) (*forward.Forwarder, func(), error)

	mu  sync.Mutex
	all map[string]trustingForwarder // by the trusted authorities, as PEM
}

type trustingForwarder struct {
	forwarder *forward.Forwarder
	closeIdle func()
}

// Of returns the forwarder that trusts these authorities, which are PEM. Errors are those of reading them and of Build.
func (t *Trusting) Of(trusted string) (*forward.Forwarder, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.all[trusted]; ok {
		return known.forwarder, nil
	}
	certificates, err := directory.TrustedCAs(trusted)
	if err != nil {
		return nil, err
	}
	made := trustingForwarder{}
	if made.forwarder, made.closeIdle, err = t.Build(certificates); err != nil {
		return nil, fmt.Errorf("trusting a directory entry's authorities: %w", err)
	}
	if len(t.all) >= maxTrusting {
		t.drop()
	}
	if t.all == nil {
		t.all = make(map[string]trustingForwarder)
	}
	t.all[trusted] = made
	return made.forwarder, nil
}

// drop forgets all forwarders; connections in use close with their requests.
func (t *Trusting) drop() {
	for _, each := range t.all {
		each.closeIdle()
	}
	t.all = nil
}

// Close closes the idle connections of all forwarders. t may be nil.
func (t *Trusting) Close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop()
}
