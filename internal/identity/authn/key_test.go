package authn

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/apikey"
	"github.com/durward-gateway/durward/internal/identity/authn/authntest"
	"github.com/durward-gateway/durward/internal/identity/bruteforce"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

const here = "192.0.2.1:1234"

// keyDoor is a door for API keys.
type keyDoor struct {
	*door
	*authntest.Keys
}

func newKeyDoor(t testing.TB) *keyDoor {
	t.Helper()
	d := newDoor(t, nil)
	k := &keyDoor{d, authntest.NewKeys(t, d.store, time.Now)}
	d.digester = k.Digester
	return k
}

// use lets a key in, and checks that an error proves nobody.
func (k *keyDoor) use(raw, remote string) (*Bearer, error) {
	k.t.Helper()
	b, err := k.Key(k.t.Context(), raw, remote)
	if (err == nil) != b.Proven() || err != nil && b != (Bearer{}) {
		k.t.Errorf("%v: %+v", err, b)
	}
	return &b, err
}

func TestCallersOfKeys(t *testing.T) {
	k := newKeyDoor(t)
	expires := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
	mine, mineID := k.Make(func(s *storage.APIKey) { s.ExpiresAt = expires })
	group, groupID := k.Make(func(s *storage.APIKey) { s.UserID, s.GroupName, s.Scopes = "", "ops", []string{"llm", "model:small"} })
	strange, strangeID := k.Make(func(s *storage.APIKey) { s.Scopes = []string{"llm", "mcp", "admin"} })
	for _, tc := range []struct {
		raw  string
		want Caller
	}{
		{mine, Caller{
			Issuer: authntest.IssuerID, Subject: "alice", OrganizationID: authntest.OrganizationID, UserID: k.User.ID, Name: "Alice", Email: "alice@example.test",
			ExpiresAt: expires, Key: &APIKey{ID: mineID, Name: "k"},
		}},
		{group, Caller{OrganizationID: authntest.OrganizationID, Groups: []string{"ops"}, Machine: true, Key: &APIKey{ID: groupID, Name: "k"}}},
		{strange, Caller{
			Issuer: authntest.IssuerID, Subject: "alice", OrganizationID: authntest.OrganizationID, UserID: k.User.ID, Name: "Alice", Email: "alice@example.test",
			Key: &APIKey{ID: strangeID, Name: "k"},
		}},
	} {
		b, err := k.use(tc.raw, here)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, *b.Caller(), cmpopts.IgnoreTypes(apikey.Scopes{}), cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
		scopes := b.Caller().Key.Scopes
		if scopes.MCP != (tc.raw == mine) || scopes.Model("small") != (tc.raw == group) || scopes.Model("large") {
			t.Errorf("scopes %+v", scopes)
		}
		if b.Agent() != nil || b.Principal("") == nil {
			t.Error("agent or principal")
		}
	}
}

// TestK01EveryWrongKeyIsLookedUpAlike checks that a key that nobody has costs the same look-ups, whatever is known of
// its beginning, and gets the same answer as one that is no longer good.
func TestK01EveryWrongKeyIsLookedUpAlike(t *testing.T) {
	k := newKeyDoor(t)
	raw, _ := k.Make(nil)
	if _, err := k.use(raw, here); err != nil {
		t.Fatal(err)
	}
	sibling := apikey.New().Reveal()
	for sibling[:8] != raw[:8] { // made by hand: a key with the same beginning
		sibling = withChecksum(t, raw[:8]+sibling[8:46])
	}
	before := k.store.keys.Load()
	for i, wrong := range []string{sibling, apikey.New().Reveal(), withChecksum(t, raw[:45]+otherThan(raw[45])), apikey.New().Reveal()} {
		_, err := k.use(wrong, here)
		if !errors.Is(err, token.ErrInvalid) || err.Error() != token.ErrInvalid.Error() {
			t.Errorf("%v", err)
		}
		if n := k.store.keys.Load() - before; n != int64(i+1) {
			t.Errorf("%d look-ups after %d wrong keys", n, i+1)
		}
	}
	revoked, id := k.Make(nil)
	if _, err := k.store.RevokeAPIKey(t.Context(), authntest.OrganizationID, id, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := k.use(revoked, here); !errors.Is(err, token.ErrInvalid) || err.Error() != token.ErrInvalid.Error() {
		t.Errorf("revoked: %v", err)
	}
	for _, wrong := range []string{"dw-", "dw-x", raw[:51], raw + "0", strings.Repeat("dw-", 4000)} {
		before := k.store.keys.Load()
		if _, err := k.use(wrong, here); !errors.Is(err, token.ErrInvalid) || k.store.keys.Load() != before {
			t.Errorf("%.60q: %v", wrong, err)
		}
	}
}

func otherThan(c byte) string {
	if c == 'a' {
		return "b"
	}
	return "a"
}

// withChecksum completes the body of a key.
func withChecksum(t *testing.T, body string) string {
	t.Helper()
	const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	sum := crc32.ChecksumIEEE([]byte(body))
	text := make([]byte, 6)
	for i := range text {
		text[5-i] = digits[sum%62]
		sum /= 62
	}
	if err := apikey.Check(body + string(text)); err != nil {
		t.Fatal(err)
	}
	return body + string(text)
}

// TestRotatedKey checks that the former secret of a key is refused at once, to calls under way too, and that going on with it
// counts as guessing: each look-up costs.
func TestRotatedKey(t *testing.T) {
	k := newKeyDoor(t)
	raw, id := k.Make(nil)
	running, err := k.use(raw, here)
	if err != nil {
		t.Fatal(err)
	}
	next := apikey.New()
	if _, err := k.store.UpdateAPIKey(t.Context(), authntest.OrganizationID, id, func(s *storage.APIKey) error { s.HMAC = k.Digester.Digest(next); return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := k.use(raw, here); !errors.Is(err, token.ErrInvalid) {
		t.Errorf("%v", err)
	}
	if err := k.Renew(t.Context(), running); !errors.Is(err, token.ErrInvalid) {
		t.Errorf("a call under way: %v", err)
	}
	if b, err := k.use(next.Reveal(), here); err != nil || b.Caller().Key.ID != id {
		t.Errorf("the new one: %v", err)
	}
	var limited *TooManyFailures
	for range 1000 {
		if _, err = k.use(raw, "198.51.100.7:1"); errors.As(err, &limited) {
			break
		}
	}
	if limited == nil {
		t.Errorf("it may be tried without an end: %v", err)
	}
}

// TestKeyUses checks that a use of a key is noted, seldom, and that no key that is refused is noted.
func TestKeyUses(t *testing.T) {
	k := newKeyDoor(t)
	raw, id := k.Make(nil)
	over, overID := k.Make(func(s *storage.APIKey) { s.Disabled = true })
	used := func(id string) time.Time {
		t.Helper()
		k.memory.notes.Wait()
		key, err := k.store.APIKey(t.Context(), authntest.OrganizationID, id)
		if err != nil {
			t.Fatal(err)
		}
		return key.UsedAt
	}
	if at := used(id); !at.IsZero() {
		t.Errorf("used before its use: %s", at)
	}
	for range 100 {
		if _, err := k.use(raw, here); err != nil {
			t.Fatal(err)
		}
	}
	first := used(id)
	if n := k.store.noted.Load(); n != 1 {
		t.Errorf("100 uses were noted %d times", n)
	}
	if first.IsZero() || time.Since(first) > time.Hour {
		t.Errorf("used at %s", first)
	}
	// Whatever makes the state be read again, a note is not repeated for a while.
	if _, err := k.store.UpdateAPIKey(t.Context(), authntest.OrganizationID, id, func(s *storage.APIKey) error { s.Name = "x"; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := k.use(raw, here); err != nil {
		t.Fatal(err)
	}
	if at := used(id); !at.Equal(first) {
		t.Errorf("noted again at once: %s", at)
	}
	_, _ = k.use(over, here)
	if at := used(overID); !at.IsZero() {
		t.Errorf("a refused key was used at %s", at)
	}
	k.turned.Add(int64(keyUsesEvery + time.Second))
	if _, err := k.use(raw, here); err != nil {
		t.Fatal(err)
	}
	if at := used(id); !at.After(first.Add(keyUsesEvery)) {
		t.Errorf("a later use is not noted: %s after %s", at, first)
	}
	k.memory.noting.Lock()
	k.memory.closed = true
	k.memory.noting.Unlock()
	k.memory.noteUse(t.Context(), &knownKey{key: storage.APIKey{ID: overID, OrganizationID: authntest.OrganizationID}})
	if at := used(overID); !at.IsZero() {
		t.Error("a closed memory writes")
	}
}

// TestK02RevokedKeysAreRefusedAtOnce checks that a revoked key is refused from the moment on that the store has the
// revocation, whoever writes it.
func TestK02RevokedKeysAreRefusedAtOnce(t *testing.T) {
	for name, end := range map[string]func(k *keyDoor, id string) error{
		"revoked": func(k *keyDoor, id string) error {
			_, err := k.store.RevokeAPIKey(t.Context(), authntest.OrganizationID, id, time.Now())
			return err
		},
		"disabled": func(k *keyDoor, id string) error {
			_, err := k.store.UpdateAPIKey(t.Context(), authntest.OrganizationID, id, func(k *storage.APIKey) error { k.Disabled = true; return nil })
			return err
		},
		"its user revoked": func(k *keyDoor, _ string) error {
			_, err := k.store.RevokeUser(t.Context(), authntest.OrganizationID, k.User.ID, time.Now())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeyDoor(t)
			raw, id := k.Make(nil)
			sibling, _ := k.Make(func(s *storage.APIKey) { s.UserID, s.GroupName = "", "g" })
			for range 50 {
				if _, err := k.use(raw, here); err != nil {
					t.Fatal(err)
				}
			}
			running, _ := k.use(raw, here)
			if err := k.Renew(t.Context(), running); err != nil {
				t.Fatal(err)
			}
			if err := end(k, id); err != nil {
				t.Fatal(err)
			}
			_, err := k.use(raw, here)
			if !errors.Is(err, token.ErrInvalid) || !token.IsOver(err) {
				t.Errorf("%v", err)
			}
			if who := RefusedCaller(err); who == nil || who.Key.ID != id || who.OrganizationID != authntest.OrganizationID {
				t.Errorf("the refusal names %+v", who)
			}
			if err := k.Renew(t.Context(), running); !errors.Is(err, token.ErrInvalid) {
				t.Errorf("a call under way: %v", err)
			}
			if _, err := k.use(sibling, here); err != nil {
				t.Errorf("another key: %v", err)
			}
			if name == "disabled" {
				if _, err := k.store.UpdateAPIKey(t.Context(), authntest.OrganizationID, id, func(k *storage.APIKey) error { k.Disabled = false; return nil }); err != nil {
					t.Fatal(err)
				}
				if _, err := k.use(raw, here); err != nil {
					t.Errorf("enabled again: %v", err)
				}
			}
		})
	}
}

func TestK03KeysWithOnePrefix(t *testing.T) {
	k := newKeyDoor(t)
	first, firstID := k.Make(nil)
	second := withChecksum(t, first[:8]+apikey.New().Reveal()[8:46])
	secondID := uuid.NewString()
	if err := k.store.CreateAPIKey(t.Context(), storage.APIKey{
		ID: secondID, OrganizationID: authntest.OrganizationID, Name: "k", Prefix: second[:8], HMAC: k.Digester.Digest(seal.NewSecret(second)),
		Scopes: []string{"llm"}, CreatedBy: k.User.ID, CreatedAt: time.Now(),
	}); err != nil {
		t.Fatal(err)
	}
	for raw, id := range map[string]string{first: firstID, second: secondID} {
		if b, err := k.use(raw, here); err != nil || b.Caller().Key.ID != id {
			t.Errorf("%v", err)
		}
	}
	if _, err := k.store.RevokeAPIKey(t.Context(), authntest.OrganizationID, firstID, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := k.use(first, here); !errors.Is(err, token.ErrInvalid) {
		t.Errorf("%v", err)
	}
	if b, err := k.use(second, here); err != nil || b.Caller().Key.ID != secondID {
		t.Errorf("%v", err)
	}
}

// TestReasonsOfKeys checks that the refusal of a key that was good says why it is not any more.
func TestReasonsOfKeys(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for want, holder := range map[string]storage.APIKeyHolder{
		"the API key has expired":        {APIKey: storage.APIKey{ExpiresAt: at}},
		"the API key was revoked":        {APIKey: storage.APIKey{RevokedAt: at, Disabled: true, ExpiresAt: at}},
		"the API key is disabled":        {APIKey: storage.APIKey{Disabled: true, ExpiresAt: at}},
		"the API key's user was revoked": {APIKey: storage.APIKey{RevokedAt: at}, User: &storage.User{RevokedAt: at}},
		"the API key's agent is gone":    {APIKey: storage.APIKey{AgentID: "a", RevokedAt: at}},
	} {
		var refusal *token.Error
		if err := newKnownKey(holder, at).good(at); !errors.As(err, &refusal) || refusal.Reason != want || !token.IsOver(err) || !errors.Is(err, token.ErrInvalid) {
			t.Errorf("%v, want %s", refusal, want)
		}
	}
}

// TestK04Expiry checks that keys expire to the moment, however long the key has been in memory.
func TestK04Expiry(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	known := newKnownKey(storage.APIKeyHolder{APIKey: storage.APIKey{ExpiresAt: at}}, at)
	for offset, good := range map[time.Duration]bool{-time.Second: true, -1: true, 0: false, time.Second: false} {
		if err := known.good(at.Add(offset)); (err == nil) != good || !good && !errors.Is(err, token.ErrInvalid) {
			t.Errorf("%s: %v", offset, err)
		}
	}
	k := newKeyDoor(t)
	never, _ := k.Make(nil)
	past, _ := k.Make(func(s *storage.APIKey) { s.ExpiresAt = time.Now() })
	soon, _ := k.Make(func(s *storage.APIKey) { s.ExpiresAt = time.Now().Add(time.Hour) })
	for range 2 {
		if _, err := k.use(never, here); err != nil {
			t.Error(err)
		}
		if _, err := k.use(past, here); !token.IsOver(err) {
			t.Errorf("%v", err)
		}
		if _, err := k.use(soon, here); err != nil {
			t.Error(err)
		}
	}
	k.turned.Store(int64(time.Hour))
	if _, err := k.use(soon, here); !token.IsOver(err) {
		t.Errorf("%v", err)
	}
	if _, err := k.use(never, here); err != nil {
		t.Error(err)
	}
}

// TestT12WrongKeys checks that guesses are bounded before the store is asked, and lock out no key that was good from
// there, nor any from elsewhere. Keys that are over are no guesses.
func TestT12WrongKeys(t *testing.T) {
	k := newKeyDoor(t)
	known, _ := k.Make(nil)
	fresh, _ := k.Make(nil)
	over, id := k.Make(nil)
	if _, err := k.use(known, here); err != nil {
		t.Fatal(err)
	}
	if _, err := k.store.RevokeAPIKey(t.Context(), authntest.OrganizationID, id, time.Now()); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if _, err := k.use(over, here); !token.IsOver(err) {
			t.Fatalf("%v", err)
		}
	}
	before := k.store.keys.Load()
	var many *TooManyFailures
	told := 0
	for i := range 500 {
		_, err := k.use(apikey.New().Reveal(), fmt.Sprintf("192.0.2.1:%d", 1+i))
		switch {
		case errors.As(err, &many):
			if many.Wait <= 0 || many.Wait > 61*time.Second {
				t.Fatalf("wait %s", many.Wait)
			}
		case errors.Is(err, token.ErrInvalid):
			told++
		default:
			t.Fatal(err)
		}
	}
	if told != bruteforce.PerAddress || k.store.keys.Load()-before != bruteforce.PerAddress {
		t.Errorf("%d guesses, %d look-ups", told, k.store.keys.Load()-before)
	}
	settled := func() bool { _, err := k.use(known, here); return err == nil }
	if !settled() {
		t.Error("a key that was good from there is locked out")
	}
	if _, err := k.use(fresh, here); !errors.As(err, &many) {
		t.Errorf("a key that was never seen there: %v", err)
	}
	if _, err := k.use(fresh, "192.0.2.2:1"); err != nil {
		t.Errorf("from another address: %v", err)
	}
	k.settles(&k.store.keys, func() {
		if _, err := k.use(fresh, "192.0.2.2:1"); err != nil {
			t.Error(err)
		}
	})
	if _, err := k.use(fresh, here); !errors.As(err, &many) {
		t.Errorf("a key that is known from another address: %v", err)
	}
	if err := k.WrongToken("x", here, token.ErrInvalid); !errors.As(err, &many) {
		t.Errorf("tokens: %v", err)
	}
	if err := k.WrongToken("x", here, &token.Error{Kind: token.ErrInvalid, Over: true}); err != nil {
		t.Errorf("a token that has expired: %v", err)
	}
}

func TestKeysWhileTheStoreIsAway(t *testing.T) {
	k := newKeyDoor(t)
	raw, _ := k.Make(nil)
	k.store.keysFail = storage.ErrUnavailable
	for range 500 { // no failure of the client's
		if _, err := k.use(raw, here); !errors.Is(err, storage.ErrUnavailable) {
			t.Fatalf("%v", err)
		}
	}
	k.store.keysFail = nil
	if _, err := k.use(raw, here); err != nil {
		t.Error(err)
	}
}

// TestKeyThatMovesAway checks that a key whose record names another organization now is not known.
func TestKeyThatMovesAway(t *testing.T) {
	k := newKeyDoor(t)
	raw, _ := k.Make(nil)
	deadline := time.Now().Add(30 * time.Second)
	for looks := int64(0); looks != 1; { // its state's, when its home is kept
		if time.Now().After(deadline) {
			t.Fatal("the key is never kept")
		}
		k.epochs.Bump(authntest.OrganizationID)
		before := k.store.keys.Load()
		if _, err := k.use(raw, here); err != nil {
			t.Fatal(err)
		}
		looks = k.store.keys.Load() - before
	}
	k.store.keysOf = "0192f0c1-5bd2-7000-8000-0000000000bb"
	k.epochs.Bump(authntest.OrganizationID)
	if _, err := k.use(raw, here); !errors.Is(err, token.ErrInvalid) || RefusedCaller(err) != nil {
		t.Errorf("%v", err)
	}
}

func BenchmarkKey(b *testing.B) {
	k := newKeyDoor(b)
	raw, _ := k.Make(nil)
	for _, name := range []string{"good", "wrong"} {
		presented := raw
		if name == "wrong" {
			presented = apikey.New().Reveal()
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := k.use(presented, here)
				if name == "wrong" {
					k.memory.wrong = bruteforce.New(nil)
				} else if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
