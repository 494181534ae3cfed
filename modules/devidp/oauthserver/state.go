package oauthserver

import (
	"maps"
	"time"

	"github.com/durward-gateway/durward/internal/identity/authserver"
)

// Grant holds the rights of one login. Its id is in every token of it.
type Grant struct {
	ID        string    `json:"id"`
	ClientID  string    `json:"client_id"`
	Subject   string    `json:"subject,omitempty"`
	Scopes    []string  `json:"scopes,omitempty"`
	Targets   []string  `json:"targets,omitempty"` // resources (RFC 8707) and audiences asked for
	Nonce     string    `json:"nonce,omitempty"`
	LoginTime time.Time `json:"login_time"`
	Expires   time.Time `json:"expires"` // 30 days after the last use of a refresh token
	// Refresh is the SHA-256 of the one refresh token that is valid now. Another token of this grant is a replay.
	Refresh string `json:"refresh,omitempty"`
}

// access is an opaque access token, kept under its hash.
type access struct {
	Grant   string    `json:"grant"`
	Expires time.Time `json:"expires"`
}

// state holds the data that survives a restart. The values that the maps point to are never changed in place.
type state struct {
	Clients map[string]*authserver.Client `json:"clients"`
	Grants  map[string]*Grant             `json:"grants"`
	Access  map[string]access             `json:"access"`
}

func newState() *state {
	return &state{Clients: map[string]*authserver.Client{}, Grants: map[string]*Grant{}, Access: map[string]access{}}
}

// Clone implements statefile.Value.
func (s *state) Clone() *state {
	c := newState() // maps.Clone of a nil map is nil, and a file can hold null
	maps.Copy(c.Clients, s.Clients)
	maps.Copy(c.Grants, s.Grants)
	maps.Copy(c.Access, s.Access)
	return c
}

// drop ends a grant with its access tokens.
func (s *state) drop(grantID string) {
	delete(s.Grants, grantID)
	maps.DeleteFunc(s.Access, func(_ string, a access) bool { return a.Grant == grantID })
}

// prune deletes expired entries and makes room for one more grant and one more access token. It returns the grants that
// had to be deleted before their time.
func (s *state) prune(now time.Time) (dropped []string) {
	maps.DeleteFunc(s.Access, func(_ string, a access) bool { return !now.Before(a.Expires) })
	maps.DeleteFunc(s.Grants, func(_ string, g *Grant) bool { return !now.Before(g.Expires) })
	for len(s.Access) >= maxAccessTokens {
		delete(s.Access, first(s.Access, func(a access) time.Time { return a.Expires }))
	}
	for len(s.Grants) >= maxGrants {
		id := first(s.Grants, func(g *Grant) time.Time { return g.Expires })
		s.drop(id)
		dropped = append(dropped, id)
	}
	return dropped
}

// first returns the key whose value's time is the earliest.
func first[V any](m map[string]V, at func(V) time.Time) (key string) {
	var earliest time.Time
	for k, v := range m {
		if t := at(v); key == "" || t.Before(earliest) {
			key, earliest = k, t
		}
	}
	return key
}
