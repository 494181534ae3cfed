package oauthserver

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
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
}

type ticket struct {
	ID      string                   `json:"id"`
	Expires int64                    `json:"exp"` // Unix seconds
	Request authserver.Authorization `json:"request"`
}

func newTickets(now func() time.Time) *tickets {
	t := &tickets{key: make([]byte, 32), now: now, used: make(map[string]time.Time)}
	_, _ = rand.Read(t.key) // never fails
	return t
}

// issue returns a ticket for a request.
func (t *tickets) issue(r authserver.Authorization) (string, error) {
	b, err := json.Marshal(ticket{ID: authserver.Random(), Expires: t.now().Add(ticketLifetime).Unix(), Request: r})
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
	return k, t.now().Unix() < k.Expires
}

// spend reports whether a ticket was still valid, and makes it invalid. When there are too many spent tickets to
// remember, no ticket is valid.
func (t *tickets) spend(k ticket) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if len(t.used) >= maxTickets {
		for id, expires := range t.used {
			if !now.Before(expires) {
				delete(t.used, id)
			}
		}
	}
	if _, used := t.used[k.ID]; used || len(t.used) >= maxTickets {
		return false
	}
	t.used[k.ID] = time.Unix(k.Expires, 0)
	return true
}

func (t *tickets) sign(b []byte) []byte {
	m := hmac.New(sha256.New, t.key)
	m.Write(b)
	return m.Sum(nil)
}
