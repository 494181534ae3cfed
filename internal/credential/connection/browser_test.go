package connection

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// whose makes a check that always has the same result.
func whose(w Whose) BrowserCheck {
	return func(context.Context, storage.ConnectionKey) (Whose, error) { return w, nil }
}

// ownBrowser takes every browser for the user's own.
func ownBrowser(context.Context, storage.ConnectionKey) (Whose, error) { return Own, nil }

func (b *bundle) exchanges() int {
	return get(b.provider, func(p *provider) int { return p.exchanges })
}

// nothingStored checks that no credential and no failure is stored, and that no provider was asked.
func (b *bundle) nothingStored() {
	b.t.Helper()
	if _, err := b.store.Connection(b.t.Context(), b.key); !errors.Is(err, storage.ErrNotFound) {
		b.t.Errorf("something was stored: %v", err)
	}
	if n := b.exchanges(); n != 0 {
		b.t.Errorf("%d token requests", n)
	}
}

func TestCallbackInAnothersBrowser(t *testing.T) {
	b := setup(t)
	answer := b.provider.approve(*b.begin().AuthURL)
	var asked storage.ConnectionKey
	r, err := b.Callback(t.Context(), answer, func(_ context.Context, user storage.ConnectionKey) (Whose, error) {
		asked = user
		return Foreign, nil
	})
	if err != nil || !r.Refused || r.OK || r.Held != "" || r.ReturnURL != "" || r.Undo != "" || r.ConnectionKey != b.key || asked != b.key {
		t.Errorf("A03: %+v, %v", r, err)
	}
	b.nothingStored()
	if _, err := b.Callback(t.Context(), answer, ownBrowser); !errors.Is(err, ErrState) {
		t.Errorf("A03: the state is not spent: %v", err)
	}
}

func TestCallbackCheckFails(t *testing.T) {
	b := setup(t)
	down := errors.New("the store is down")
	_, err := b.Callback(t.Context(), b.provider.approve(*b.begin().AuthURL), func(context.Context, storage.ConnectionKey) (Whose, error) {
		return Own, down
	})
	if !errors.Is(err, down) {
		t.Error(err)
	}
	b.nothingStored()
}

func (b *bundle) held() (handle string, answer url.Values) {
	b.t.Helper()
	answer = b.provider.approve(*b.begin().AuthURL)
	r, err := b.Callback(b.t.Context(), answer, whose(Unproven))
	if err != nil || r.Held == "" || r.OK || r.Refused || r.Reason != "" || r.ReturnURL != "" {
		b.t.Fatalf("%+v, %v\n%s", r, err, b.log)
	}
	b.nothingStored()
	return r.Held, answer
}

func TestCallbackHeldUntilLogin(t *testing.T) {
	b := setup(t)
	handle, answer := b.held()
	if _, err := b.Callback(t.Context(), answer, ownBrowser); !errors.Is(err, ErrState) {
		t.Errorf("the state is not spent: %v", err)
	}
	// A handle is no state: nobody can bring a code of their own with it.
	if _, err := b.Callback(t.Context(), url.Values{"state": {handle}, "code": {"x"}}, ownBrowser); !errors.Is(err, ErrState) {
		t.Errorf("A07: the handle is a state: %v", err)
	}
	if _, err := b.Resume(t.Context(), answer.Get("state"), ownBrowser); !errors.Is(err, ErrState) {
		t.Errorf("the state is a handle: %v", err)
	}
	r, err := b.Resume(t.Context(), handle, ownBrowser)
	if err != nil || !r.OK || r.Undo == "" || r.ReturnURL != appURL+"?status=connected&server=demo" {
		t.Fatalf("%+v, %v\n%s", r, err, b.log)
	}
	b.server = b.reload(b.server)
	b.use(b.Broker)
	if _, err := b.Resume(t.Context(), handle, ownBrowser); !errors.Is(err, ErrState) {
		t.Errorf("the handle is good twice: %v", err)
	}
}

func TestCallbackHeldForAnother(t *testing.T) {
	for name, w := range map[string]Whose{"A02 somebody else logged in": Foreign, "nobody logged in": Unproven} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			handle, _ := b.held()
			if r, err := b.Resume(t.Context(), handle, whose(w)); err != nil || !r.Refused || r.Held != "" {
				t.Errorf("%+v, %v", r, err)
			}
			b.nothingStored()
			if _, err := b.Resume(t.Context(), handle, ownBrowser); !errors.Is(err, ErrState) {
				t.Errorf("the handle is not spent: %v", err)
			}
		})
	}
}

// TestCallbackHeldFromNow checks that an answer waits as long for its user if the user was long at the provider.
func TestCallbackHeldFromNow(t *testing.T) {
	b := setup(t)
	answer := b.provider.approve(*b.begin().AuthURL)
	b.clock.advance(attemptLifetime - time.Second)
	held, err := b.Callback(t.Context(), answer, whose(Unproven))
	if err != nil || held.Held == "" {
		t.Fatalf("%+v, %v", held, err)
	}
	b.clock.advance(heldLifetime - time.Second)
	if r, err := b.Resume(t.Context(), held.Held, ownBrowser); err != nil || !r.OK {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestCallbackHeldTooLong(t *testing.T) {
	b := setup(t)
	handle, _ := b.held()
	b.clock.advance(heldLifetime)
	if _, err := b.Resume(t.Context(), handle, ownBrowser); !errors.Is(err, ErrState) {
		t.Error(err)
	}
	for _, handle := range []string{"", "x", string(make([]byte, 1<<20))} {
		if _, err := b.Resume(t.Context(), handle, ownBrowser); !errors.Is(err, ErrState) {
			t.Error(err)
		}
	}
	b.nothingStored()
}

// TestCallbackDeniedBeforeLogin brings answers without a login. They have no code, or do not belong to the attempt.
// They end the attempt and write nothing on the user's connection: anybody may have brought them.
func TestCallbackDeniedBeforeLogin(t *testing.T) {
	b := setup(t)
	for name, change := range map[string]func(url.Values){
		"denied":             func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") },
		"A04 another issuer": func(q url.Values) { q.Set("iss", "https://other.example.com") },
	} {
		answer := b.provider.approve(*b.begin().AuthURL)
		change(answer)
		r, err := b.Callback(t.Context(), answer, whose(Unproven))
		if err != nil || r.OK || r.Held != "" || r.Reason == "" || r.ReturnURL != appURL+"?status=error&server=demo" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		b.nothingStored()
	}
	if n := b.exchanges(); n != 0 {
		t.Errorf("%d token requests", n)
	}
}

// TestAnswerKeepsSecret checks that an answer that waits for a login is sealed.
func TestAnswerKeepsSecret(t *testing.T) {
	b := setup(t)
	handle, answer := b.held()
	a, err := b.store.TakeAttempt(t.Context(), heldHash(handle), b.clock.now())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(a.Sealed), answer.Get("code")) {
		t.Error("the code is stored as it is")
	}
	a.StateHash = stateHash("another")
	if _, err := b.openAttempt(a); !errors.Is(err, seal.ErrOpen) {
		t.Errorf("it is opened for another handle: %v", err)
	}
}

// attemptless is a store that takes no attempts.
type attemptless struct{ *faultyStore }

func (attemptless) CreateAttempt(context.Context, storage.Attempt) error {
	return &storage.UnavailableError{Reason: "it does not answer in time"}
}

// TestAnswerNotKept checks that a browser gets no handle for an answer that is not stored.
func TestAnswerNotKept(t *testing.T) {
	b := setup(t)
	answer := b.provider.approve(*b.begin().AuthURL)
	b.Broker.store = attemptless{b.store}
	if r, err := b.Callback(t.Context(), answer, whose(Unproven)); !errors.Is(err, storage.ErrUnavailable) || r.Held != "" || r.OK {
		t.Errorf("%+v, %v", r, err)
	}
	b.nothingStored()
}
