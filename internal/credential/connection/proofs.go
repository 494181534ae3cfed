package connection

import (
	"time"

	"github.com/durward-gateway/durward/internal/cache/expiring"
)

// proofLifetime is the time for which a provider that accepted our client is believed to know it.
const proofLifetime = time.Hour

// proofs remembers the servers whose providers have just accepted our client. The zero value is ready.
type proofs struct {
	clients expiring.Map[serverKey, string] // client ids
}

func (p *proofs) recent(server serverKey, clientID string, now time.Time) bool {
	accepted, ok := p.clients.Get(server, now)
	return ok && accepted == clientID
}

func (p *proofs) note(server serverKey, clientID string, now time.Time) {
	p.clients.Set(server, clientID, now.Add(proofLifetime), now)
}

func (p *proofs) forget(server serverKey) { p.clients.Delete(server) }
