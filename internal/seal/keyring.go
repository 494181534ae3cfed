package seal

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// ErrOpen means that a sealed value cannot be opened: it was cut, changed, moved to another place, sealed with a key
// that the store does not have, or is no sealed value at all.
var ErrOpen = errors.New("sealed value cannot be opened")

// AD names the place of a sealed value. It is authenticated with the value and not stored in it.
type AD struct {
	Table, Column, Organization, User, Record string
}

// Layout of a sealed value: format (1 byte), key version (4 bytes, big-endian), nonce (12), ciphertext and tag (n + 16).
const (
	format     = 1
	headerSize = 1 + 4
)

// Keyring opens values with any data key and seals with the newest one that has settled. It learns of data keys that
// are added while it is in use. It is safe for concurrent use.
type Keyring struct {
	masters map[string]MasterKey
	now     func() time.Time
	read    func(timeout time.Duration) ([]storage.DataKey, error) // from the store; no caller's context ends it
	known   atomic.Pointer[dataKeys]
	loads   loads
}

// dataKeys holds the data keys that a keyring knows. It never changes.
type dataKeys struct {
	keys     map[uint32]*dataKey
	versions []uint32 // descending
}

type dataKey struct {
	raw     hidden[[]byte] // for deriving the keys of token sealers
	aead    hidden[cipher.AEAD]
	created time.Time
}

// settleTime is the age up to which a new data key is not used for sealing, unless there is no older one. After it
// every node knows the key (see reloadAfter).
const settleTime = time.Minute

// current returns the version of the key that new values are sealed with.
func (d *dataKeys) current(now time.Time) uint32 {
	for _, version := range d.versions {
		if !d.keys[version].created.After(now.Add(-settleTime)) {
			return version
		}
	}
	return d.versions[len(d.versions)-1]
}

// tokenTime is the time for which tokens sealed by a former data key stay valid after its successor took over. A thief of the
// former key can forge tokens until then.
const tokenTime = 24 * time.Hour

// retired reports whether a key's tokens are no longer valid.
func (d *dataKeys) retired(version uint32, now time.Time) bool {
	for i, v := range d.versions {
		if v == version && i > 0 {
			return d.keys[d.versions[i-1]].created.Before(now.Add(-settleTime - tokenTime))
		}
	}
	return false
}

// OpenKeyring unwraps all data keys and makes the first one when there is none. The first of masters wraps new data
// keys; the others only read. It fails when the master key of a data key is not among masters, because the values
// sealed with that data key would be lost silently.
func OpenKeyring(ctx context.Context, masters []MasterKey, keys storage.DataKeys, now func() time.Time) (*Keyring, error) {
	if len(masters) == 0 {
		return nil, errors.New("no master key given: " + masterKeyHelp)
	}
	stored, err := keys.DataKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading data keys: %w", err)
	}
	if len(stored) == 0 {
		err := keys.AddDataKey(ctx, NewDataKey(masters[0], 1, now()))
		// A conflict means that another node started at the same moment: its key is used.
		if err != nil && !errors.Is(err, storage.ErrConflict) {
			return nil, fmt.Errorf("storing first data key: %w", err)
		}
		if stored, err = keys.DataKeys(ctx); err != nil {
			return nil, fmt.Errorf("reading data keys: %w", err)
		}
		if len(stored) == 0 {
			return nil, errors.New("reading data keys: the store lost the key it was given")
		}
	}
	k := &Keyring{masters: make(map[string]MasterKey, len(masters)), now: now}
	k.read = func(timeout time.Duration) ([]storage.DataKey, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		return keys.DataKeys(ctx)
	}
	for _, m := range masters {
		k.masters[m.id] = m
	}
	known, err := k.unwrapAll(stored)
	if err != nil {
		return nil, err
	}
	k.known.Store(known)
	k.loads.begin(now())
	return k, nil
}

func (k *Keyring) unwrapAll(stored []storage.DataKey) (*dataKeys, error) {
	known := &dataKeys{keys: make(map[uint32]*dataKey, len(stored))}
	for _, s := range stored {
		dk, version, err := openDataKey(s, k.masters)
		if err != nil {
			return nil, err
		}
		known.keys[version] = dk
	}
	known.versions = slices.Sorted(maps.Keys(known.keys))
	slices.Reverse(known.versions)
	return known, nil
}

// openDataKey unwraps a data key with the master key that wrapped it.
func openDataKey(s storage.DataKey, masters map[string]MasterKey) (*dataKey, uint32, error) {
	version, err := keyVersion(s.Version)
	if err != nil {
		return nil, 0, err
	}
	m, ok := masters[s.MasterKeyID]
	if !ok {
		return nil, 0, fmt.Errorf("data key %d is wrapped by master key %s, which is not among those given (%s); give it as well, after a newer one",
			s.Version, s.MasterKeyID, strings.Join(slices.Sorted(maps.Keys(masters)), ", "))
	}
	dk, err := unwrap(m, version, s.Wrapped)
	if err != nil {
		return nil, 0, fmt.Errorf("unwrapping data key %d with master key %s: %w", s.Version, s.MasterKeyID, err)
	}
	dk.created = s.CreatedAt
	return dk, version, nil
}

func keyVersion(v int) (uint32, error) {
	if v < 1 || int64(v) > int64(^uint32(0)) {
		return 0, fmt.Errorf("data key has impossible version %d", v)
	}
	return uint32(v), nil
}

// NewDataKey draws a data key and wraps it.
func NewDataKey(m MasterKey, version uint32, at time.Time) storage.DataKey {
	raw := make([]byte, keySize)
	_, _ = rand.Read(raw) // never fails: it crashes the process instead
	defer clear(raw)
	return m.wrap(raw, version, at)
}

func (m MasterKey) wrap(raw []byte, version uint32, at time.Time) storage.DataKey {
	return storage.DataKey{
		Version:     int(version),
		MasterKeyID: m.id,
		Wrapped:     m.aead().Seal(nil, nil, raw, wrapAD(m, version)),
		CreatedAt:   at.UTC(),
	}
}

// Rewrap wraps a data key with the first of masters; one of them must have wrapped it. changed is false when the
// first one had wrapped it already. The data key itself does not change.
func Rewrap(s storage.DataKey, masters []MasterKey) (rewrapped storage.DataKey, changed bool, err error) {
	byID := make(map[string]MasterKey, len(masters))
	for _, m := range masters {
		byID[m.id] = m
	}
	dk, version, err := openDataKey(s, byID)
	if err != nil || s.MasterKeyID == masters[0].id {
		return s, false, err
	}
	raw := dk.raw()
	defer clear(raw)
	return masters[0].wrap(raw, version, s.CreatedAt), true, nil
}

// errUnwrap says that a data key could not be unwrapped. It is not ErrOpen, which would declare everything sealed
// with the data key lost.
var errUnwrap = errors.New("it was cut, changed, or wrapped by another key")

func unwrap(m MasterKey, version uint32, wrapped []byte) (*dataKey, error) {
	raw, err := m.aead().Open(nil, nil, wrapped, wrapAD(m, version))
	if err != nil || len(raw) != keySize {
		return nil, errUnwrap
	}
	aead, err := newAEAD(raw)
	if err != nil {
		return nil, err
	}
	return &dataKey{raw: hide(raw), aead: hide(aead)}, nil
}

func wrapAD(m MasterKey, version uint32) []byte {
	b := appendField(nil, "durward data key")
	b = appendField(b, m.id)
	return binary.BigEndian.AppendUint32(b, version)
}

// Seal encrypts plaintext for the place ad.
func (k *Keyring) Seal(plaintext []byte, ad AD) ([]byte, error) {
	k.freshen()
	known := k.known.Load()
	version := known.current(k.now())
	return known.keys[version].seal(version, plaintext, ad), nil
}

func (dk *dataKey) seal(version uint32, plaintext []byte, ad AD) []byte {
	aead := dk.aead()
	out := make([]byte, headerSize, headerSize+aead.Overhead()+len(plaintext))
	out[0] = format
	binary.BigEndian.PutUint32(out[1:], version)
	return aead.Seal(out, nil, plaintext, ad.encode(version))
}

// Open decrypts a result of Seal for the same place. Errors are ErrOpen, and storage.ErrUnavailable when the data key
// is not known here and cannot be looked up, or unwrapped, at the moment.
func (k *Keyring) Open(sealed []byte, ad AD) ([]byte, error) {
	version, body, err := splitHeader(sealed)
	if err != nil {
		return nil, err
	}
	k.freshen()
	dk, ok := k.known.Load().keys[version]
	if !ok {
		if err := k.learn(version); err != nil {
			return nil, err
		}
		dk = k.known.Load().keys[version]
	}
	plain, err := dk.aead().Open(nil, nil, body, ad.encode(version))
	if err != nil {
		return nil, ErrOpen
	}
	return plain, nil
}

// Newest returns the version of the newest data key, settled or not.
func (k *Keyring) Newest() uint32 { return k.known.Load().versions[0] }

// Reseal opens a value sealed for a place and seals it for the same place with the newest data key, settled or not: a
// node that opens it learns of the key. changed is false when that key had sealed it already. Errors are those of
// Open.
func (k *Keyring) Reseal(sealed []byte, ad AD) (resealed []byte, changed bool, err error) {
	version, _, err := splitHeader(sealed)
	if err != nil {
		return nil, false, err
	}
	known := k.known.Load()
	newest := known.versions[0]
	if version == newest {
		return sealed, false, nil
	}
	plain, err := k.Open(sealed, ad)
	if err != nil {
		return nil, false, err
	}
	defer clear(plain)
	return known.keys[newest].seal(newest, plain, ad), true, nil
}

func splitHeader(sealed []byte) (version uint32, body []byte, err error) {
	if len(sealed) < headerSize || sealed[0] != format {
		return 0, nil, fmt.Errorf("%w: unknown format", ErrOpen)
	}
	return binary.BigEndian.Uint32(sealed[1:]), sealed[headerSize:], nil
}

// encode returns different bytes for different places: each field comes with its length, so that no two places run
// together.
func (a AD) encode(version uint32) []byte {
	b := make([]byte, 0, 64+len(a.Table)+len(a.Column)+len(a.Organization)+len(a.User)+len(a.Record))
	b = appendField(b, "durward record")
	for _, f := range [...]string{a.Table, a.Column, a.Organization, a.User, a.Record} {
		b = appendField(b, f)
	}
	b = append(b, format)
	return binary.BigEndian.AppendUint32(b, version)
}

func appendField(b []byte, f string) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(f)))
	return append(b, f...)
}
