package audit

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// These bounds limit the refusals that are recorded. A refused caller must not fill the disk, nor keep the refusals of
// other callers out of the log.
const (
	refusedTokensPerSecond = 10 // of tokens that belong to no known user
	refusedTokensBurst     = 100
	refusalsPerSecond      = 2 // for one user in an organization
	refusalBurst           = 50
	allRefusalsPerSecond   = 100 // for all users together
	allRefusalsBurst       = 2000
	// maxRefused is the number of users that have a bound of their own at a time. All other users share one bound.
	maxRefused = 4096
)

// refusals decides which refusals are recorded, and counts those that are not.
type refusals struct {
	now     func() time.Time
	dropped atomic.Int64

	mu     sync.Mutex
	tokens bucket
	all    bucket
	users  map[refusedUser]*bucket
	swept  time.Time        // the time of the last look for idle users
	untold map[string]int64 // unrecorded refusals by organization since the last call of tell
}

type refusedUser struct{ organization, user string }

func newRefusals(now func() time.Time) *refusals {
	return &refusals{
		now: now, tokens: bucket{rate: refusedTokensPerSecond, size: refusedTokensBurst}, all: bucket{rate: allRefusalsPerSecond, size: allRefusalsBurst},
		users: make(map[refusedUser]*bucket), untold: make(map[string]int64),
	}
}

// allow reports whether one more refusal is recorded. Organization "" stands for tokens that belong to no known user.
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

// user returns the bound of a user.
func (r *refusals) user(who refusedUser, now time.Time) *bucket {
	if b := r.users[who]; b != nil {
		return b
	}
	// Not at each refusal: when many users are refused, all of them would be looked at each time.
	if len(r.users) >= maxRefused && now.Sub(r.swept) >= time.Second {
		r.swept = now
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

// tell returns the number of unrecorded refusals since its last call, by organization.
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

// idle reports whether the bucket is in the state of a new one.
func (b *bucket) idle(now time.Time) bool {
	b.fill(now)
	return b.spent == 0
}

// AllowRefusal reports whether one more refusal is recorded. The refusal is that of a user's write or credential, or,
// with organization "", that of a token which belongs to no known user.
func (t *Trail) AllowRefusal(organization, user string) bool {
	return t.refusals.allow(organization, user)
}

// recordUnrecorded records the number of refusals that were not recorded.
func (t *Trail) recordUnrecorded() {
	for organization, n := range t.refusals.tell() {
		now := t.refusals.now().UTC()
		t.Later(organization, &storage.AuditEntry{
			ID: format.NewID(now), At: now, Kind: storage.AuditLogin, Event: "refusals.unrecorded", Outcome: "refused", Detail: map[string]any{"refusals": n},
		})
	}
}
