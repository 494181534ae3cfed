package audit

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// Bounds of the refusals that are recorded: whoever is refused must not fill the disk, nor keep what others are refused out of the log.
const (
	refusedTokensPerSecond = 10 // of nobody in particular
	refusedTokensBurst     = 100
	refusalsPerSecond      = 2 // of one user in an organization
	refusalBurst           = 50
	allRefusalsPerSecond   = 100 // of all users
	allRefusalsBurst       = 2000
	// maxRefused is how many users have a bound of their own at a time; the others share one.
	maxRefused = 4096
)

// refusals bounds which refusals are recorded, and counts those that are not.
type refusals struct {
	now     func() time.Time
	dropped atomic.Int64

	mu     sync.Mutex
	tokens bucket
	all    bucket
	users  map[refusedUser]*bucket
	untold map[string]int64 // not recorded, by organization, since it was last said
}

type refusedUser struct{ organization, user string }

func newRefusals(now func() time.Time) *refusals {
	return &refusals{
		now: now, tokens: bucket{rate: refusedTokensPerSecond, size: refusedTokensBurst}, all: bucket{rate: allRefusalsPerSecond, size: allRefusalsBurst},
		users: make(map[refusedUser]*bucket), untold: make(map[string]int64),
	}
}

// allow reports whether one more refusal is recorded; organization "" is that of nobody in particular.
func (r *refusals) allow(organization, user string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	ok := false
	if organization == "" {
		ok = r.tokens.take(now)
	} else {
		ok = r.user(refusedUser{organization, user}, now).take(now) && r.all.take(now)
	}
	if !ok {
		r.dropped.Add(1)
		r.untold[organization]++
	}
	return ok
}

// user is the bound of a user.
func (r *refusals) user(who refusedUser, now time.Time) *bucket {
	if b := r.users[who]; b != nil {
		return b
	}
	if len(r.users) >= maxRefused {
		for who, b := range r.users {
			if b.idle(now) {
				delete(r.users, who)
			}
		}
	}
	if len(r.users) >= maxRefused {
		who = refusedUser{}
		if b := r.users[who]; b != nil {
			return b
		}
	}
	b := &bucket{rate: refusalsPerSecond, size: refusalBurst}
	r.users[who] = b
	return b
}

// tell returns how many refusals were not recorded since it was called last, by organization.
func (r *refusals) tell() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.untold) == 0 {
		return nil
	}
	untold := r.untold
	r.untold = make(map[string]int64)
	return untold
}

// bucket is a token bucket.
type bucket struct {
	rate, size float64
	spent      float64
	at         time.Time
}

func (b *bucket) take(now time.Time) bool {
	b.fill(now)
	if b.spent+1 > b.size {
		return false
	}
	b.spent++
	return true
}

func (b *bucket) fill(now time.Time) {
	b.spent = max(0, b.spent-now.Sub(b.at).Seconds()*b.rate)
	b.at = now
}

// idle reports whether the bucket is as a new one.
func (b *bucket) idle(now time.Time) bool {
	b.fill(now)
	return b.spent == 0
}

// AllowRefusal reports whether one more refusal is recorded: of a user's write or credential, or, with organization "", of a token
// that is nobody's. How many were not is recorded by organization.
func (t *Trail) AllowRefusal(organization, user string) bool {
	return t.refusals.allow(organization, user)
}

// recordUnrecorded records how many refusals were not recorded.
func (t *Trail) recordUnrecorded() {
	for organization, n := range t.refusals.tell() {
		now := t.refusals.now().UTC()
		t.Later(organization, &storage.AuditEntry{
			ID: NewID(now), At: now, Kind: storage.AuditLogin, Event: "refusals.unrecorded", Outcome: "refused", Detail: map[string]any{"refusals": n},
		})
	}
}
