package storagetest

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// newAPIKey returns a user's key with every member set, not stored.
func newAPIKey(organization, userID string) storage.APIKey {
	id := newID()
	hmac := sha256.Sum256([]byte(id))
	return storage.APIKey{ID: id, OrganizationID: organization, Name: "Key " + id[30:], Prefix: "dw-12345", HMAC: hmac[:],
		Scopes: []string{"llm", "model:fast"}, UserID: userID, CreatedBy: newID(), MadeWith: "console", CreatedAt: start, ExpiresAt: start.Add(time.Hour), Disabled: true}
}

// apiKey stores a valid key.
func (b *bundle) apiKey(t *testing.T, organization, userID string) storage.APIKey {
	t.Helper()
	k := newAPIKey(organization, userID)
	k.Disabled = false
	noError(t, b.CreateAPIKey(t.Context(), k))
	return k
}

func testAPIKeys(t *testing.T, b *bundle) {
	ctx := t.Context()
	full := newAPIKey(b.orgA, b.userA1)
	group := newAPIKey(b.orgA, "")
	group.GroupName, group.CreatedAt = "crew", start.Add(time.Second)
	bare := storage.APIKey{ID: newID(), OrganizationID: b.orgA, HMAC: newAPIKey(b.orgA, "").HMAC, CreatedAt: start.Add(2 * time.Second)}
	other := newAPIKey(b.orgA, b.userA2)
	other.CreatedAt = start.Add(3 * time.Second)
	user, err := b.User(ctx, b.orgA, b.userA1)
	noError(t, err)
	for _, want := range []storage.APIKey{full, group, bare, other} {
		noError(t, b.CreateAPIKey(ctx, want))
		got, err := b.APIKey(ctx, b.orgA, want.ID)
		noError(t, err)
		equal(t, got, want)
		holder, err := b.APIKeyByHMAC(ctx, want.HMAC)
		noError(t, err)
		equal(t, holder.APIKey, want)
		equal(t, holder.User == nil, want.UserID == "")
	}
	holder, err := b.APIKeyByHMAC(ctx, full.HMAC)
	noError(t, err)
	equal(t, *holder.User, user)

	all, err := b.APIKeys(ctx, b.orgA)
	noError(t, err)
	equal(t, all, []storage.APIKey{other, bare, group, full})
	own, err := b.UserAPIKeys(ctx, b.orgA, b.userA1)
	noError(t, err)
	equal(t, own, []storage.APIKey{full})
	for _, user := range []string{"", b.userB1, b.unknown} {
		own, err := b.UserAPIKeys(ctx, b.orgA, user)
		noError(t, err)
		equal(t, len(own), 0) // no user owns the keys of the organization
	}

	// An HMAC finds a key only as a whole.
	for _, hmac := range [][]byte{nil, {}, full.HMAC[:31], append(full.HMAC[:32:32], 0), make([]byte, 32), []byte(full.Prefix)} {
		_, err := b.APIKeyByHMAC(ctx, hmac)
		wantError(t, err, storage.ErrNotFound)
	}
	for _, size := range []int{0, 31, 33} {
		k := newAPIKey(b.orgA, "")
		k.HMAC = make([]byte, size)
		if err := b.CreateAPIKey(ctx, k); err == nil {
			t.Errorf("a HMAC of %d bytes was stored", size)
		}
	}
	for _, organization := range []string{b.orgA, b.orgB} {
		k := newAPIKey(organization, "")
		k.HMAC = full.HMAC
		wantConflict(t, b.CreateAPIKey(ctx, k), "hmac")
		k = newAPIKey(organization, "")
		k.ID = full.ID
		wantConflict(t, b.CreateAPIKey(ctx, k), "id")
	}
	for _, k := range []storage.APIKey{newAPIKey(b.orgA, b.unknown), newAPIKey(b.orgA, b.userB1), newAPIKey(b.unknown, "")} {
		wantError(t, b.CreateAPIKey(ctx, k), storage.ErrNotFound)
	}
	got, err := b.APIKeys(ctx, b.orgA)
	noError(t, err)
	equal(t, got, all)
}

// testAPIKeyOfAgent checks that a key made for an agent ends with it, and never becomes a key made for none.
func testAPIKeyOfAgent(t *testing.T, b *bundle) {
	ctx := t.Context()
	agent := b.agent(t, b.orgA, "Of keys")
	made := newAPIKey(b.orgA, b.userA1)
	made.AgentID = agent.ID
	noError(t, b.CreateAPIKey(ctx, made))
	holder, err := b.APIKeyByHMAC(ctx, made.HMAC)
	noError(t, err)
	equal(t, holder.APIKey, made)
	equal(t, holder.Agent, &agent)
	for _, id := range []string{b.unknown, b.agent(t, b.orgB, "Foreign").ID} {
		k := newAPIKey(b.orgA, b.userA1)
		k.AgentID = id
		wantError(t, b.CreateAPIKey(ctx, k), storage.ErrNotFound)
	}
	other := b.apiKey(t, b.orgA, b.userA1)
	noError(t, b.DeleteAgent(ctx, b.orgA, agent.ID, b.userA2, start.Add(time.Minute)))
	holder, err = b.APIKeyByHMAC(ctx, made.HMAC)
	noError(t, err)
	made.RevokedAt = start.Add(time.Minute)
	equal(t, holder.APIKey, made)
	equal(t, holder.Agent, (*storage.Agent)(nil))
	holder, err = b.APIKeyByHMAC(ctx, other.HMAC)
	noError(t, err)
	equal(t, holder.APIKey, other)
}

// testAPIKeyPrefixes checks K03: keys that share a prefix have nothing in common.
func testAPIKeyPrefixes(t *testing.T, b *bundle) {
	ctx := t.Context()
	first, second := b.apiKey(t, b.orgA, b.userA1), b.apiKey(t, b.orgA, b.userA1)
	equal(t, first.Prefix, second.Prefix)
	_, err := b.RevokeAPIKey(ctx, b.orgA, first.ID, start)
	noError(t, err)
	for _, k := range []storage.APIKey{first, second} {
		holder, err := b.APIKeyByHMAC(ctx, k.HMAC)
		noError(t, err)
		equal(t, holder.ID, k.ID)
		equal(t, holder.Valid(start), k.ID == second.ID)
	}
}

func testAPIKeyValid(t *testing.T, _ *bundle) {
	for name, c := range map[string]struct {
		key  storage.APIKey
		want bool
	}{
		"no expiry":                {storage.APIKey{}, true},
		"K04 before expiry":        {storage.APIKey{ExpiresAt: start.Add(time.Microsecond)}, true},
		"K04 at expiry":            {storage.APIKey{ExpiresAt: start}, false},
		"K04 after expiry":         {storage.APIKey{ExpiresAt: start.Add(-time.Second)}, false},
		"disabled":                 {storage.APIKey{Disabled: true}, false},
		"revoked":                  {storage.APIKey{RevokedAt: start.Add(-time.Hour)}, false},
		"revoked by a clock ahead": {storage.APIKey{RevokedAt: start.Add(time.Hour)}, false},
	} {
		if got := c.key.Valid(start); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func testAPIKeyLife(t *testing.T, b *bundle) {
	ctx := t.Context()
	want := b.apiKey(t, b.orgA, b.userA1)
	stored := func() {
		t.Helper()
		got, err := b.APIKey(ctx, b.orgA, want.ID)
		noError(t, err)
		equal(t, got, want)
	}
	for _, disabled := range []bool{true, true, false, false, true} {
		got, err := b.UpdateAPIKey(ctx, b.orgA, want.ID, func(k *storage.APIKey) error { k.Disabled = disabled; return nil })
		noError(t, err)
		want.Disabled = disabled
		equal(t, got, want)
		stored()
	}
	// K05: a revocation is final, and a second one changes nothing.
	want.RevokedAt = start.Add(time.Minute)
	for _, at := range []time.Time{start.Add(time.Minute + 7), start.Add(time.Hour), start} {
		got, err := b.RevokeAPIKey(ctx, b.orgA, want.ID, at)
		noError(t, err)
		equal(t, got, want)
		got, err = b.RevokeUserAPIKey(ctx, b.orgA, b.userA1, want.ID, at)
		noError(t, err)
		equal(t, got, want)
	}
	got, err := b.UpdateAPIKey(ctx, b.orgA, want.ID, func(k *storage.APIKey) error { k.Disabled = false; return nil })
	noError(t, err)
	want.Disabled = false
	equal(t, got, want)
	stored()

	own, shared := b.apiKey(t, b.orgA, b.userA1), b.apiKey(t, b.orgA, "")
	for _, c := range [][2]string{{b.userA2, own.ID}, {"", own.ID}, {b.userA1, shared.ID}, {"", shared.ID}, {b.userA1, b.unknown}} {
		_, err := b.RevokeUserAPIKey(ctx, b.orgA, c[0], c[1], start)
		wantError(t, err, storage.ErrNotFound)
	}
	got, err = b.RevokeUserAPIKey(ctx, b.orgA, b.userA1, own.ID, start)
	noError(t, err)
	own.RevokedAt = start
	equal(t, got, own)
	got, err = b.APIKey(ctx, b.orgA, shared.ID)
	noError(t, err)
	equal(t, got, shared)
}

// testUpdateAPIKey checks that an edit changes what it may and nothing else, that a new secret replaces the former one, and
// that only a change is reported.
func testUpdateAPIKey(t *testing.T, b *bundle) {
	ctx := t.Context()
	want := b.apiKey(t, b.orgA, b.userA1)
	told := 0
	defer b.OnChange(func(string) { told++ })()
	former, next := want.HMAC, newAPIKey(b.orgA, "").HMAC
	for range 2 {
		got, err := b.UpdateAPIKey(ctx, b.orgA, want.ID, func(k *storage.APIKey) error {
			k.Name, k.Scopes, k.ExpiresAt, k.Disabled, k.Prefix, k.HMAC = "Other", []string{"llm"}, start.Add(2*time.Hour+time.Nanosecond), true, "dw-67890", next
			k.UserID, k.GroupName, k.AgentID, k.MadeWith, k.RevokedAt, k.CreatedAt, k.UsedAt = b.userA2, "crew", b.unknown, "other", start, start.Add(time.Hour), start
			return nil
		})
		noError(t, err)
		want.Name, want.Scopes, want.ExpiresAt, want.Disabled, want.Prefix, want.HMAC = "Other", []string{"llm"}, start.Add(2*time.Hour), true, "dw-67890", next
		equal(t, got, want)
		got, err = b.APIKey(ctx, b.orgA, want.ID)
		noError(t, err)
		equal(t, got, want)
	}
	equal(t, told, 1)
	_, err := b.APIKeyByHMAC(ctx, former)
	wantError(t, err, storage.ErrNotFound)
	holder, err := b.APIKeyByHMAC(ctx, next)
	noError(t, err)
	equal(t, holder.ID, want.ID)
	other := b.apiKey(t, b.orgB, b.userB1)
	for name, edit := range map[string]func(*storage.APIKey) error{
		"an error": func(k *storage.APIKey) error { k.Name = "x"; return errEdit }, "no secret": func(k *storage.APIKey) error { k.HMAC = nil; return nil },
		"another's secret": func(k *storage.APIKey) error { k.HMAC = other.HMAC; return nil },
	} {
		if _, err := b.UpdateAPIKey(ctx, b.orgA, want.ID, edit); err == nil {
			t.Errorf("%s was stored", name)
		}
	}
	got, err := b.APIKey(ctx, b.orgA, want.ID)
	noError(t, err)
	equal(t, got, want)
}

var errEdit = errors.New("no edit")

// testNoteAPIKey checks that uses of a key go forward only, report no change, and touch nothing else.
func testNoteAPIKey(t *testing.T, b *bundle) {
	ctx := t.Context()
	want := b.apiKey(t, b.orgA, b.userA1)
	told := 0
	defer b.OnChange(func(string) { told++ })()
	for _, at := range []time.Time{start, start.Add(time.Minute + time.Nanosecond), start} {
		noError(t, b.NoteAPIKey(ctx, b.orgA, want.ID, at))
		if at := at.Truncate(time.Microsecond); at.After(want.UsedAt) {
			want.UsedAt = at
		}
		got, err := b.APIKey(ctx, b.orgA, want.ID)
		noError(t, err)
		equal(t, got, want)
	}
	equal(t, told, 0)
	noError(t, b.NoteAPIKey(ctx, b.orgB, want.ID, start.Add(time.Hour)))
	noError(t, b.NoteAPIKey(ctx, b.orgA, b.unknown, start))
	got, err := b.APIKey(ctx, b.orgA, want.ID)
	noError(t, err)
	equal(t, got, want)
}

// testRevokeUserKeys checks that the keys that stand for a revoked user end with their tokens.
func testRevokeUserKeys(t *testing.T, b *bundle) {
	ctx := t.Context()
	first, second := b.apiKey(t, b.orgA, b.userA1), b.apiKey(t, b.orgA, b.userA1)
	others := []storage.APIKey{b.apiKey(t, b.orgA, b.userA2), b.apiKey(t, b.orgA, ""), b.apiKey(t, b.orgB, b.userB1)}
	_, err := b.RevokeAPIKey(ctx, b.orgA, first.ID, start.Add(-time.Minute))
	noError(t, err)
	now := start.Add(time.Minute)
	_, err = b.RevokeUser(ctx, b.orgA, b.userA1, now.Add(7))
	noError(t, err)
	for id, want := range map[string]time.Time{first.ID: start.Add(-time.Minute), second.ID: now} {
		k, err := b.APIKey(ctx, b.orgA, id)
		noError(t, err)
		equal(t, k.RevokedAt, want)
	}
	for _, want := range others {
		k, err := b.APIKey(ctx, want.OrganizationID, want.ID)
		noError(t, err)
		equal(t, k, want)
	}

	// A key that was asked for before the revocation, and stored after it, is not made.
	for _, at := range []time.Time{start, now} {
		k := newAPIKey(b.orgA, b.userA1)
		k.CreatedAt = at
		wantError(t, b.CreateAPIKey(ctx, k), storage.ErrNotFound)
	}
	later := newAPIKey(b.orgA, b.userA1)
	later.CreatedAt, later.Disabled = now.Add(time.Second), false
	noError(t, b.CreateAPIKey(ctx, later))

	// An administrator who revokes the user again ends that one too. This is reported as a change although the time
	// stays.
	told := 0
	defer b.OnChange(func(string) { told++ })()
	_, err = b.RevokeUser(ctx, b.orgA, b.userA1, now)
	noError(t, err)
	k, err := b.APIKey(ctx, b.orgA, later.ID)
	noError(t, err)
	equal(t, k.Valid(now), false)
	equal(t, told, 1)
}

// testRevokeUserKeyRace makes keys while their user is revoked: none that is older than the revocation is valid after
// it.
func testRevokeUserKeyRace(t *testing.T, b *bundle) {
	ctx := t.Context()
	var all sync.WaitGroup
	for range 16 {
		k := newAPIKey(b.orgA, b.userA1)
		k.Disabled = false
		all.Go(func() {
			if err := b.CreateAPIKey(ctx, k); err != nil {
				t.Log(err) // it came second
			}
		})
	}
	all.Go(func() {
		if _, err := b.RevokeUser(ctx, b.orgA, b.userA1, start); err != nil {
			t.Error(err)
		}
	})
	all.Wait()
	keys, err := b.UserAPIKeys(ctx, b.orgA, b.userA1)
	noError(t, err)
	for _, k := range keys {
		equal(t, k.Valid(start), false)
	}
}

// testRevocationRecord checks K08: a revocation whose record cannot be written is not acknowledged, and has not
// happened.
func testRevocationRecord(t *testing.T, b *bundle) {
	k := b.apiKey(t, b.orgA, b.userA1)
	ctx, a := b.audited(t, b.orgA, "api_key.revoke")
	a.Entries[0].Arguments = json.RawMessage(`{`)
	if _, err := b.RevokeAPIKey(ctx, b.orgA, k.ID, start); err == nil {
		t.Error("a revocation whose record failed was acknowledged")
	}
	got, err := b.APIKey(t.Context(), b.orgA, k.ID)
	noError(t, err)
	equal(t, got, k)
	a.Entries[0].Arguments = nil
	got, err = b.RevokeAPIKey(ctx, b.orgA, k.ID, start)
	noError(t, err)
	equal(t, got.RevokedAt, start)
	equal(t, b.chain(t, b.orgA), []string{"api_key.revoke"})
}
