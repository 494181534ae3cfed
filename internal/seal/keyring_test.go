package seal

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// memoryKeys is a storage.DataKeys. before runs ahead of each AddDataKey.
type memoryKeys struct {
	mu     sync.Mutex
	keys   []storage.DataKey
	before func()
}

func (m *memoryKeys) DataKeys(context.Context) ([]storage.DataKey, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]storage.DataKey(nil), m.keys...), nil
}

func (m *memoryKeys) AddDataKey(_ context.Context, k storage.DataKey) error {
	if m.before != nil {
		m.before()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, have := range m.keys {
		if have.Version == k.Version {
			return &storage.ConflictError{Field: "version"}
		}
	}
	m.keys = append(m.keys, k)
	return nil
}

func newMaster(t testing.TB) MasterKey {
	t.Helper()
	m, err := ParseMasterKey(NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newKeyring(t testing.TB) *Keyring {
	t.Helper()
	k, err := OpenKeyring(t.Context(), []MasterKey{newMaster(t)}, &memoryKeys{}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

var place = AD{Table: "connections", Column: "credential", Organization: "o1", User: "u1", Record: "r1"}

func TestParseMasterKey(t *testing.T) {
	raw, err := base64.StdEncoding.DecodeString(NewMasterKey().Reveal())
	if err != nil {
		t.Fatal(err)
	}
	raw[0], raw[1] = 0xfb, 0xff // has + and / in base64
	var id string
	for _, text := range []string{
		base64.StdEncoding.EncodeToString(raw), base64.RawStdEncoding.EncodeToString(raw),
		base64.URLEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw),
		hex.EncodeToString(raw), strings.ToUpper(hex.EncodeToString(raw)), " " + hex.EncodeToString(raw) + "\r\n",
	} {
		m, err := ParseMasterKey(NewSecret(text))
		if err != nil {
			t.Fatalf("good key refused: %v", err)
		}
		if id == "" {
			id = m.ID()
		}
		if m.ID() != id || len(id) != 16 {
			t.Errorf("ID = %q, want %q", m.ID(), id)
		}
	}
	counted := make([]byte, 32)
	for i := range counted {
		counted[i] = byte(3 * i)
	}
	for name, text := range map[string]string{
		"empty":                  "",
		"blank":                  " \n",
		"L10 secret":             "secret",
		"L10 changeme":           "changeme",
		"L10 placeholder":        "__REPLACE_ME__",
		"L10 all zero hex":       strings.Repeat("00", 32),
		"L10 all zero base64":    base64.StdEncoding.EncodeToString(make([]byte, 32)),
		"L10 repeated byte":      strings.Repeat("ab", 32),
		"L10 repeated pattern":   strings.Repeat("0123456789abcdef", 4),
		"L10 counted":            hex.EncodeToString(counted),
		"L10 typed text":         base64.StdEncoding.EncodeToString([]byte("correct horse battery staple 42!")),
		"L10 short":              base64.StdEncoding.EncodeToString(raw[:31]),
		"long":                   base64.StdEncoding.EncodeToString(append(bytes.Clone(raw), 1)),
		"hex with a g":           "g" + hex.EncodeToString(raw)[1:],
		"line break for a digit": base64.RawStdEncoding.EncodeToString(raw[:31])[:20] + "\n" + base64.RawStdEncoding.EncodeToString(raw[:31])[20:],
		"line break inside":      base64.RawStdEncoding.EncodeToString(raw)[:20] + "\n" + base64.RawStdEncoding.EncodeToString(raw)[20:],
	} {
		_, err := ParseMasterKey(NewSecret(text))
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		if !strings.Contains(err.Error(), "openssl rand -base64 32") {
			t.Errorf("%s: error does not say how to make a key: %v", name, err)
		}
		if trimmed := strings.TrimSpace(text); trimmed != "" && strings.Contains(err.Error(), trimmed) && trimmed != "secret" {
			t.Errorf("%s: error repeats the key: %v", name, err)
		}
	}
	for range 1000 {
		newMaster(t)
	}
}

func TestMasterKeyNeverShows(t *testing.T) {
	text := NewMasterKey()
	m, err := ParseMasterKey(text)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := base64.StdEncoding.DecodeString(text.Reveal())
	for _, verb := range []string{"%v", "%+v", "%#v", "%x"} {
		out := fmt.Sprintf(verb, m)
		for _, form := range []string{text.Reveal(), hex.EncodeToString(raw), strings.Trim(fmt.Sprint(raw), "[]")} {
			if strings.Contains(out, form) {
				t.Errorf("%s shows the key", verb)
			}
		}
	}
}

func TestOpenKeyring(t *testing.T) {
	ctx := t.Context()
	store := &memoryKeys{}
	old, current := newMaster(t), newMaster(t)
	first, err := OpenKeyring(ctx, []MasterKey{old}, store, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if len(store.keys) != 1 || store.keys[0].Version != 1 || store.keys[0].MasterKeyID != old.ID() {
		t.Fatalf("stored %+v", store.keys)
	}
	sealed, err := first.Seal([]byte("hello"), place)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := OpenKeyring(ctx, nil, store, time.Now); err == nil {
		t.Error("opened without a master key")
	}
	if _, err := OpenKeyring(ctx, []MasterKey{current}, store, time.Now); err == nil || !strings.Contains(err.Error(), old.ID()) {
		t.Errorf("master key missing: %v", err)
	}
	both, err := OpenKeyring(ctx, []MasterKey{current, old}, store, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := both.Open(sealed, place); err != nil || string(got) != "hello" {
		t.Errorf("Open = %q, %v", got, err)
	}

	// A second data key: new values are sealed with it, old ones still open.
	if err := store.AddDataKey(ctx, NewDataKey(current, 2, time.Now().Add(-settleTime))); err != nil {
		t.Fatal(err)
	}
	two, err := OpenKeyring(ctx, []MasterKey{current, old}, store, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := two.Open(sealed, place); err != nil || string(got) != "hello" {
		t.Errorf("Open = %q, %v", got, err)
	}
	newer, err := two.Seal([]byte("hello"), place)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := both.Open(newer, place); err != nil || string(got) != "hello" {
		t.Errorf("a data key that was added meanwhile: %q, %v", got, err)
	}
	// Other nodes can open it: a missing key here says nothing about the value.
	if _, err := first.Open(newer, place); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, ErrOpen) {
		t.Errorf("opened with a data key whose master key is not there: %v", err)
	}
	token := first.Sealer("session").Seal([]byte("s"), nil)
	if got, err := two.Sealer("session").Open(token, nil); err != nil || string(got) != "s" {
		t.Errorf("older token: %q, %v", got, err)
	}

	for name, change := range map[string]func(k *storage.DataKey){
		"wrapped cut":      func(k *storage.DataKey) { k.Wrapped = k.Wrapped[:len(k.Wrapped)-1] },
		"wrapped empty":    func(k *storage.DataKey) { k.Wrapped = nil },
		"wrapped changed":  func(k *storage.DataKey) { k.Wrapped = bytes.Clone(k.Wrapped); k.Wrapped[20] ^= 1 },
		"version moved":    func(k *storage.DataKey) { k.Version = 3 },
		"version zero":     func(k *storage.DataKey) { k.Version = 0 },
		"another's master": func(k *storage.DataKey) { k.MasterKeyID = current.ID() },
	} {
		broken := &memoryKeys{keys: append([]storage.DataKey(nil), store.keys[:1]...)}
		change(&broken.keys[0])
		if _, err := OpenKeyring(ctx, []MasterKey{current, old}, broken, time.Now); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}

// Two nodes that start on an empty store at the same moment end up with the same key.
func TestOpenKeyringRace(t *testing.T) {
	store := &memoryKeys{}
	m := newMaster(t)
	var winner *Keyring
	store.before = func() {
		store.before = nil
		var err error
		if winner, err = OpenKeyring(t.Context(), []MasterKey{m}, store, time.Now); err != nil {
			t.Error(err)
		}
	}
	loser, err := OpenKeyring(t.Context(), []MasterKey{m}, store, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := winner.Seal([]byte("x"), place)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loser.Open(sealed, place); err != nil {
		t.Error(err)
	}
}

func TestSealBinding(t *testing.T) {
	k := newKeyring(t)
	plain := []byte("a refresh token of some length")
	sealed, err := k.Seal(plain, place)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := k.Open(sealed, place); err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("Open = %q, %v", got, err)
	}
	again, err := k.Seal(plain, place)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(sealed, again) {
		t.Error("the same ciphertext twice")
	}
	refused := func(name string, sealed []byte, ad AD) {
		t.Helper()
		if got, err := k.Open(sealed, ad); !errors.Is(err, ErrOpen) || got != nil {
			t.Errorf("%s: Open = %q, %v", name, got, err)
		}
	}
	for n := range sealed {
		refused(fmt.Sprintf("L11 truncated to %d", n), sealed[:n], place)
	}
	refused("L11 longer", append(bytes.Clone(sealed), 0), place)
	for bit := range len(sealed) * 8 {
		changed := bytes.Clone(sealed)
		changed[bit/8] ^= 1 << (bit % 8)
		refused(fmt.Sprintf("L11 bit %d flipped", bit), changed, place)
	}
	for name, change := range map[string]func(*AD){
		"L11 another row":          func(a *AD) { a.Record = "r2" },
		"L11 another column":       func(a *AD) { a.Column = "client_secret" },
		"L11 another table":        func(a *AD) { a.Table = "servers" },
		"L11 another organization": func(a *AD) { a.Organization = "o2" },
		"L11 another user":         func(a *AD) { a.User = "u2" },
		"L11 fields run together":  func(a *AD) { a.Organization, a.User = "o1u", "1" },
		"L11 field emptied":        func(a *AD) { a.Organization, a.User = "", "o1u1" },
	} {
		moved := place
		change(&moved)
		refused(name, sealed, moved)
	}
	// The version is authenticated: with the same key under two numbers, the number still cannot be changed.
	k.known.Load().keys[2] = k.known.Load().keys[1]
	old := bytes.Clone(sealed)
	old[4] = 2
	refused("L11 another key version", old, place)
}

func TestTokenSealer(t *testing.T) {
	k := newKeyring(t)
	s := k.Sealer("session")
	token := s.Seal([]byte("payload"), []byte("alice"))
	if strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		t.Errorf("token %q is not base64url", token)
	}
	if got, err := k.Sealer("session").Open(token, []byte("alice")); err != nil || string(got) != "payload" {
		t.Fatalf("Open = %q, %v", got, err)
	}
	refused := func(name string, s *TokenSealer, token, ad string) {
		t.Helper()
		if got, err := s.Open(token, []byte(ad)); !errors.Is(err, ErrOpen) || got != nil {
			t.Errorf("%s: Open = %q, %v", name, got, err)
		}
	}
	refused("another purpose", k.Sealer("undo"), token, "alice")
	refused("another ad", s, token, "bob")
	refused("another keyring", newKeyring(t).Sealer("session"), token, "alice")
	refused("empty", s, "", "alice")
	refused("line break", s, token[:10]+"\n"+token[10:], "alice")
	refused("padded", s, token+"=", "alice")
	for n := range token {
		refused("truncated", s, token[:n], "alice")
		for _, c := range []byte("A_z9") {
			if token[n] != c {
				refused("changed", s, token[:n]+string(c)+token[n+1:], "alice")
			}
		}
	}
	sealed, err := k.Seal([]byte("payload"), place)
	if err != nil {
		t.Fatal(err)
	}
	refused("a record as a token", s, tokenText.EncodeToString(sealed), "")
}

func FuzzOpen(f *testing.F) {
	k := newKeyring(f)
	sealed, err := k.Seal([]byte("hello"), place)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(nil))
	f.Add(sealed[:5])
	f.Add(sealed[:20])
	f.Add([]byte{1, 0, 0, 0, 1})
	f.Add([]byte{1, 255, 255, 255, 255, 0})
	s := k.Sealer("session")
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := k.Open(b, place); !errors.Is(err, ErrOpen) {
			t.Errorf("opened garbage: %v", err)
		}
		if _, err := s.Open(string(b), nil); !errors.Is(err, ErrOpen) {
			t.Errorf("opened garbage: %v", err)
		}
		if _, err := s.Open(tokenText.EncodeToString(b), nil); !errors.Is(err, ErrOpen) {
			t.Errorf("opened garbage: %v", err)
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	k := newKeyring(b)
	sealed, err := k.Seal(make([]byte, 1024), place)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Open(sealed, place); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTokenOpen(b *testing.B) {
	s := newKeyring(b).Sealer("session")
	token := s.Seal(make([]byte, 100), []byte("ad"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Open(token, []byte("ad")); err != nil {
			b.Fatal(err)
		}
	}
}
