package connection

import (
	"sync"
	"time"
)

// proofLifetime is the time for which a provider that accepted our client is believed to know it.
const proofLifetime = time.Hour

// proofs remembers the servers whose providers have just accepted our client. The zero value is ready.
type proofs struct {
	mu   sync.Mutex
	seen map[string]proof // by server id
}

type proof struct {
	clientID string
	at       time.Time
}

func (p *proofs) recent(server, clientID string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.seen[server] // zero: too long ago
	return last.clientID == clientID && now.Sub(last.at) < proofLifetime
}

func (p *proofs) note(server, clientID string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[string]proof{}
	}
	if len(p.seen) >= tooMany {
		for id, last := range p.seen {
			if now.Sub(last.at) >= proofLifetime {
				delete(p.seen, id)
			}
		}
	}
	p.seen[server] = proof{clientID, now}
}

func (p *proofs) forget(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.seen, server)
}
