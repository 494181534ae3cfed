package session

import (
	"crypto/sha256"
	"time"

	"github.com/durward-gateway/durward/internal/cache/expiring"
)

// maxSpent is the number of used logins that are remembered. With more than that within ten minutes the oldest is
// forgotten first; the identity provider does not accept its code a second time either.
const maxSpent = 10_000

// spentLogins holds the used logins of all configurations of the process: an attempt is kept in the browser, so no
// other place could tell that it comes back.
var spentLogins = newSpent()

type spent struct {
	states expiring.Map[[sha256.Size]byte, struct{}]
}

func newSpent() *spent {
	return &spent{expiring.Map[[sha256.Size]byte, struct{}]{Most: maxSpent}}
}

// take marks a state as used, and reports whether it was not before. It is remembered until it expires.
func (s *spent) take(state string, expires, now time.Time) bool {
	return s.states.Add(sha256.Sum256([]byte(state)), struct{}{}, expires, now)
}
