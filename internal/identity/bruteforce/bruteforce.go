// Package bruteforce bounds how often credentials can be guessed (attack T12), and keeps a guesser from locking out
// others.
//
// It counts wrong credentials over the last minute, by their source address and by the beginning of the key. A repeated
// credential is one guess: further tries count only against that credential. The beginning of a key is no secret, so
// anybody could use up its limit. So it counts only against addresses that tried a wrong key with that beginning
// themselves. Nobody is refused for the tries of other addresses.
package bruteforce

import (
	"crypto/sha256"
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/ratelimit/window"
)

// Limits of wrong credentials within a minute.
const (
	PerAddress    = 60 // different ones from one address
	PerPrefix     = 20 // different keys with one beginning, from all addresses that tried one
	PerCredential = 20 // the same one from one address
)

const (
	// maxCounters bounds the memory, about 200 bytes each. Beyond it new addresses are not counted, until others are
	// forgotten: refusing them would lock out everybody.
	maxCounters = 1 << 16
	// perFailure is the number of counters that one failure can make.
	perFailure = 4
	sweepEvery = 10 * time.Second
)

// Attempt is a credential that a client presented.
type Attempt struct {
	From netip.Addr // of Address
	// Credential is a digest of the whole credential: never the credential itself.
	Credential [sha256.Size]byte
	Prefix     string // the beginning of a key; "" for credentials without one
}

// Guesses counts wrong credentials. It is safe for concurrent use.
type Guesses struct {
	now      func() time.Time
	start    time.Time
	counters *window.Counters
	seed     maphash.Seed
	made     atomic.Int64 // at least the number of counters
	swept    atomic.Int64 // time of the last sweep, since the start
}

// New makes an empty Guesses. now must return a monotonic reading, as time.Now, its default, does.
func New(now func() time.Time) *Guesses {
	if now == nil {
		now = time.Now
	}
	return &Guesses{now: now, start: now(), counters: window.New(now), seed: maphash.MakeSeed()}
}

// Address returns the address under which the peer of a connection is counted: an IPv4 address, or the /64 of an IPv6
// address, all of which one peer can use as it likes (attack T04). remote is "host:port" of the connection, never of a
// header. For a peer without an address, as on a unix socket, it is the zero address.
func Address(remote string) netip.Addr {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	address := peer.Addr().Unmap().WithZone("")
	if address.Is4() {
		return address
	}
	block, err := address.Prefix(64)
	if err != nil {
		return netip.Addr{}
	}
	return block.Addr()
}

// Mark returns a number for an address. It is never zero.
func (g *Guesses) Mark(address netip.Addr) uint64 { return maphash.Comparable(g.seed, address) | 1 }

// Wait returns the time until a credential may be checked; zero: it may be now. The caller need not ask for a
// credential that is known to be good and to have come from the same address before.
func (g *Guesses) Wait(a Attempt) time.Duration {
	if g.made.Load() == 0 {
		return 0
	}
	k := a.keys()
	charges := []window.Charge{{Key: k.credential, Limit: PerCredential}, {Key: k.address, Limit: PerAddress}}
	if a.Prefix != "" && g.counters.Used(k.tried) > 0 {
		charges = append(charges, window.Charge{Key: k.prefix, Limit: PerPrefix})
	}
	if g.counters.Used(k.credential) > 0 {
		charges = charges[:1] // a repeated guess: it is in the other counters already
	}
	return g.look(charges)
}

func (g *Guesses) look(charges []window.Charge) (wait time.Duration) {
	states := make([]window.State, len(charges))
	g.counters.Look(charges, states)
	return longest(states)
}

// Failed counts a wrong credential. When there was no room for it, it returns the time to wait, and the caller must not
// reveal whether the credential was wrong. Of concurrent guesses exactly the allowed number have room.
func (g *Guesses) Failed(a Attempt) (wait time.Duration) {
	if !g.room() {
		return 0
	}
	k := a.keys()
	charges := []window.Charge{{Key: k.credential, Amount: 1, Limit: PerCredential}}
	if g.counters.Used(k.credential) == 0 {
		charges = append(charges, window.Charge{Key: k.address, Amount: 1, Limit: PerAddress})
		if a.Prefix != "" {
			limit := int64(PerPrefix)
			if g.counters.Used(k.tried) == 0 {
				limit = window.Max // others' guesses do not count against this address
			}
			charges = append(charges, window.Charge{Key: k.tried, Amount: 1, Limit: window.Max}, window.Charge{Key: k.prefix, Amount: 1, Limit: limit})
		}
		g.made.Add(perFailure)
	}
	states := make([]window.State, len(charges))
	if _, ok := g.counters.Charge(charges, states); ok {
		return 0
	}
	return longest(states)
}

func longest(states []window.State) (wait time.Duration) {
	for _, s := range states {
		wait = max(wait, s.Wait)
	}
	return wait
}

// room reports whether there is memory for one more counter, and drops counters that are long over.
func (g *Guesses) room() bool {
	since := int64(g.now().Sub(g.start))
	if last := g.swept.Load(); since-last >= int64(sweepEvery) && g.swept.CompareAndSwap(last, since) {
		g.counters.Sweep()
		g.made.Store(int64(g.counters.Len()))
	}
	return g.made.Load() < maxCounters
}

type keys struct{ credential, address, prefix, tried window.Key }

// Groups of counters.
var (
	byAddress = window.NewDigest("address")
	byPrefix  = window.NewDigest("prefix")
)

func (a *Attempt) keys() keys {
	address := a.From.String()
	from := window.NewDigest("from", address)
	return keys{
		credential: window.NewKey(from, window.NewDigest("credential", string(a.Credential[:]))),
		address:    window.NewKey(byAddress, from),
		prefix:     window.NewKey(byPrefix, window.NewDigest(a.Prefix)),
		tried:      window.NewKey(from, window.NewDigest("prefix", a.Prefix)),
	}
}
