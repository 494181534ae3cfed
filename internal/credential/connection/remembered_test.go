package connection

import (
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// keyOf returns the key of a user's connection.
func keyOf(user string) storage.ConnectionKey {
	return storage.ConnectionKey{OrganizationID: "organization", UserID: user, ServerID: "server"}
}

// TestSightings checks for how long, and for which settings of a server, a discovery is valid.
func TestSightings(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var l sightings
	seen := sight{url: "https://a.test", clientID: "client"}
	if l.recent(ofO("server"), seen, now) || l.recent(ofO("server"), sight{}, now) {
		t.Error("nothing was discovered")
	}
	l.note(ofO("server"), seen, now)
	other := seen
	other.url = "https://b.test"
	for name, tc := range map[string]struct {
		server serverKey
		sight  sight
		after  time.Duration
		want   bool
	}{
		"at once":        {ofO("server"), seen, 0, true},
		"nearly too old": {ofO("server"), seen, sightingLifetime - 1, true},
		"too old":        {ofO("server"), seen, sightingLifetime, false},
		"other settings": {ofO("server"), other, 0, false},
		"another server": {ofO("another"), seen, 0, false},
		"another tenant": {serverKey{"other", "server"}, seen, 0, false},
	} {
		if got := l.recent(tc.server, tc.sight, now.Add(tc.after)); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if l.forget(ofO("server")); l.recent(ofO("server"), seen, now) {
		t.Error("it is not forgotten")
	}
}

// TestWants checks that a missing permission is noted once a minute for a connection.
func TestWants(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var w wants
	if !w.due(keyOf("alice"), now) || w.due(keyOf("alice"), now.Add(wantEvery-1)) || !w.due(keyOf("bob"), now) {
		t.Error("it is noted again, or not for another user")
	}
	if !w.due(keyOf("alice"), now.Add(wantEvery)) || w.due(keyOf("alice"), now.Add(wantEvery)) {
		t.Error("it is not noted a minute later, or twice")
	}
	if w.forget(keyOf("bob")); !w.due(keyOf("bob"), now) {
		t.Error("it is not forgotten")
	}
}

// TestRetries checks that the time for which a provider is left alone doubles with each failure, up to a minute and a
// quarter, and that it begins anew when there was no failure for long.
func TestRetries(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var r retries
	if got := r.wait(keyOf("alice"), now); got != 0 {
		t.Errorf("before a failure: %v", got)
	}
	for _, least := range []time.Duration{firstWait, 2 * firstWait, 4 * firstWait, lastWait, lastWait} {
		got := r.failed(keyOf("alice"), now)
		if got < least || got >= least+least/4 || r.wait(keyOf("alice"), now) != got || r.wait(keyOf("bob"), now) != 0 {
			t.Errorf("%v instead of %v", got, least)
		}
		if left := r.wait(keyOf("alice"), now.Add(got-1)); left != 1 {
			t.Errorf("a moment before the end: %v", left)
		}
		if left := r.wait(keyOf("alice"), now.Add(got+time.Hour)); left != 0 {
			t.Errorf("an hour after the end: %v", left)
		}
	}
	if r.forget(keyOf("alice")); r.wait(keyOf("alice"), now) != 0 {
		t.Error("it is not forgotten")
	}
	wait := r.failed(keyOf("alice"), now)
	if got := r.failed(keyOf("alice"), now.Add(wait+failureLifetime-1)); got < 2*firstWait {
		t.Errorf("%v after a failure that is remembered", got)
	}
	wait = r.wait(keyOf("alice"), now)
	if got := r.failed(keyOf("alice"), now.Add(wait+failureLifetime)); got >= 2*firstWait {
		t.Errorf("%v after a failure that is not remembered", got)
	}
}

// TestUnsavedOfAnotherGrant checks that tokens that are not stored yet are given only for the refresh token that was
// redeemed for them: a grant that replaced theirs never gets them.
func TestUnsavedOfAnotherGrant(t *testing.T) {
	var u unsaved
	spent := seal.NewSecret("spent")
	if _, ok := u.take(keyOf("alice"), seal.Secret{}); ok {
		t.Error("there are tokens for no refresh token")
	}
	u.put(keyOf("alice"), unsavedTokens{spent: spent, tokens: oauth.Tokens{Access: seal.NewSecret("access")}})
	if got, ok := u.take(keyOf("alice"), spent); !ok || got.Access.Reveal() != "access" {
		t.Error("they are not given")
	}
	if got, ok := u.take(keyOf("alice"), seal.NewSecret("another")); ok || !got.Access.Empty() {
		t.Error("another grant gets them")
	}
	if got, ok := u.take(keyOf("bob"), spent); ok || !got.Access.Empty() {
		t.Error("another user gets them")
	}
}
