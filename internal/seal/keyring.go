package seal

import (
	"context"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// ErrOpen means that a sealed value cannot be opened: it was cut, changed, moved to another place, sealed with a key that
// is not here, or is no sealed value at all.
var ErrOpen = errors.New("sealed value cannot be opened")

// AD is the place of a sealed value. It is authenticated with the value and not stored in it.
type AD struct {
	Table, Column, Organization, User, Record string
}

// Layout of a sealed value: format (1 byte), key version (4 bytes, big-endian), nonce (12), ciphertext and tag (n + 16).
const (
	format     = 1
	headerSize = 1 + 4
)

// Keyring seals with the newest data key and opens with any. It is safe for concurrent use.
type Keyring struct {
	keys    map[uint32]*dataKey
	current uint32
}

type dataKey struct {
	raw  []byte // for deriving the keys of token sealers
	aead cipher.AEAD
}

// OpenKeyring unwraps all data keys and makes the first one when there is none. The first of masters wraps new data keys;
// the others only read. It refuses to start when the master key of a data key is not among masters, because what was
// sealed with that data key would be lost in silence.
func OpenKeyring(ctx context.Context, masters []MasterKey, keys storage.DataKeys, now func() time.Time) (*Keyring, error) {
	if len(masters) == 0 {
		return nil, errors.New("no master key given: " + masterKeyHelp)
	}
	stored, err := keys.DataKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading data keys: %w", err)
	}
	if len(stored) == 0 {
		err := keys.AddDataKey(ctx, wrapNew(masters[0], 1, now()))
		// A conflict is another node that started at the same moment: its key is the one.
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
	byID := make(map[string]MasterKey, len(masters))
	for _, m := range masters {
		byID[m.id] = m
	}
	k := &Keyring{keys: make(map[uint32]*dataKey, len(stored))}
	for _, s := range stored {
		version, err := keyVersion(s.Version)
		if err != nil {
			return nil, err
		}
		m, ok := byID[s.MasterKeyID]
		if !ok {
			return nil, fmt.Errorf("data key %d is wrapped by master key %s, which is not among those given (%s); give it as well, after a newer one",
				s.Version, s.MasterKeyID, strings.Join(slices.Sorted(maps.Keys(byID)), ", "))
		}
		dk, err := unwrap(m, version, s.Wrapped)
		if err != nil {
			return nil, fmt.Errorf("unwrapping data key %d with master key %s: %w", s.Version, s.MasterKeyID, err)
		}
		k.keys[version] = dk
		k.current = max(k.current, version)
	}
	return k, nil
}

func keyVersion(v int) (uint32, error) {
	if v < 1 || int64(v) > int64(^uint32(0)) {
		return 0, fmt.Errorf("data key has impossible version %d", v)
	}
	return uint32(v), nil
}

func wrapNew(m MasterKey, version uint32, at time.Time) storage.DataKey {
	raw := make([]byte, keySize)
	_, _ = rand.Read(raw) // never fails: it crashes the process instead
	defer clear(raw)
	return storage.DataKey{
		Version:     int(version),
		MasterKeyID: m.id,
		Wrapped:     m.aead.Seal(nil, nil, raw, wrapAD(m, version)),
		CreatedAt:   at.UTC(),
	}
}

func unwrap(m MasterKey, version uint32, wrapped []byte) (*dataKey, error) {
	raw, err := m.aead.Open(nil, nil, wrapped, wrapAD(m, version))
	if err != nil || len(raw) != keySize {
		return nil, ErrOpen
	}
	aead, err := newAEAD(raw)
	if err != nil {
		return nil, err
	}
	return &dataKey{raw: raw, aead: aead}, nil
}

func wrapAD(m MasterKey, version uint32) []byte {
	b := appendField(nil, "durward data key")
	b = appendField(b, m.id)
	return binary.BigEndian.AppendUint32(b, version)
}

// Seal encrypts plaintext for the place ad.
func (k *Keyring) Seal(plaintext []byte, ad AD) ([]byte, error) {
	out := make([]byte, headerSize, headerSize+k.keys[k.current].aead.Overhead()+len(plaintext))
	out[0] = format
	binary.BigEndian.PutUint32(out[1:], k.current)
	return k.keys[k.current].aead.Seal(out, nil, plaintext, ad.encode(k.current)), nil
}

// Open decrypts what Seal made for the same place. Every failure is ErrOpen.
func (k *Keyring) Open(sealed []byte, ad AD) ([]byte, error) {
	version, body, err := splitHeader(sealed)
	if err != nil {
		return nil, err
	}
	dk, ok := k.keys[version]
	if !ok {
		return nil, fmt.Errorf("%w: no data key %d", ErrOpen, version)
	}
	plain, err := dk.aead.Open(nil, nil, body, ad.encode(version))
	if err != nil {
		return nil, ErrOpen
	}
	return plain, nil
}

func splitHeader(sealed []byte) (version uint32, body []byte, err error) {
	if len(sealed) < headerSize || sealed[0] != format {
		return 0, nil, fmt.Errorf("%w: unknown format", ErrOpen)
	}
	return binary.BigEndian.Uint32(sealed[1:]), sealed[headerSize:], nil
}

// encode gives every place bytes of its own: each field goes with its length, so that no two places run together.
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

// Sealer returns a sealer of tokens for one purpose. Its keys are derived from the data keys and the purpose
// (HKDF-SHA256, RFC 5869): a token made for one purpose does not open for another.
func (k *Keyring) Sealer(purpose string) *TokenSealer {
	t := &TokenSealer{keys: make(map[uint32]cipher.AEAD, len(k.keys)), current: k.current}
	for version, dk := range k.keys {
		sub, err := hkdf.Key(sha256.New, dk.raw, nil, "durward token\x00"+purpose, keySize)
		if err != nil {
			panic("seal: deriving a key of fixed length: " + err.Error()) // only lengths can be wrong
		}
		aead, err := newAEAD(sub)
		if err != nil {
			panic("seal: preparing a key of fixed length: " + err.Error())
		}
		t.keys[version] = aead
	}
	return t
}
