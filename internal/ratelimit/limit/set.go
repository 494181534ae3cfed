package limit

import (
	"encoding/hex"
	"maps"
	"sync"

	"github.com/durward-gateway/durward/internal/ratelimit/window"
	"github.com/durward-gateway/durward/storage"
)

// Measure is the unit of a counter.
type Measure string

// Measures of a limit. Their texts are the names of quotas in RateLimit header fields.
const (
	Requests Measure = "requests"
	Tokens   Measure = "tokens"
)

// Set holds the enabled rate limits of one organization, ready for matching. It is safe for concurrent use.
type Set struct {
	limits []compiled
	index  *Index

	mu    sync.Mutex
	names map[window.Digest]string // of members that are not uuids, for the status
}

type compiled struct {
	storage.RateLimit
	apart    bool
	requests window.Digest // the groups of its counters
	tokens   window.Digest
}

// maxNames bounds the names that a set remembers. Only upstream models, aliases and providers from the configuration
// have subjects that are not uuids, and an organization has few of these.
const maxNames = 10_000

// Compile makes the set of an organization's limits. It leaves out limits that are not enabled or belong to another
// organization.
//
// Counters belong to a limit and its scope. They go on when the limit's numbers, name or kind of traffic change, and
// start anew when the limit's scope changes.
func Compile(organization string, limits []storage.RateLimit) *Set {
	s := &Set{names: make(map[window.Digest]string)}
	var scoped []Scoped
	for _, l := range limits {
		if !l.Enabled || l.OrganizationID != organization {
			continue
		}
		group := func(m Measure) window.Digest {
			return window.NewDigest("rate limit", organization, l.ID, string(l.Scope.Type), l.Scope.ID, l.Scope.Value, string(m))
		}
		s.limits = append(s.limits, compiled{RateLimit: l, apart: Apart(l.Scope), requests: group(Requests), tokens: group(Tokens)})
		scoped = append(scoped, Scoped{Scope: l.Scope, Traffic: l.Traffic})
	}
	s.index = NewIndex(scoped)
	return s
}

// Remember copies the subject names that another set of the organization has seen, for the status.
func (s *Set) Remember(other *Set) {
	other.mu.Lock()
	names := maps.Clone(other.names)
	other.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for d, n := range names {
		if len(s.names) < maxNames {
			s.names[d] = n
		}
	}
}

// Len returns the number of limits.
func (s *Set) Len() int { return len(s.limits) }

// Matched holds the counters that a call counts in. It does not change after it is made. It may be kept and shared as
// long as its Set and the facts of the subject hold.
type Matched struct {
	limits   []compiled // of the set
	counters []counted  // those of requests first
	requests int        // number of counters of requests
	smallest int64      // the smallest limit of tokens, when there is one
}

// counted is one counter of a matched limit. It holds no pointer, so that the garbage collector does not have to scan
// the counters of all stored matches.
type counted struct {
	key    window.Key
	most   int64
	limit  uint32 // number of the limit in the matched set
	tokens bool   // false: requests
}

// fewCounters is the number of counters that are stored within their match, as one object. Nearly all matches have no
// more.
const fewCounters = 8

// withRoom makes an empty match of the set, with room for that many counters.
func (s *Set) withRoom(counters int) *Matched {
	if counters > fewCounters {
		return &Matched{limits: s.limits, counters: make([]counted, 0, counters)}
	}
	m := new(struct {
		Matched
		room [fewCounters]counted
	})
	m.limits, m.counters = s.limits, m.room[:0]
	return &m.Matched
}

// Match returns the counters of a call. It holds every limit that applies, with each of its measures once.
func (s *Set) Match(subject *Subject) *Matched {
	hits := s.index.Match(subject)
	var room [8]window.Digest
	members := room[:0]
	counters := 0
	for _, h := range hits {
		l := &s.limits[h.Index]
		members = append(members, s.member(h.Subject))
		if l.RequestsPerMinute != nil {
			counters++
		}
		if l.TokensPerMinute != nil {
			counters++
		}
	}
	m := s.withRoom(counters)
	for i, h := range hits {
		if l := &s.limits[h.Index]; l.RequestsPerMinute != nil {
			m.counters = append(m.counters, counted{key: window.NewKey(l.requests, members[i]), most: *l.RequestsPerMinute, limit: uint32(h.Index)})
		}
	}
	m.requests = len(m.counters)
	for i, h := range hits {
		l := &s.limits[h.Index]
		if l.TokensPerMinute != nil {
			if len(m.counters) == m.requests || *l.TokensPerMinute < m.smallest {
				m.smallest = *l.TokensPerMinute
			}
			m.counters = append(m.counters, counted{key: window.NewKey(l.tokens, members[i]), tokens: true, most: *l.TokensPerMinute, limit: uint32(h.Index)})
		}
	}
	return m
}

// Len returns the number of counters.
func (m *Matched) Len() int { return len(m.counters) }

// SmallestTokens returns the lowest tokens per minute of the matched limits. ok is false when no limit counts tokens.
func (m *Matched) SmallestTokens() (most int64, ok bool) {
	return m.smallest, len(m.counters) > m.requests
}

// has reports whether a counter is among the matched ones.
func (m *Matched) has(k window.Key) bool {
	for i := range m.counters {
		if m.counters[i].key == k {
			return true
		}
	}
	return false
}

// member returns the half of a key that stands for a subject: a uuid unchanged, a digest of anything else. The version
// and variant bits of a digest are set to ones that no uuid has, so that no digest equals a uuid.
func (s *Set) member(subject string) window.Digest {
	if subject == "" {
		return window.Digest{}
	}
	if d, ok := parseUUID(subject); ok {
		return d
	}
	d := window.NewDigest("subject", subject)
	d[8] |= 0xE0 // the variant that RFC 9562 section 4.1 reserves
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.names[d]; known || len(s.names) < maxNames {
		s.names[d] = subject
	}
	return d
}

// subject returns the text of a member. Where its name is no longer known, that is its digest in hexadecimal digits.
func (s *Set) subject(d window.Digest) string {
	if d[8]&0xE0 != 0xE0 {
		return formatUUID(d)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, known := s.names[d]; known {
		return n
	}
	return hex.EncodeToString(d[:])
}

// parseUUID reads the one canonical form (RFC 9562 section 4): lower case, hyphens in their places, and not of the
// reserved variant. Every other text is a name.
func parseUUID(s string) (d window.Digest, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return d, false
	}
	digits := s[0:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	if _, err := hex.Decode(d[:], []byte(digits)); err != nil || formatUUID(d) != s || d[8]&0xE0 == 0xE0 || d == (window.Digest{}) {
		return window.Digest{}, false
	}
	return d, true
}

func formatUUID(d window.Digest) string {
	h := hex.EncodeToString(d[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
