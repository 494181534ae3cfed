package session

import (
	"crypto/sha256"
	"sync"
	"time"
)

// maxSpent is the number of used logins that are remembered. With more than that within ten minutes the oldest is
// forgotten first; the identity provider does not accept its code a second time either.
const maxSpent = 10_000

// spentLogins holds the used logins of all configurations of the process: an attempt is kept in the browser, so no
// other place could tell that it comes back.
var spentLogins spent

type spent struct {
	mu    sync.Mutex
	until map[[sha256.Size]byte]time.Time
	order [][sha256.Size]byte // oldest first
}

// take marks a state as used, and reports whether it was not before. It is remembered until it expires.
func (s *spent) take(state string, expires, now time.Time) bool {
	key := sha256.Sum256([]byte(state))
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, used := s.until[key]; used {
		return false
	}
	if s.until == nil {
		s.until = make(map[[sha256.Size]byte]time.Time)
	}
	for len(s.order) > 0 && (len(s.order) >= maxSpent || !now.Before(s.until[s.order[0]])) {
		delete(s.until, s.order[0])
		s.order = s.order[1:]
	}
	s.until[key] = expires
	s.order = append(s.order, key)
	return true
}
