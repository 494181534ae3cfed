package limit

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/durward-gateway/durward/internal/ratelimit/window"
	"github.com/durward-gateway/durward/storage"
)

// Refusal names the limit that refused a call. When several limits refused, it names the one that takes longest to have
// room, so that a caller who waits for it is not refused by another. Its numbers are those of one limit of the caller's
// organization (attack T08).
type Refusal struct {
	Limit      storage.RateLimit
	Measure    Measure
	Most       int64         // per minute
	Used       int64         // in the present window
	RetryAfter time.Duration // until the call fits; for a call that never fits, until the counter is empty of other use
	Degraded   bool          // this node refused without asking others
}

// refusal makes the refusal for a step that asked counters of m.
func refusal(m *Matched, asked []counted, states []window.State, v Verdict) *Refusal {
	worst := 0
	for i := range states {
		if states[i].Wait > states[worst].Wait {
			worst = i
		}
	}
	c := asked[worst]
	r := &Refusal{
		Limit: m.limits[c.limit].RateLimit, Measure: Requests, Most: c.most,
		Used: states[worst].Used, RetryAfter: states[worst].Wait, Degraded: v.Degraded,
	}
	if c.tokens {
		r.Measure = Tokens
	}
	return r
}

// Seconds returns RetryAfter in whole seconds, rounded up, at least 1.
func (r *Refusal) Seconds() int64 {
	return max(int64((r.RetryAfter+time.Second-1)/time.Second), 1)
}

// SetHeader sets Retry-After (RFC 9110 section 10.2.3), and RateLimit-Policy and RateLimit
// (draft-ietf-httpapi-ratelimit-headers-10 sections 2 and 3). It does not reveal the limit's name or the caller's key.
func (r *Refusal) SetHeader(h http.Header) {
	// Numbers of structured fields have fifteen digits at most (RFC 9651 section 3.3.1).
	const largest = 999_999_999_999_999
	most := min(max(r.Most, 0), largest)
	seconds := strconv.FormatInt(r.Seconds(), 10)
	h.Set("Retry-After", seconds)
	h.Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=%d", r.Measure, most, int(window.Width/time.Second)))
	h.Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%s", r.Measure, min(max(r.Most-r.Used, 0), most), seconds))
}
