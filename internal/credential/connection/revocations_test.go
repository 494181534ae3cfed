package connection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// nobodys returns tokens of a user who has no connection, and the form of the client that got them.
func (b *bundle) nobodys() (tokensOf, oauth.ClientAuth, grant) {
	b.t.Helper()
	key, client := b.key, b.client()
	key.UserID = b.user("nobody")
	auth, err := b.auth(b.server, client)
	if err != nil {
		b.t.Fatal(err)
	}
	return tokensOf{key, b.server, client}, auth, grant{Access: seal.NewSecret("access"), Refresh: seal.NewSecret("refresh")}
}

// stored stores a revocation that is due after a time.
func (b *bundle) stored(told sealedRevocation, organization string, after time.Duration) storage.Revocation {
	b.t.Helper()
	v, err := b.sealRevocation(organization, &told)
	if err != nil {
		b.t.Fatal(err)
	}
	v.NextAt = b.clock.now().Add(after)
	if err := b.store.AddRevocation(b.t.Context(), v); err != nil {
		b.t.Fatal(err)
	}
	return v
}

// accepted returns a message that the provider accepts, about a token of nobody.
func (b *bundle) accepted(token string) sealedRevocation {
	return sealedRevocation{Server: "demo", Endpoint: b.provider.URL + "/revoke", ClientID: "x", Method: oauth.AuthNone, Refresh: token}
}

// TestRevocationInMemory checks that a revocation that the store does not take is kept in memory, until the store takes
// it or the provider accepts it.
func TestRevocationInMemory(t *testing.T) {
	full := storage.ErrUnavailable
	begin := func(t *testing.T, outOfOrder bool) *bundle {
		b := setup(t)
		b.connect()
		b.outOfOrder(outOfOrder)
		b.store.revocationErr.Store(&full)
		of, auth, g := b.nobodys()
		b.revoke(t.Context(), of, auth, g)
		b.settle(func() bool { return b.telling() == 0 })
		if log := b.log.String(); !strings.Contains(log, "in memory alone") || strings.Contains(log, "later than meant") {
			t.Errorf("logged %s", log)
		}
		return b
	}
	t.Run("accepted", func(t *testing.T) {
		b := begin(t, false)
		if got := b.revoked(); len(got) != 2 || len(b.unstored.list()) != 0 || b.countOf(Revoked) != 1 {
			t.Errorf("revoked %v, %d in memory", got, len(b.unstored.list()))
		}
	})
	t.Run("stored later", func(t *testing.T) {
		b := begin(t, true)
		if err := b.RevokeDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(b.unstored.list()); n != 1 || len(b.waiting()) != 0 {
			t.Fatalf("%d in memory while the store takes nothing", n)
		}
		b.store.revocationErr.Store(nil)
		b.outOfOrder(false)
		if err := b.RevokeDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(b.unstored.list()); n != 0 || len(b.waiting()) != 1 || len(b.revoked()) != 0 {
			t.Errorf("%d in memory although it is stored, %d wait, revoked %v", n, len(b.waiting()), b.revoked())
		}
		b.clock.advance(revokeLease)
		if err := b.over(b.Memory).RevokeDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := b.revoked(); len(got) != 2 || len(b.unstored.list()) != 0 || len(b.waiting()) != 0 {
			t.Errorf("revoked %v, %d in memory, %d wait", got, len(b.unstored.list()), len(b.waiting()))
		}
	})
	t.Run("stored already", func(t *testing.T) {
		b := setup(t)
		b.unstored.put(b.stored(b.accepted("refresh"), b.who.OrganizationID, time.Hour))
		if err := b.RevokeDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(b.unstored.list()); n != 0 || len(b.waiting()) != 1 {
			t.Errorf("%d in memory, %d wait", n, len(b.waiting()))
		}
	})
}

// postponing is a store that does not answer when a revocation is to be postponed, or deleted.
type postponing struct {
	*faultyStore
	postpone, delete error
}

func (s postponing) PostponeRevocation(ctx context.Context, v storage.Revocation, next time.Time, failed int) error {
	if s.postpone != nil {
		return s.postpone
	}
	return s.faultyStore.PostponeRevocation(ctx, v, next, failed)
}

func (s postponing) DeleteRevocation(ctx context.Context, organization, id string) error {
	if s.delete != nil {
		return s.delete
	}
	return s.faultyStore.DeleteRevocation(ctx, organization, id)
}

// TestClaim checks that of several processes one alone tries a revocation. The process that has just made it need not
// ask.
func TestClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		after time.Duration // when it is due
		asks  bool
	}{
		"due":                 {0, true},
		"made just now":       {revokeLease, false},
		"made a while ago":    {revokeDeadline, false},
		"made too long ago":   {revokeDeadline - time.Microsecond, true},
		"due for a long time": {-time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			v := b.stored(b.accepted("refresh"), b.who.OrganizationID, tc.after)
			first, second := v, v
			if !b.claim(t.Context(), &first) || b.node().claim(t.Context(), &second) == tc.asks {
				t.Error("two processes have it, or none")
			}
			next := v.NextAt
			if tc.asks {
				next = b.clock.now().Add(revokeLease)
			}
			if w := b.waiting(); len(w) != 1 || !w[0].NextAt.Equal(next) || !first.NextAt.Equal(next) || w[0].Attempts != 0 {
				t.Errorf("stored %+v, claimed until %v, want %v", w, first.NextAt, next)
			}
			if strings.Contains(b.log.String(), "claiming") {
				t.Error("that another process has it is logged")
			}
		})
	}
	t.Run("the store is away", func(t *testing.T) {
		b := setup(t)
		b.stored(b.accepted("refresh"), b.who.OrganizationID, 0)
		b.Broker.store = postponing{faultyStore: b.store, postpone: &storage.UnavailableError{Reason: "it does not answer in time"}}
		if err := b.RevokeDue(t.Context()); err != nil {
			t.Error(err)
		}
		if got := b.revoked(); len(got) != 0 || len(b.waiting()) != 1 || !strings.Contains(b.log.String(), "claiming a revocation") {
			t.Errorf("revoked %v\n%s", got, b.log)
		}
	})
}

// TestTriedRevocation checks what becomes of a revocation after a try.
func TestTriedRevocation(t *testing.T) {
	refused := errors.New("it answers 503")
	for name, tc := range map[string]struct {
		age    time.Duration
		err    error
		counts Event
		waits  bool
		log    string
	}{
		"accepted":          {0, nil, Revoked, false, ""},
		"accepted late":     {storage.RevocationLifetime, nil, Revoked, false, ""},
		"connected anew":    {0, errConnectedAnew, NotRevoked, false, "tokens cannot be revoked"},
		"refused":           {storage.RevocationLifetime - time.Microsecond, refused, RevokeFailed, true, "they are tried again"},
		"refused for a day": {storage.RevocationLifetime, refused, NotRevoked, false, "are given up"},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			v := b.stored(b.accepted("refresh"), b.who.OrganizationID, 0)
			b.clock.advance(tc.age)
			b.triedRevocation(t.Context(), v, "demo", tc.err)
			if w := b.waiting(); (len(w) == 1) != tc.waits || b.countOf(tc.counts) != 1 {
				t.Errorf("stored %+v, counted %d", w, b.countOf(tc.counts))
			}
			if log := b.log.String(); !strings.Contains(log, tc.log) || (tc.log == "") != (log == "") {
				t.Errorf("logged %s", log)
			}
		})
	}
	t.Run("the store is away", func(t *testing.T) {
		b := setup(t)
		v := b.stored(b.accepted("refresh"), b.who.OrganizationID, 0)
		away := &storage.UnavailableError{Reason: "it does not answer in time"}
		b.Broker.store = postponing{b.store, away, away}
		b.triedRevocation(t.Context(), v, "demo", nil)
		b.triedRevocation(t.Context(), v, "demo", refused)
		for _, want := range []string{"is still stored", "later than meant"} {
			if !strings.Contains(b.log.String(), want) {
				t.Errorf("%q is not logged: %s", want, b.log)
			}
		}
		if !b.alarmAt().IsZero() {
			t.Error("the alarm is set for what is not stored")
		}
	})
}

// alarmAt returns the time of the next task; zero: none is set.
func (b *bundle) alarmAt() time.Time {
	b.alarm.mu.Lock()
	defer b.alarm.mu.Unlock()
	return b.alarm.at
}

// TestPostpone checks that the wait doubles with each attempt, up to an hour. The alarm is set for its end.
func TestPostpone(t *testing.T) {
	for age, wait := range map[time.Duration]time.Duration{
		0: time.Second, time.Second: time.Second, 2 * time.Second: 2 * time.Second, time.Minute: time.Minute, 2 * time.Hour: time.Hour,
	} {
		t.Run(age.String(), func(t *testing.T) {
			b := setup(t)
			v := b.stored(b.accepted("refresh"), b.who.OrganizationID, 0)
			b.clock.advance(age)
			if err := b.postpone(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			want := b.clock.now().Add(wait)
			if w := b.waiting(); len(w) != 1 || w[0].Attempts != 1 || !w[0].NextAt.Equal(want) || !b.alarmAt().Equal(want) {
				t.Errorf("stored %+v, alarm %v, want %v", w, b.alarmAt(), want)
			}
		})
	}
	b := setup(t)
	v := b.stored(b.accepted("refresh"), b.who.OrganizationID, 0)
	v.NextAt = v.NextAt.Add(-time.Second) // another process has postponed it
	if err := b.postpone(t.Context(), v); err != nil || !b.alarmAt().IsZero() {
		t.Errorf("%v, alarm %v", err, b.alarmAt())
	}
}

// TestRevokeSoon checks what is told of the revocations that a sweep finds, and when the next sweep is.
func TestRevokeSoon(t *testing.T) {
	for name, tc := range map[string]struct {
		organizations, each int
		after               time.Duration
		told                int
		alarm               time.Duration // -1: none
	}{
		"due":                              {1, 1, 0, 1, -1},
		"due soon":                         {1, 1, time.Microsecond, 0, time.Microsecond},
		"due before the next sweep":        {1, 1, revokeEvery, 0, revokeEvery},
		"due later":                        {1, 1, revokeEvery + time.Microsecond, 0, -1},
		"nearly the share of one":          {1, revokeShare - 1, 0, revokeShare - 1, -1},
		"the share of one":                 {1, revokeShare, 0, revokeShare, firstRevokeWait},
		"nearly as many as in one reading": {9, revokeBatch/9 - 0, 0, revokeBatch / 9 * 9, -1},
		"as many as in one reading":        {10, revokeBatch / 10, 0, revokeBatch, firstRevokeWait},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			for n := range tc.organizations {
				for m := range tc.each {
					b.stored(b.accepted(fmt.Sprint(n, m)), fmt.Sprint("organization ", n), tc.after)
				}
			}
			if err := b.RevokeDue(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := b.revoked(); len(got) != tc.told || len(b.waiting()) != tc.organizations*tc.each-tc.told {
				t.Errorf("told %d, %d wait", len(got), len(b.waiting()))
			}
			if at := b.alarmAt(); at.IsZero() != (tc.alarm < 0) || (tc.alarm >= 0 && !at.Equal(b.clock.now().Add(tc.alarm))) {
				t.Errorf("the alarm is at %v, now is %v", at, b.clock.now())
			}
		})
	}
}

// TestRevokeWhileClosing checks that a closed broker tells nobody, and keeps nothing for a later turn.
func TestRevokeWhileClosing(t *testing.T) {
	b := setup(t)
	b.connect()
	for n := range 3 {
		b.stored(b.accepted(fmt.Sprint(n)), b.who.OrganizationID, 0)
	}
	b.idle()
	if err := b.RevokeDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	of, auth, g := b.nobodys()
	b.revoke(t.Context(), of, auth, g)
	if got := b.revoked(); len(got) != 0 || len(b.waiting()) != 4 || b.telling() != 0 {
		t.Errorf("revoked %v, %d wait, %d in memory", got, len(b.waiting()), b.telling())
	}
}

// TestUnreadableRevocation checks that a revocation that no key opens is tried for a day, keeps no other from being
// tried, and is given up.
func TestUnreadableRevocation(t *testing.T) {
	b := setup(t)
	now := b.clock.now()
	unreadable := storage.Revocation{
		ID: uuid.Must(uuid.NewV7()).String(), OrganizationID: b.who.OrganizationID, Sealed: []byte("what no key opens"), CreatedAt: now, NextAt: now,
	}
	if err := b.store.AddRevocation(t.Context(), unreadable); err != nil {
		t.Fatal(err)
	}
	b.stored(b.accepted("refresh"), b.who.OrganizationID, 0)
	b.clock.advance(storage.RevocationLifetime - time.Microsecond)
	if err := b.RevokeDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w := b.waiting(); len(w) != 1 || w[0].ID != unreadable.ID || w[0].Attempts != 1 || !slices.Equal(b.revoked(), []string{"refresh"}) {
		t.Errorf("stored %+v, revoked %v", w, b.revoked())
	}
	if b.countOf(NotRevoked) != 0 || !strings.Contains(b.log.String(), "cannot be read") {
		t.Errorf("%d are lost\n%s", b.countOf(NotRevoked), b.log)
	}
	b.clock.advance(time.Microsecond)
	if err := b.revokeAgain(t.Context(), unreadable); err != nil || len(b.waiting()) != 0 || b.countOf(NotRevoked) != 1 {
		t.Errorf("%v, %d wait, %d are lost", err, len(b.waiting()), b.countOf(NotRevoked))
	}
}

// TestRevokeDueFails checks that a store that cannot say what is due is an error.
func TestRevokeDueFails(t *testing.T) {
	b := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.RevokeDue(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestKeepRevoking checks that a new process tells at once what an earlier one left, and afterwards what is due next,
// until it is closed.
func TestKeepRevoking(t *testing.T) {
	b := setup(t)
	b.stored(b.accepted("first"), b.who.OrganizationID, 0)
	b.KeepRevoking()
	b.settle(func() bool { return slices.Equal(b.revoked(), []string{"first"}) && len(b.waiting()) == 0 })
	b.stored(b.accepted("second"), b.who.OrganizationID, time.Microsecond)
	b.clock.advance(time.Second)
	b.alarm.set(b.clock.now())
	b.settle(func() bool { return len(b.revoked()) == 2 && len(b.waiting()) == 0 })
	b.Close()
	if log := b.log.String(); strings.Contains(log, "revoking tokens again") {
		t.Errorf("logged %s", log)
	}
}

// dueless is a store that may not say what is due.
type dueless struct {
	*faultyStore
	err   *atomic.Pointer[error]
	asked *atomic.Int64
}

func (s dueless) DueRevocations(ctx context.Context, now time.Time, limit, share int) ([]storage.Revocation, error) {
	err := s.err.Load()
	s.asked.Add(1) // after that the test changes the error
	if err != nil {
		return nil, *err
	}
	return s.faultyStore.DueRevocations(ctx, now, limit, share)
}

// TestKeepRevokingGoesOn checks that a store that does not answer ends nothing. It is logged, unless the broker itself
// has given up the request.
func TestKeepRevokingGoesOn(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		logged bool
	}{
		"the store is away": {&storage.UnavailableError{Reason: "it does not answer in time"}, true},
		"given up":          {context.Canceled, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.stored(b.accepted("refresh"), b.who.OrganizationID, 0)
			s := dueless{b.store, new(atomic.Pointer[error]), new(atomic.Int64)}
			s.err.Store(&tc.err)
			b.Broker.store = s
			b.KeepRevoking()
			b.settle(func() bool { return s.asked.Load() == 1 })
			s.err.Store(nil)
			b.alarm.set(b.clock.now())
			b.settle(func() bool { return len(b.revoked()) == 1 })
			b.Close()
			if got := strings.Contains(b.log.String(), "revoking tokens again"); got != tc.logged {
				t.Errorf("logged: %v\n%s", got, b.log)
			}
		})
	}
}
