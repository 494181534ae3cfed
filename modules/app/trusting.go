package app

import (
	"crypto/x509"
	"fmt"
	"sync"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/proxy/forward"
)

// maxTrusting is the number of sets of certificate authorities for which a handler keeps connections.
const maxTrusting = 100

// trustingForwarders are a handler's forwarders for upstreams whose directory entries name certificate authorities.
// Each has connections of its own: an authority that one organization trusts must not vouch for the upstream of
// another.
type trustingForwarders struct {
	build func([]*x509.Certificate) (*forward.Forwarder, func(), error)

	mu  sync.Mutex
	all map[string]trustingForwarder // by the trusted authorities, as PEM
}

type trustingForwarder struct {
	forwarder *forward.Forwarder
	closeIdle func()
}

func (t *trustingForwarders) of(trusted string) (*forward.Forwarder, error) {
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
	if made.forwarder, made.closeIdle, err = t.build(certificates); err != nil {
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
func (t *trustingForwarders) drop() {
	for _, each := range t.all {
		each.closeIdle()
	}
	t.all = nil
}

func (t *trustingForwarders) close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop()
}
