// Package guesses bounds how often credentials can be guessed (attack T12), and keeps whoever guesses from locking out
// others.
//
// Wrong credentials are counted over the last minute, by the address that they came from and by the beginning of the key
// that was tried. A credential that is tried again and again is one guess: what is counted again is only itself. The
// beginning of a key is no secret, so that anybody could use it up: it counts only against addresses that tried a wrong key
// with that beginning themselves. So nobody is refused for what other addresses did.
package guesses

import (
	"crypto/sha256"
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/window"
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
	// perFailure is how many counters a failure can make.
	perFailure = 4
	sweepEvery = 10 * time.Second
)

// Attempt is a credential that somebody presented.
type Attempt struct {
	From netip.Addr // of Address
	// Credential is a digest of all of it: never the credential itself.
	Credential [sha256.Size]byte
	Prefix     string // the beginning of a key; "" for what has none
}

// Guesses counts wrong credentials. It is safe for concurrent use.
type Guesses struct {
	now      func() time.Time
	start    time.Time
	counters *window.Counters
	seed     maphash.Seed
	made     atomic.Int64 // at least the number of counters
	swept    atomic.Int64 // when counters were last forgotten, since the start
}

// New counts from nothing. now must give a monotonic reading, as time.Now, its default, does.
func New(now func() time.Time) *Guesses {
	if now == nil {
		now = time.Now
	}
	return &Guesses{now: now, start: now(), counters: window.New(now), seed: maphash.MakeSeed()}
}

// Address is what the peer of a connection is counted as: an IPv4 address, or the /64 of an IPv6 address, all of which one
// peer can use as it likes (attack T04). remote is "host:port" of the connection, never of a header. What is no address, as
// the peer of a unix socket, is the zero one.
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

// Mark is a number for an address. It is never zero.
func (g *Guesses) Mark(address netip.Addr) uint64 { return maphash.Comparable(g.seed, address) | 1 }

// Wait is how long it takes until a credential may be looked at; zero: it may. A credential that is known to have come from
// the same address before, and was good, need not be asked for.
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
		charges = charges[:1] // the same guess again: it is in the other counters
	}
	return g.look(charges)
}

func (g *Guesses) look(charges []window.Charge) (wait time.Duration) {
	states := make([]window.State, len(charges))
	g.counters.Look(charges, states)
	return longest(states)
}

// Failed counts a credential that was wrong. When there was no room for it, it is how long to wait, and what the credential
// was must not be told. Of concurrent guesses exactly as many as may have room.
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
				limit = window.Max // others' guesses are not this address's
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

// room reports whether there is memory to count one more, and forgets what is long over.
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
