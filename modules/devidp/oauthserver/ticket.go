package oauthserver

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/identity/authserver"
)

// tickets protects the login form against forgery: a ticket carries the shown request, signed with a key that lives as
// long as the process, and is valid once.
type tickets struct {
	key []byte
	now func() time.Time

	mu   sync.Mutex
	used map[string]time.Time // id -> end of the ticket
	// forgotten is the latest end of a spent ticket that had to be forgotten before: older ones cannot be told from it.
	forgotten time.Time
}

type ticket struct {
	ID      string                   `json:"id"`
	Expires int64                    `json:"exp"` // Unix nanoseconds
	Request authserver.Authorization `json:"request"`
}

func newTickets(now func() time.Time) *tickets {
	t := &tickets{key: make([]byte, 32), now: now, used: make(map[string]time.Time)}
	_, _ = rand.Read(t.key) // never fails
	return t
}

// issue returns a ticket for a request.
func (t *tickets) issue(r authserver.Authorization) (string, error) {
	b, err := json.Marshal(ticket{ID: authserver.Random(), Expires: t.now().Add(ticketLifetime).UnixNano(), Request: r})
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(b) + "." + base64.RawURLEncoding.EncodeToString(t.sign(b)), nil
}

// open checks a ticket without spending it.
func (t *tickets) open(s string) (ticket, bool) {
	payload, signature, found := strings.Cut(s, ".")
	b, errPayload := base64.RawURLEncoding.Strict().DecodeString(payload)
	mac, errMAC := base64.RawURLEncoding.Strict().DecodeString(signature)
	var k ticket
	if !found || errPayload != nil || errMAC != nil || !hmac.Equal(mac, t.sign(b)) || json.Unmarshal(b, &k) != nil {
		return ticket{}, false
	}
	return k, t.now().UnixNano() < k.Expires
}

// spend reports whether a ticket was still valid, and makes it invalid. When there are too many spent tickets to remember,
// the one that ends first is forgotten, and every ticket that ends no later is invalid: their pages were opened before.
func (t *tickets) spend(k ticket) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, ends := t.now(), time.Unix(0, k.Expires)
	if _, used := t.used[k.ID]; used || !ends.After(t.forgotten) {
		return false
	}
	if len(t.used) >= maxTickets {
		maps.DeleteFunc(t.used, func(_ string, expires time.Time) bool { return !now.Before(expires) })
	}
	if len(t.used) >= maxTickets {
		id := first(t.used, func(expires time.Time) time.Time { return expires })
		t.forgotten = t.used[id]
		delete(t.used, id)
	}
	t.used[k.ID] = ends
	return true
}

func (t *tickets) sign(b []byte) []byte {
	m := hmac.New(sha256.New, t.key)
	m.Write(b)
	return m.Sum(nil)
}
