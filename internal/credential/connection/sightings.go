package connection

import (
	"strings"
	"sync"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// sightingLifetime is the time for which a discovery is valid. A client that connects again and again must not make us
// ask the third party each time.
const sightingLifetime = time.Minute

// sight holds the inputs of a discovery. When any of them changes, the discovery is repeated.
type sight struct {
	url, scopes, method, clientID string
	known                         storage.OAuthEndpoints
}

func sightOf(s storage.Server, c storage.OAuthClient) sight {
	return sight{url: s.Entry.URL, scopes: strings.Join(s.Entry.Scopes, " "), method: s.Entry.Options.AuthMethod, clientID: c.ClientID, known: s.Entry.OAuth}
}

// sightings remembers the servers whose discovery has just agreed with the stored client. The zero value is ready.
type sightings struct {
	mu   sync.Mutex
	seen map[string]sighting // by server id
}

type sighting struct {
	sight
	at time.Time
}

func (l *sightings) recent(server string, s sight, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.seen[server] // zero: too long ago
	return last.sight == s && now.Sub(last.at) < sightingLifetime
}

func (l *sightings) note(server string, s sight, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[string]sighting{}
	}
	if len(l.seen) >= tooMany {
		for id, last := range l.seen {
			if now.Sub(last.at) >= sightingLifetime {
				delete(l.seen, id)
			}
		}
	}
	l.seen[server] = sighting{sight: s, at: now}
}

func (l *sightings) forget(server string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.seen, server)
}
