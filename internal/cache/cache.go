package cache

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

// ErrClosed is what Get answers after Close.
var ErrClosed = errors.New("cache is closed")

// Key names a value of one organization.
type Key struct{ organization, full string }

// NewKey makes a key. Every field goes in with its length, so that no two lists of fields make the same key.
func NewKey(organization string, fields ...string) Key {
	n := 8 + len(organization)
	for _, f := range fields {
		n += 8 + len(f)
	}
	return Key{organization: organization, full: string(appendKey(make([]byte, 0, n), organization, fields))}
}

func appendKey(to []byte, organization string, fields []string) []byte {
	to = appendField(to, organization)
	for _, f := range fields {
		to = appendField(to, f)
	}
	return to
}

func appendField(to []byte, f string) []byte {
	return append(binary.BigEndian.AppendUint64(to, uint64(len(f))), f...)
}

// Organization is whose value the key names.
func (k Key) Organization() string { return k.organization }

// Options bound a cache.
type Options[V any] struct {
	// Entries is about how many values are kept.
	Entries int64
	// MaxCost bounds the sum of what Cost says of the values kept, in Cost's unit (bytes, say). Default: Entries.
	MaxCost int64
	// Cost weighs a value. Default: 1 each.
	Cost func(V) int64
	// TTL bounds the age of a value. Default: none.
	TTL time.Duration
	// Expires, when set, says from when on a value must not be served; the zero time is never.
	Expires func(V) time.Time
	// Now is the clock of TTL and Expires. Default: time.Now.
	Now func() time.Time
}

// Cache is safe for concurrent use. Values are shared by all who get them.
type Cache[V any] struct {
	opts   Options[V]
	epochs *Epochs

	// closing keeps ristretto from being closed under a reader: it is not safe against that.
	closing sync.RWMutex
	closed  atomic.Bool
	values  *ristretto.Cache[string, entry[V]]

	// recent holds some of what is asked for most, each value in the only place that its key can have. It is a third of the
	// price of ristretto, which takes a lock and notes who asked.
	recent [recentPlaces]atomic.Pointer[entry[V]]
	seed   maphash.Seed

	mu      sync.Mutex
	flights map[flightKey]*flight[V]
	loading sync.WaitGroup
}

const (
	recentPlaces = 1 << 10
	// One in rareness look-ups goes past recent: ristretto has to know what is asked for, and a place has to change hands
	// now and then, but not at each look-up of two who share it.
	rareness = 32
)

type entry[V any] struct {
	key     string // the whole key: a collision of hashes is a miss, never somebody else's value
	epoch   Epoch
	expires time.Time // zero: never
	value   V
}

// New makes a cache whose values end with the epochs of their organizations.
func New[V any](epochs *Epochs, opts Options[V]) (*Cache[V], error) {
	if opts.Entries <= 0 {
		return nil, fmt.Errorf("cache of %d entries", opts.Entries)
	}
	if opts.MaxCost == 0 {
		opts.MaxCost = opts.Entries
	}
	if opts.Cost == nil {
		opts.Cost = func(V) int64 { return 1 }
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	// Where a value lies. Nobody outside knows the seed, so that nobody can aim at another's place; and who hits one by
	// chance finds a key that is not theirs.
	seed := maphash.MakeSeed()
	values, err := ristretto.NewCache(&ristretto.Config[string, entry[V]]{
		// Ristretto's advice is ten times, for what would otherwise be misjudged of keys that are not kept. They are laid out
		// at once, though, and were two thirds of an idle gateway's memory.
		NumCounters:        2 * opts.Entries,
		MaxCost:            opts.MaxCost,
		BufferItems:        64,
		IgnoreInternalCost: true,
		KeyToHash:          func(key string) (uint64, uint64) { return maphash.String(seed, key), 0 },
	})
	if err != nil {
		return nil, fmt.Errorf("making cache: %w", err)
	}
	return &Cache[V]{opts: opts, epochs: epochs, values: values, seed: seed, flights: map[flightKey]*flight[V]{}}, nil
}

// Get returns the value of key in the organization's present epoch. When it is not kept, load makes it, once for all who
// ask for it in the same epoch; its context keeps the values of the first caller's, and ends only when every caller has
// gone or the cache is closed. Errors are returned to those who wait and are not kept. A caller whose ctx ends gets ctx's
// error. A panic of load is raised in the callers.
func (c *Cache[V]) Get(ctx context.Context, key Key, load func(context.Context) (V, error)) (V, error) {
	// The epoch is read before anything is loaded: what load reads is at least as new.
	epoch := c.epochs.Current(key.organization)
	v, ok, err := c.kept(key, epoch, isRare())
	if ok || err != nil {
		return v, err
	}
	return c.fly(ctx, key, epoch, load)
}

// GetAlone is Get for a load that computes more than it waits: it runs under ctx, on the goroutine of each caller that finds
// nothing, and saves a goroutine whose stack has to grow for it.
func (c *Cache[V]) GetAlone(ctx context.Context, key Key, load func(context.Context) (V, error)) (V, error) {
	epoch := c.epochs.Current(key.organization)
	v, ok, err := c.kept(key, epoch, isRare())
	if ok || err != nil {
		return v, err
	}
	if v, err = load(ctx); err != nil {
		var none V
		return none, err
	}
	c.keep(key, epoch, v)
	return v, nil
}

// roomForKeys is enough for the keys that Recent is asked for: it makes them on the stack.
const roomForKeys = 512

// Recent returns the value of that key when it is among those that are asked for most. It makes no key that stays in memory,
// and looks at no clock: now is what the time is, as exactly as the end of the value is to be kept to. Whoever is told false
// asks Get.
func (c *Cache[V]) Recent(now time.Time, organization string, fields ...string) (value V, ok bool) {
	var room [roomForKeys]byte
	full := appendKey(room[:0], organization, fields)
	epoch := c.epochs.Current(organization)
	if isRare() {
		value, ok, _ = c.kept(Key{organization, string(full)}, epoch, true)
		return value, ok
	}
	e := c.recent[maphash.Bytes(c.seed, full)%recentPlaces].Load()
	if e == nil || e.epoch != epoch || e.key != string(full) || !e.lasts(now) || c.closed.Load() {
		return value, false
	}
	return e.value, true
}

// isRare is whether a look-up goes past recent.
func isRare() bool { return rand.Uint32()%rareness == 0 } //nolint:gosec // no secret

func (c *Cache[V]) kept(key Key, epoch Epoch, rare bool) (value V, ok bool, err error) {
	c.closing.RLock()
	defer c.closing.RUnlock()
	if c.closed.Load() {
		return value, false, ErrClosed
	}
	place := &c.recent[maphash.String(c.seed, key.full)%recentPlaces]
	if e := place.Load(); !rare && e != nil && c.good(e, key, epoch) {
		return e.value, true, nil
	}
	e, ok := c.values.Get(key.full)
	if !ok || !c.good(&e, key, epoch) {
		return value, false, nil
	}
	if rare {
		place.Store(new(e))
	}
	return e.value, true, nil
}

// good says whether an entry is the value of that key, and still true.
func (c *Cache[V]) good(e *entry[V], key Key, epoch Epoch) bool {
	return e.epoch == epoch && e.key == key.full && (e.expires.IsZero() || e.lasts(c.opts.Now()))
}

func (e *entry[V]) lasts(now time.Time) bool { return e.expires.IsZero() || now.Before(e.expires) }

// keep stores a value that was loaded in epoch, unless that is over.
func (c *Cache[V]) keep(key Key, epoch Epoch, value V) {
	now := c.opts.Now()
	var expires time.Time
	if c.opts.TTL > 0 {
		expires = now.Add(c.opts.TTL)
	}
	if c.opts.Expires != nil {
		if at := c.opts.Expires(value); !at.IsZero() && (expires.IsZero() || at.Before(expires)) {
			expires = at
		}
	}
	if !expires.IsZero() && !now.Before(expires) {
		return
	}
	if c.epochs.Current(key.organization) != epoch {
		return
	}
	c.closing.RLock()
	defer c.closing.RUnlock()
	if !c.closed.Load() {
		c.values.Set(key.full, entry[V]{key: key.full, epoch: epoch, expires: expires, value: value}, max(1, c.opts.Cost(value)))
	}
}

// Close ends all loads, waits for them, and frees the cache. It is idempotent.
func (c *Cache[V]) Close() {
	c.closing.Lock()
	already := c.closed.Swap(true)
	c.closing.Unlock()

	c.mu.Lock()
	for _, f := range c.flights {
		f.cancel(ErrClosed)
	}
	c.mu.Unlock()
	c.loading.Wait()
	if !already {
		c.values.Close()
	}
}
