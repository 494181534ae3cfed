package refused

import (
	"encoding/json"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Bounds of a book.
const (
	maxEntries    = 100
	maxPerAddress = 10 // beyond it an address replaces its own entries, so that nobody pushes out those of others
	perMinute     = 10 // of one address
	perMinuteAll  = 120
	Kept          = time.Hour
)

// Entry describes a token that was refused.
type Entry struct {
	At     time.Time  `json:"at"`
	From   netip.Addr `json:"from"` // the peer's address; of IPv6 the first 64 bits
	Path   string     `json:"path"`
	Status int        `json:"status"`
	// Verified says that the signature is the issuer's. Without it everything below may be made up.
	Verified bool `json:"signature_verified"`
	// Claims holds the payload's members, cut to the bounds of an entry. Cut names the members that were left out.
	Claims json.RawMessage `json:"claims"`
	Cut    []string        `json:"claims_left_out,omitempty"`
	// Header holds the token's header: alg, kid, typ.
	Header map[string]string `json:"header,omitempty"`
	Advice

	// OrganizationID is the organization that verified claims name by the rules of their issuer; "" when they name
	// none.
	OrganizationID string `json:"-"`
}

// Advice says why a token was refused and what would accept it.
type Advice struct {
	// Reason says why the token was refused.
	Reason string `json:"reason"`
	// RefusedBy is the option of the configuration that refused it; "" when no option can change it.
	RefusedBy string `json:"refused_by"`
	// AcceptedBy is the line that would accept it; "" when there should be none.
	AcceptedBy string `json:"accepted_by"`
	// Issuer and Option name that option: the issuer of its identity, and its first words.
	Issuer string `json:"issuer,omitempty"`
	Option string `json:"option,omitempty"`
	// Advice says in one sentence how to mend it.
	Advice string `json:"advice"`
}

// Book remembers refused tokens. The zero value is ready; it is safe for concurrent use.
type Book struct {
	mu      sync.Mutex
	entries []Entry // the oldest first
	minute  time.Time
	counts  map[netip.Addr]int // within the minute
	all     int
}

// Room reports whether another token from an address is remembered, and counts it. It is called before any costly
// work on the token.
func (b *Book) Room(from netip.Addr, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.counts == nil || now.Sub(b.minute) >= time.Minute || now.Before(b.minute) {
		b.minute, b.counts, b.all = now, make(map[netip.Addr]int), 0
	}
	if b.all >= perMinuteAll || b.counts[from] >= perMinute {
		return false
	}
	b.counts[from]++
	b.all++
	return true
}

// Add remembers a token.
func (b *Book) Add(e Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(e.At)
	mine, first := 0, -1
	for i := range b.entries {
		if b.entries[i].From == e.From {
			if mine++; first < 0 {
				first = i
			}
		}
	}
	switch {
	case mine >= maxPerAddress:
		b.entries = slices.Delete(b.entries, first, first+1)
	case len(b.entries) >= maxEntries:
		b.entries = slices.Delete(b.entries, 0, 1)
	}
	b.entries = append(b.entries, e)
}

// Entries returns the remembered tokens, the newest first.
func (b *Book) Entries(now time.Time) []Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(now)
	entries := slices.Clone(b.entries)
	slices.Reverse(entries)
	return entries
}

func (b *Book) forget(now time.Time) {
	b.entries = slices.DeleteFunc(b.entries, func(e Entry) bool { return now.Sub(e.At) >= Kept })
}
