package connection

import (
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/cache/expiring"
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

// serverKey names a server in memory.
type serverKey struct{ organization, id string }

func serverKeyOf(s storage.Server) serverKey { return serverKey{s.OrganizationID, s.ID} }

// sightings remembers the servers whose discovery has just agreed with the stored client. The zero value is ready.
type sightings struct {
	seen expiring.Map[serverKey, sight]
}

func (l *sightings) recent(server serverKey, s sight, now time.Time) bool {
	last, ok := l.seen.Get(server, now)
	return ok && last == s
}

func (l *sightings) note(server serverKey, s sight, now time.Time) {
	l.seen.Set(server, s, now.Add(sightingLifetime), now)
}

func (l *sightings) forget(server serverKey) { l.seen.Delete(server) }
