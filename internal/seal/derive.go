package seal

import (
	"crypto/hkdf"
	"crypto/sha256"
	"sync/atomic"
)

// derived holds keys for one purpose, one for each data key (HKDF-SHA256, RFC 5869): a value that is made for one
// purpose is useless for another. New keys are derived when the keyring learns of more data keys.
type derived[T any] struct {
	ring   *Keyring
	info   string // the kind of derived value, and the purpose
	size   int
	derive func(key []byte) T
	made   atomic.Pointer[derivedKeys[T]]
}

type derivedKeys[T any] struct {
	from    *dataKeys
	keys    map[uint32]hidden[T]
	settled atomic.Bool // the newest one is in use
}

func newDerived[T any](k *Keyring, info string, size int, derive func(key []byte) T) *derived[T] {
	d := &derived[T]{ring: k, info: info, size: size, derive: derive}
	d.all() // now, so that no request waits for it later
	return d
}

// all returns the known keys, by version.
func (d *derived[T]) all() *derivedKeys[T] {
	known := d.ring.known.Load()
	if made := d.made.Load(); made != nil && made.from == known {
		return made
	}
	made := &derivedKeys[T]{from: known, keys: make(map[uint32]hidden[T], len(known.keys))}
	for version, dk := range known.keys {
		key, err := hkdf.Key(sha256.New, dk.raw(), nil, d.info, d.size)
		if err != nil {
			panic("seal: deriving a key of fixed length: " + err.Error()) // only lengths can be wrong
		}
		made.keys[version] = hide(d.derive(key))
	}
	d.made.Store(made)
	return made
}

// latest returns the current key. Once the newest key is in use it does so without reading the clock, which costs as
// much as making a digest. That a newer key exists is found out by other callers.
func (d *derived[T]) latest() (version uint32, key T) {
	made := d.all()
	version = made.from.versions[0]
	if !made.settled.Load() {
		newest := version
		version = made.from.current(d.ring.now())
		made.settled.Store(version == newest)
	}
	return version, made.keys[version]()
}

// current returns the key for new values.
func (d *derived[T]) current() (version uint32, key T) {
	d.ring.freshen()
	made := d.all()
	version = made.from.current(d.ring.now())
	return version, made.keys[version]()
}
