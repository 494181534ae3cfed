package app

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/apikey"
	"github.com/durward-gateway/durward/internal/identity/bruteforce"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

const (
	keyOrganization = "0192f0c1-5bd2-7000-8000-0000000000aa"
	here            = "192.0.2.1:1234"
)

// keyStore notes which keys it is asked for.
type keyStore struct {
	storage.Store
	asked atomic.Int64
	fails atomic.Bool
}

func (s *keyStore) APIKeyByHMAC(ctx context.Context, hmac []byte) (storage.APIKeyHolder, error) {
	s.asked.Add(1)
	if s.fails.Load() {
		return storage.APIKeyHolder{}, storage.ErrUnavailable
	}
	if len(hmac) != storage.APIKeyHMACSize {
		panic("a look-up by less than the whole HMAC")
	}
	return s.Store.APIKeyByHMAC(ctx, hmac)
}

type keyring struct {
	t     testing.TB
	core  *Core
	store *keyStore
	user  storage.User
}

func newKeyring(t testing.TB) *keyring {
	t.Helper()
	core, _, counting := newAuthenticator(t)
	store := &keyStore{Store: counting.Store}
	core.Store, core.resources.store, core.Streams = store, store, new(streams.Registry)
	t.Cleanup(store.OnChange(core.resources.epochs.Bump))
	judgeAgain := &streams.Rejudger{Streams: core.Streams, Hold: core.resources.hold}
	t.Cleanup(store.OnChange(judgeAgain.Changed))
	core.bindServers(nil)
	master, err := seal.ParseMasterKey(seal.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	ring, err := seal.OpenKeyring(t.Context(), []seal.MasterKey{master}, store, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	core.digester = apikey.NewDigester(ring)
	k := &keyring{t: t, core: core, store: store}
	if _, err := store.ResolveOrganization(t.Context(), storage.OrganizationClaim{Issuer: issuerID, ID: keyOrganization}, time.Now()); err != nil {
		t.Fatal(err)
	}
	k.user, err = store.ResolveUser(t.Context(), storage.UserClaim{
		OrganizationID: keyOrganization, Issuer: issuerID, Subject: "alice", DerivedID: uuid.NewString(), Kind: storage.UserPerson, Name: "Alice", Email: "alice@example.test",
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// make stores a key with changes.
func (k *keyring) make(change func(*storage.APIKey)) (raw, id string) {
	k.t.Helper()
	secret := apikey.New()
	stored := storage.APIKey{
		ID: uuid.NewString(), OrganizationID: keyOrganization, Name: "k", Prefix: apikey.Prefix(secret), HMAC: k.core.digester.Digest(secret),
		Scopes: []string{"mcp"}, UserID: k.user.ID, CreatedBy: k.user.ID, MadeWith: "console", CreatedAt: time.Now(),
	}
	if change != nil {
		change(&stored)
	}
	if err := k.store.CreateAPIKey(k.t.Context(), stored); err != nil {
		k.t.Fatal(err)
	}
	return secret.Reveal(), stored.ID
}

func (k *keyring) use(raw, remote string) (*Call, error) {
	call := &Call{Core: k.core}
	return call, call.AuthenticateKey(k.t.Context(), raw, remote)
}

func TestCallersOfKeys(t *testing.T) {
	k := newKeyring(t)
	expires := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
	mine, mineID := k.make(func(s *storage.APIKey) { s.ExpiresAt = expires })
	group, groupID := k.make(func(s *storage.APIKey) { s.UserID, s.GroupName, s.Scopes = "", "ops", []string{"llm", "model:small"} })
	strange, strangeID := k.make(func(s *storage.APIKey) { s.Scopes = []string{"llm", "mcp", "admin"} })
	for _, tc := range []struct {
		raw  string
		want Caller
	}{
		{mine, Caller{
			Issuer: issuerID, Subject: "alice", OrganizationID: keyOrganization, UserID: k.user.ID, Name: "Alice", Email: "alice@example.test",
			ExpiresAt: expires, Key: &APIKey{ID: mineID, Name: "k"},
		}},
		{group, Caller{OrganizationID: keyOrganization, Groups: []string{"ops"}, Machine: true, Key: &APIKey{ID: groupID, Name: "k"}}},
		{strange, Caller{
			Issuer: issuerID, Subject: "alice", OrganizationID: keyOrganization, UserID: k.user.ID, Name: "Alice", Email: "alice@example.test",
			Key: &APIKey{ID: strangeID, Name: "k"},
		}},
	} {
		call, err := k.use(tc.raw, here)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, *call.Caller, cmpopts.IgnoreTypes(apikey.Scopes{}), cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
		scopes := call.Caller.Key.Scopes
		if scopes.MCP != (tc.raw == mine) || scopes.Model("small") != (tc.raw == group) || scopes.Model("large") {
			t.Errorf("scopes %+v", scopes)
		}
		if call.Agent != nil || call.Principal() == nil {
			t.Error("agent or principal")
		}
	}
}

// TestK01EveryWrongKeyIsLookedUpAlike checks that a key that nobody has costs the same look-ups, whatever is known of
// its beginning, and gets the same answer as one that is no longer good.
func TestK01EveryWrongKeyIsLookedUpAlike(t *testing.T) {
	k := newKeyring(t)
	raw, _ := k.make(nil)
	if _, err := k.use(raw, here); err != nil {
		t.Fatal(err)
	}
	sibling := apikey.New().Reveal()
	for sibling[:8] != raw[:8] { // made by hand: a key with the same beginning
		sibling = withChecksum(t, raw[:8]+sibling[8:46])
	}
	before := k.store.asked.Load()
	for i, wrong := range []string{sibling, apikey.New().Reveal(), withChecksum(t, raw[:45]+otherThan(raw[45])), apikey.New().Reveal()} {
		_, err := k.use(wrong, here)
		if !errors.Is(err, token.ErrInvalid) || err.Error() != token.ErrInvalid.Error() {
			t.Errorf("%v", err)
		}
		if n := k.store.asked.Load() - before; n != int64(i+1) {
			t.Errorf("%d look-ups after %d wrong keys", n, i+1)
		}
	}
	revoked, id := k.make(nil)
	if _, err := k.store.RevokeAPIKey(t.Context(), keyOrganization, id, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := k.use(revoked, here); !errors.Is(err, token.ErrInvalid) || err.Error() != token.ErrInvalid.Error() {
		t.Errorf("revoked: %v", err)
	}
	for _, wrong := range []string{"dw-", "dw-x", raw[:51], raw + "0", strings.Repeat("dw-", 4000)} {
		before := k.store.asked.Load()
		if _, err := k.use(wrong, here); !errors.Is(err, token.ErrInvalid) || k.store.asked.Load() != before {
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

// TestK02RevokedKeysAreRefusedAtOnce checks that a revoked key is refused from the moment on that the store has the
// revocation, whoever writes it.
func TestK02RevokedKeysAreRefusedAtOnce(t *testing.T) {
	for name, end := range map[string]func(k *keyring, id string) error{
		"revoked": func(k *keyring, id string) error {
			_, err := k.store.RevokeAPIKey(t.Context(), keyOrganization, id, time.Now())
			return err
		},
		"disabled": func(k *keyring, id string) error {
			_, err := k.store.DisableAPIKey(t.Context(), keyOrganization, id, true)
			return err
		},
		"its user revoked": func(k *keyring, _ string) error {
			_, err := k.store.RevokeUser(t.Context(), keyOrganization, k.user.ID, time.Now())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeyring(t)
			raw, id := k.make(nil)
			sibling, _ := k.make(func(s *storage.APIKey) { s.UserID, s.GroupName = "", "g" })
			for range 50 {
				if _, err := k.use(raw, here); err != nil {
					t.Fatal(err)
				}
			}
			running, _ := k.use(raw, here)
			ctx, done := running.OpenStream(t.Context(), streams.Listen)
			defer done()
			other, err := k.use(sibling, here)
			if err != nil {
				t.Fatal(err)
			}
			otherCtx, otherDone := other.OpenStream(t.Context(), streams.Listen)
			defer otherDone()
			if err := end(k, id); err != nil {
				t.Fatal(err)
			}
			if _, err := k.use(raw, here); !errors.Is(err, token.ErrInvalid) || !token.IsOver(err) {
				t.Errorf("%v", err)
			}
			if err := running.renewStanding(t.Context()); !isEnded(err, streams.Revoked) {
				t.Errorf("a call under way: %v", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(30 * time.Second):
				t.Fatal("the stream runs on")
			}
			if reason, _ := streams.EndedFor(ctx); reason != streams.Revoked {
				t.Errorf("ended for %q", reason)
			}
			late, lateDone := running.OpenStream(t.Context(), streams.Listen)
			defer lateDone()
			if reason, ended := streams.EndedFor(late); !ended || reason != streams.Revoked {
				t.Errorf("a stream that opens too late: %q", reason)
			}
			if _, err := k.use(sibling, here); err != nil || otherCtx.Err() != nil {
				t.Errorf("another key: %v, %v", err, otherCtx.Err())
			}
			if name == "disabled" {
				if _, err := k.store.DisableAPIKey(t.Context(), keyOrganization, id, false); err != nil {
					t.Fatal(err)
				}
				if _, err := k.use(raw, here); err != nil {
					t.Errorf("enabled again: %v", err)
				}
			}
		})
	}
}

func isEnded(err error, reason streams.Reason) bool {
	var ended *streams.Ended
	return errors.As(err, &ended) && ended.Reason == reason
}

func TestK03KeysWithOnePrefix(t *testing.T) {
	k := newKeyring(t)
	first, firstID := k.make(nil)
	second := withChecksum(t, first[:8]+apikey.New().Reveal()[8:46])
	secondID := uuid.NewString()
	if err := k.store.CreateAPIKey(t.Context(), storage.APIKey{
		ID: secondID, OrganizationID: keyOrganization, Name: "k", Prefix: second[:8], HMAC: k.core.digester.Digest(seal.NewSecret(second)),
		Scopes: []string{"llm"}, CreatedBy: k.user.ID, CreatedAt: time.Now(),
	}); err != nil {
		t.Fatal(err)
	}
	for raw, id := range map[string]string{first: firstID, second: secondID} {
		if call, err := k.use(raw, here); err != nil || call.Caller.Key.ID != id {
			t.Errorf("%v", err)
		}
	}
	if _, err := k.store.RevokeAPIKey(t.Context(), keyOrganization, firstID, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := k.use(first, here); !errors.Is(err, token.ErrInvalid) {
		t.Errorf("%v", err)
	}
	if call, err := k.use(second, here); err != nil || call.Caller.Key.ID != secondID {
		t.Errorf("%v", err)
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
	k := newKeyring(t)
	never, _ := k.make(nil)
	past, _ := k.make(func(s *storage.APIKey) { s.ExpiresAt = time.Now() })
	soon, _ := k.make(func(s *storage.APIKey) { s.ExpiresAt = time.Now().Add(500 * time.Millisecond) })
	if _, err := k.use(never, here); err != nil {
		t.Error(err)
	}
	if _, err := k.use(past, here); !token.IsOver(err) {
		t.Errorf("%v", err)
	}
	call, err := k.use(soon, here)
	if err != nil {
		t.Fatal(err)
	}
	ctx, done := call.OpenStream(t.Context(), streams.Listen)
	defer done()
	<-ctx.Done()
	if reason, _ := streams.EndedFor(ctx); reason != streams.TokenExpired {
		t.Errorf("ended for %q", reason)
	}
	if _, err := k.use(soon, here); !token.IsOver(err) {
		t.Errorf("%v", err)
	}
}

// TestT12WrongKeys checks that guesses are bounded before the store is asked, and lock out no key that was good from
// there, nor any from elsewhere. Keys that are over are no guesses.
func TestT12WrongKeys(t *testing.T) {
	k := newKeyring(t)
	known, _ := k.make(nil)
	fresh, _ := k.make(nil)
	over, id := k.make(nil)
	if _, err := k.use(known, here); err != nil {
		t.Fatal(err)
	}
	if _, err := k.store.RevokeAPIKey(t.Context(), keyOrganization, id, time.Now()); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if _, err := k.use(over, here); !token.IsOver(err) {
			t.Fatalf("%v", err)
		}
	}
	before := k.store.asked.Load()
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
	if told != bruteforce.PerAddress || k.store.asked.Load()-before != bruteforce.PerAddress {
		t.Errorf("%d guesses, %d look-ups", told, k.store.asked.Load()-before)
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
	if err := k.core.WrongToken("x", here, token.ErrInvalid); !errors.As(err, &many) {
		t.Errorf("tokens: %v", err)
	}
	if err := k.core.WrongToken("x", here, &token.Error{Kind: token.ErrInvalid, Over: true}); err != nil {
		t.Errorf("a token that has expired: %v", err)
	}
}

func TestKeysWhileTheStoreIsAway(t *testing.T) {
	k := newKeyring(t)
	raw, _ := k.make(nil)
	k.store.fails.Store(true)
	for range 500 { // no failure of the client's
		if _, err := k.use(raw, here); !errors.Is(err, storage.ErrUnavailable) {
			t.Fatalf("%v", err)
		}
	}
	k.store.fails.Store(false)
	if _, err := k.use(raw, here); err != nil {
		t.Error(err)
	}
}

func BenchmarkAuthenticateKey(b *testing.B) {
	k := newKeyring(b)
	raw, _ := k.make(nil)
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
					k.core.resources.keys.wrong = bruteforce.New(nil)
				} else if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
