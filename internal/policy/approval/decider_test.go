package approval_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/storage"
)

// TestMayDecide covers R04: a token decides only for a listed client, a browser for its user, and a machine never.
func TestMayDecide(t *testing.T) {
	e := approval.New(approval.Options{Store: new(memory), Vault: plain{}, Bell: new(approval.Bell), Clients: []string{"console", ""}})
	for name, tc := range map[string]struct {
		decider approval.Decider
		may     bool
	}{
		"a listed client":          {approval.Decider{Client: "console"}, true},
		"another client":           {approval.Decider{Client: "agent-a"}, false},
		"no client":                {approval.Decider{}, false},
		"a browser":                {approval.Decider{Browser: true}, true},
		"a machine":                {approval.Decider{Client: "console", Machine: true}, false},
		"a browser of a machine's": {approval.Decider{Browser: true, Machine: true}, false},
	} {
		if err := e.MayDecide(tc.decider); (err == nil) != tc.may || err != nil && !errors.Is(err, approval.ErrClient) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBrowserDecides checks that a decision from a page counts for no client, whatever client the session names.
func TestBrowserDecides(t *testing.T) {
	e := newEngine(new(memory), new(approval.Bell), nil)
	a, err := e.Request(t.Context(), call())
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.Decide(t.Context(), approval.Decider{OrganizationID: "o", UserID: "alice", Client: a.Client, Browser: true}, a.ID, true)
	if err != nil || got.DecidedClient != "" {
		t.Errorf("decided by the client %q: %v", got.DecidedClient, err)
	}
}

// TestListNow checks that a list shows approvals as they are at the engine's time.
func TestListNow(t *testing.T) {
	now := time.Unix(5000, 0)
	store := new(memory)
	if _, err := newEngine(store, new(approval.Bell), func() time.Time { return now }).Approvals(t.Context(), storage.ApprovalFilter{}); err != nil {
		t.Fatal(err)
	}
	if !store.listed.Now.Equal(now) {
		t.Errorf("listed as of %v", store.listed.Now)
	}
}

// TestWokenAtOnce checks that a waiting call learns of a decision in this process at once, and not with the next look
// at the store.
func TestWokenAtOnce(t *testing.T) {
	for name, act := range map[string]func(ctx context.Context, e *approval.Engine, store *memory, id string) error{
		"sent elsewhere": func(ctx context.Context, e *approval.Engine, _ *memory, id string) error {
			_, err := e.Divert(ctx, "o", "alice", id)
			return err
		},
		"used by another call": func(ctx context.Context, e *approval.Engine, store *memory, id string) error {
			// This decision is made in another process, whose bell does not ring here.
			elsewhere := newEngine(store, new(approval.Bell), nil)
			if _, err := elsewhere.DecideInBand(ctx, "o", "alice", id, true); err != nil {
				return err
			}
			_, err := e.Take(ctx, call(), id)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := new(memory)
				e := newEngine(store, new(approval.Bell), nil)
				a, err := e.Request(t.Context(), call())
				if err != nil {
					t.Fatal(err)
				}
				started, took := time.Now(), make(chan time.Duration)
				go func() {
					if _, err := e.Wait(t.Context(), &a); err != nil {
						t.Error(err)
					}
					took <- time.Since(started)
				}()
				synctest.Wait()
				if err := act(t.Context(), e, store, a.ID); err != nil {
					t.Fatal(err)
				}
				if took := <-took; took != 0 {
					t.Errorf("heard after %v", took)
				}
			})
		})
	}
}

// TestBindingLengths checks that separators inside fields do not make two different calls equal.
func TestBindingLengths(t *testing.T) {
	const between = "\x00\x00\x00\x00\x00\x00\x00\x00"
	one, other := call(), call()
	one.Tool, one.Definition = "x"+between+"y", "z"
	other.Tool, other.Definition = "x", "y"+between+"z"
	if string(one.Binding()) == string(other.Binding()) {
		t.Error("two calls have one binding")
	}
}

// TestBesideOfNothing checks that params that are not an object are refused, because they cannot be bound.
func TestBesideOfNothing(t *testing.T) {
	for _, params := range []string{`[]`, `{"_meta":5}`, `{"name":"x","_meta":[1]}`} {
		if got, err := approval.CanonicalBeside([]byte(params), true); err == nil {
			t.Errorf("%s: %q", params, got)
		}
	}
}

// TestReadAnswer checks that answers are read as written, and that other values are no answer.
func TestReadAnswer(t *testing.T) {
	for text, want := range map[string]approval.Answer{
		`{"action":"accept"}`: approval.Yes, `{"action":"decline"}`: approval.No, `{"action":"other"}`: approval.Unable, ``: approval.Unable, `{`: approval.Unable,
	} {
		if got := approval.ReadAnswer([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// bare seals nothing, and opens everything.
type bare struct{ opened int }

func (*bare) Seal(p, _ []byte) string { return string(p) }

func (b *bare) Open(sealed string, _ []byte) ([]byte, error) {
	b.opened++
	return []byte(sealed), nil
}

// TestStateShape checks that a text that opens but is not a state of any version is refused.
func TestStateShape(t *testing.T) {
	states := approval.NewStates(new(bare), home, func() time.Time { return time.Unix(5000, 0) })
	good, err := states.Seal(approval.State{Mode: approval.ModeForm, ApprovalID: id1, ExpiresAt: time.Unix(6000, 0)}, who)
	if err != nil {
		t.Fatal(err)
	}
	head := len(statePrefixOf(good))
	with := func(at int, value byte) string {
		text := []byte(good)
		text[head+at] = value
		return string(text)
	}
	for name, tc := range map[string]struct {
		text string
		good bool
	}{
		"as it was": {good, true}, "the last mode": {with(0, byte(approval.ModeProof)), true}, "no mode": {with(0, 0), false},
		"a mode of tomorrow": {with(0, byte(approval.ModeProof)+1), false}, "a flag of tomorrow": {with(1, 4), false}, "short": {good[:len(good)-1], false},
	} {
		if _, err := states.Open(tc.text, who); (err == nil) != tc.good || err != nil && !errors.Is(err, approval.ErrState) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnsweredShape checks that an id is 16 bytes, and that a longer text is not opened.
func TestAnsweredShape(t *testing.T) {
	sealer := new(bare)
	states := approval.NewStates(sealer, home, nil)
	ask, err := states.Ask(id1, who)
	if err != nil {
		t.Fatal(err)
	}
	prefix := prefixOf(ask)
	for length, opened := range map[int]int{15: 1, 16: 1, 17: 1, 256: 1, 257: 0} {
		sealer.opened = 0
		text := prefix
		for range length {
			text += "A"
		}
		if _, err := states.Answered(text, who); (err == nil) != (length == 16) || sealer.opened != opened {
			t.Errorf("%d bytes: %v, opened %d times", length, err, sealer.opened)
		}
	}
}
