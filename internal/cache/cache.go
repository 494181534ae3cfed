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

// ErrClosed is the error of Get after Close.
var ErrClosed = errors.New("cache is closed")

// Key names a value of one organization.
type Key struct{ organization, full string }

// NewKey makes a key. Every field is preceded by its length, so that no two lists of fields make the same key.
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

// Organization returns the organization of the key's value.
func (k Key) Organization() string { return k.organization }

// Options holds the bounds of a cache.
type Options[V any] struct {
	// Entries is the approximate number of values that are kept.
	Entries int64
	// MaxCost bounds the sum of the costs of the values, in Cost's unit (such as bytes). Default: Entries.
	MaxCost int64
	// Cost returns the cost of a value. Default: 1 each.
	Cost func(V) int64
	// TTL bounds the age of a value. Default: none.
	TTL time.Duration
	// Expires, when set, returns the time from which a value must not be served; the zero time means never.
	Expires func(V) time.Time
	// Now is the clock of TTL and Expires. Default: time.Now.
	Now func() time.Time
}

// Cache is safe for concurrent use. Its values are shared by all callers.
type Cache[V any] struct {
	opts   Options[V]
	epochs *Epochs

	// closing keeps ristretto from being closed while it is read: it is not safe against that.
	closing sync.RWMutex
	closed  atomic.Bool
	values  *ristretto.Cache[string, entry[V]]

	// recent holds some of the most requested values, each in the only place that its key can have. A look-up costs a
	// third of one in ristretto, which takes a lock and records the request.
	recent [recentPlaces]atomic.Pointer[entry[V]]
	seed   maphash.Seed

	mu      sync.Mutex
	flights map[flightKey]*flight[V]
	loading sync.WaitGroup
}

const (
	recentPlaces = 1 << 10
	// One in rareness look-ups bypasses recent. ristretto has to learn which keys are requested, and a place has to
	// change its owner now and then, but not at each look-up of two keys that share it.
	rareness = 32
)

type entry[V any] struct {
	key     string // the whole key: a collision of hashes is a miss, never another key's value
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
	// The seed decides the place of a value. Nobody outside knows it, so nobody can aim at another key's place. A key
	// that hits a place by chance finds a different key there.
	seed := maphash.MakeSeed()
	values, err := ristretto.NewCache(&ristretto.Config[string, entry[V]]{
		// ristretto's documentation recommends ten times, to avoid misjudging keys that are not kept. They are
		// allocated at once, though, and were two thirds of an idle gateway's memory.
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

// Get returns the value of key in the organization's present epoch. When it is not cached, load makes it, once for all
// callers in the same epoch. load's context has the values of the first caller's context, and ends only when every
// caller has gone or the cache is closed. Errors are returned to the waiting callers and are not cached. A caller whose
// ctx ends gets ctx's error. A panic of load is raised in the callers.
func (c *Cache[V]) Get(ctx context.Context, key Key, load func(context.Context) (V, error)) (V, error) {
	// The epoch is read before anything is loaded, so that the loaded data is at least as new.
	epoch := c.epochs.Current(key.organization)
	v, ok, err := c.kept(key, epoch, isRare())
	if ok || err != nil {
		return v, err
	}
	return c.fly(ctx, key, epoch, load)
}

// GetAlone does the same as Get for a load that computes more than it waits. load runs under ctx, on the goroutine of
// each caller that finds nothing. This saves a goroutine whose stack would have to grow.
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

// roomForKeys is enough for the keys of Recent, which makes them on the stack.
const roomForKeys = 512

// Recent returns the value of that key when it is among the most requested ones. It makes no key that stays in memory,
// and reads no clock: now is the time, as exact as the caller needs for the expiry of the value. When it returns false
// the caller uses Get.
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

// isRare reports whether a look-up bypasses recent.
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

// good reports whether an entry is the value of that key, and still valid.
func (c *Cache[V]) good(e *entry[V], key Key, epoch Epoch) bool {
	return e.epoch == epoch && e.key == key.full && (e.expires.IsZero() || e.lasts(c.opts.Now()))
}

func (e *entry[V]) lasts(now time.Time) bool { return e.expires.IsZero() || now.Before(e.expires) }

// keep stores a value that was loaded in epoch, unless the epoch is over.
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
