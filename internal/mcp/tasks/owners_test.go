package tasks

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/storage"
)

// shared is a store that keeps the promises of storage.Tasks.
type shared struct {
	tasks         map[string]storage.Task // by organization, server and digest
	reads, writes int
	err           error
}

func (s *shared) AddTask(_ context.Context, t storage.Task) error {
	s.writes++
	key := strings.Join([]string{t.OrganizationID, t.ServerID, t.Digest}, " ")
	if former, found := s.tasks[key]; s.err == nil && found && former.CreatedAt.After(t.CreatedAt) {
		return &storage.ConflictError{Field: "created_at"}
	}
	if s.err == nil {
		if s.tasks == nil {
			s.tasks = make(map[string]storage.Task)
		}
		s.tasks[key] = t
	}
	return s.err
}

func (s *shared) Tasks(_ context.Context, of storage.TaskOwner, now time.Time) (found []storage.Task, err error) {
	s.reads++
	for _, t := range s.tasks {
		if t.TaskOwner == of && t.ExpiresAt.After(now) && s.err == nil {
			found = append(found, t)
		}
	}
	return found, s.err
}

func (s *shared) ForgetTasks(_ context.Context, now time.Time) error {
	maps.DeleteFunc(s.tasks, func(_ string, t storage.Task) bool { return !t.ExpiresAt.After(now) })
	return s.err
}

// cluster makes two nodes on one store, and their common clock.
func cluster() (here, there *Owners, store *shared, clock *time.Time) {
	now := start
	store = new(shared)
	read := func() time.Time { return now }
	return &Owners{Store: store, Now: read}, &Owners{Store: store, Now: read}, store, &now
}

var (
	alice = session.Binding{Organization: "o", User: "alice", Agent: "a", Server: "s"}
	bob   = session.Binding{Organization: "o", User: "bob", Agent: "a", Server: "s"}
)

func create(t *testing.T, o *Owners, who session.Binding, c Created) {
	t.Helper()
	if err := o.Created(t.Context(), who, c); err != nil {
		t.Fatal(err)
	}
}

func owns(t *testing.T, o *Owners, who session.Binding, id string) bool {
	t.Helper()
	is, err := o.Owns(t.Context(), who, id)
	if err != nil {
		t.Error(err)
	}
	return is
}

// TestOwns asks two nodes for the owner of a task that one of them saw.
func TestOwns(t *testing.T) {
	here, there, store, clock := cluster()
	for _, id := range []string{"1", "1", "", strings.Repeat("x", maxID+1)} {
		create(t, here, alice, Created{ID: id, TTL: -1})
	}
	if len(store.tasks) != 1 || !owns(t, here, alice, "1") || store.reads != 0 {
		t.Errorf("%d tasks are stored, %d reads", len(store.tasks), store.reads)
	}
	for range 3 {
		if !owns(t, there, alice, "1") || store.reads != 1 {
			t.Errorf("another node does not know the task, or asks again and again: %d reads", store.reads)
		}
	}
	*clock = clock.Add(believed)
	if !owns(t, there, alice, "1") || store.reads != 2 {
		t.Errorf("the store is believed for too long: %d reads", store.reads)
	}
	for name, other := range map[string]session.Binding{
		"O14 another user":         bob,
		"O14 another agent":        {Organization: "o", User: "alice", Agent: "b", Server: "s"},
		"O14 another issuer's":     {Organization: "o", User: "alice", Issuer: "i", Agent: "a", Server: "s"},
		"O14 another server":       {Organization: "o", User: "alice", Agent: "a", Server: "s2"},
		"O14 another organization": {Organization: "p", User: "alice", Agent: "a", Server: "s"},
	} {
		if owns(t, here, other, "1") || owns(t, there, other, "1") {
			t.Errorf("%s owns the task", name)
		}
	}
	if owns(t, here, alice, "2") || owns(t, here, alice, "") {
		t.Error("a task that nobody created is owned")
	}
	mine, err := there.Of(t.Context(), alice)
	if err != nil || !mine("1") || mine("2") || mine("") {
		t.Errorf("its list: %v", err)
	}
}

// TestLifetime asks for tasks before and after their time, at the node that saw them and at another, with the store and
// without.
func TestLifetime(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{
		0: grace, time.Minute: time.Minute + grace, storage.TaskLifetime - grace: storage.TaskLifetime, storage.TaskLifetime: storage.TaskLifetime,
		-1: storage.TaskLifetime, 1<<63 - 1: storage.TaskLifetime,
	} {
		here, there, store, clock := cluster()
		create(t, here, alice, Created{ID: "1", TTL: ttl, At: start.Add(-time.Hour)})
		*clock = start.Add(want - time.Nanosecond)
		if !owns(t, there, alice, "1") || !owns(t, here, alice, "1") {
			t.Errorf("ttl %v: forgotten too early", ttl)
		}
		*clock = start.Add(want)
		if owns(t, there, alice, "1") || owns(t, here, alice, "1") {
			t.Errorf("ttl %v: known for too long", ttl)
		}
		store.err = storage.ErrUnavailable
		if is, err := here.Owns(t.Context(), alice, "1"); is || err == nil {
			t.Errorf("ttl %v: known for too long in memory", ttl)
		}
	}
}

// TestGivenAgain makes a server give an id again: the task belongs only to its newest creation, on every node within a
// second.
func TestGivenAgain(t *testing.T) {
	here, there, store, clock := cluster()
	create(t, here, alice, Created{ID: "1", At: start.Add(-time.Minute)})
	if !owns(t, there, alice, "1") {
		t.Fatal("another node does not know the task")
	}
	create(t, here, bob, Created{ID: "1", At: start})
	if owns(t, here, alice, "1") || !owns(t, here, bob, "1") || !owns(t, there, bob, "1") {
		t.Error("O14 the task is not its new owner's alone")
	}
	*clock = clock.Add(time.Second)
	if owns(t, there, alice, "1") || !owns(t, there, bob, "1") {
		t.Error("O14 the task is not its new owner's alone at another node")
	}
	if mine, err := there.Of(t.Context(), alice); err != nil || mine("1") {
		t.Errorf("O14 the list of its former owner: %v", err)
	}
	// The former owner resumes the stream that reported the former creation.
	for _, node := range []*Owners{here, there} {
		create(t, node, alice, Created{ID: "1", At: start.Add(-time.Minute)})
		if owns(t, node, alice, "1") || !owns(t, node, bob, "1") {
			t.Error("O14 a task is taken back by what was told before")
		}
	}
	store.err = storage.ErrUnavailable
	if err := here.Created(t.Context(), alice, Created{ID: "1", At: start.Add(-time.Minute)}); err != nil || !owns(t, here, bob, "1") {
		t.Errorf("O14 a task is taken back by what was told before, while the store is away: %v", err)
	}
	store.err = nil
	create(t, there, alice, Created{ID: "1"}) // by a server that does not send the time
	*clock = clock.Add(time.Second)
	if owns(t, here, bob, "1") || !owns(t, here, alice, "1") {
		t.Error("O14 it is not the first one's again")
	}
}

// TestGivenAgainWithoutStore creates a task while the store is away, and another one under its id at another node
// later.
func TestGivenAgainWithoutStore(t *testing.T) {
	here, there, store, clock := cluster()
	store.err = storage.ErrUnavailable
	if err := here.Created(t.Context(), alice, Created{ID: "1"}); err == nil {
		t.Fatal("it is stored")
	}
	store.err = nil
	*clock = clock.Add(time.Minute)
	create(t, there, bob, Created{ID: "1"})
	if owns(t, here, alice, "1") || !owns(t, here, bob, "1") || !owns(t, there, bob, "1") {
		t.Error("O14 the task is not the newest creation's alone")
	}
}

// TestNoStore asks while the store is away: tasks that this process saw are known, and all others belong to nobody.
func TestNoStore(t *testing.T) {
	here, _, store, clock := cluster()
	create(t, here, alice, Created{ID: "0"})
	*clock = clock.Add(believed)
	store.err = storage.ErrUnavailable
	if err := here.Created(t.Context(), alice, Created{ID: "1"}); !errors.Is(err, storage.ErrUnavailable) {
		t.Error(err)
	}
	if !owns(t, here, alice, "0") || !owns(t, here, alice, "1") {
		t.Error("what was seen here is not known")
	}
	if is, err := here.Owns(t.Context(), alice, "2"); is || !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("%v, %v", is, err)
	}
	mine, err := here.Of(t.Context(), alice)
	if !errors.Is(err, storage.ErrUnavailable) || !mine("0") || !mine("1") || mine("2") {
		t.Errorf("its list: %v", err)
	}
	*clock = clock.Add(lastPause)
	if !owns(t, here, alice, "0") {
		t.Error("what was seen here is not known after a try")
	}
}

// TestPause asks every 100 ms for ten minutes while the store is away. The writes become fewer, and the task is known
// once the store is back.
func TestPause(t *testing.T) {
	here, there, store, clock := cluster()
	store.err = storage.ErrUnavailable
	for i := range 3 {
		if err := here.Created(t.Context(), alice, Created{ID: strconv.Itoa(i)}); err == nil {
			t.Fatal("it is stored")
		}
	}
	store.writes = 0
	for range 6000 {
		if *clock = clock.Add(100 * time.Millisecond); !owns(t, here, alice, "0") || !owns(t, here, alice, "1") {
			t.Fatal("it is not known while the store is away")
		}
	}
	if most := 30; store.writes > most || store.writes < 10 || store.reads > 0 {
		t.Errorf("%d writes in ten minutes, at most %d are wanted; %d reads", store.writes, most, store.reads)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	store.err = nil
	*clock = clock.Add(lastPause)
	for range 2 {
		if !owns(t, here, alice, "0") || !owns(t, there, alice, "0") || !owns(t, here, alice, "1") {
			t.Error("it is not known everywhere")
		}
	}
	if n := len(store.tasks); n != 2 {
		t.Errorf("%d tasks are stored", n)
	}
	store.err = context.Canceled
	if _, err := here.Owns(gone, bob, "9"); err == nil {
		t.Error("a client that has gone is answered")
	}
	store.err = nil
	if !here.pause.mayTry(*clock) {
		t.Error("a client that has gone keeps others from the store")
	}
}

// TestServerGone creates a task at a server that is deleted meanwhile.
func TestServerGone(t *testing.T) {
	here, _, store, _ := cluster()
	store.err = storage.ErrNotFound
	if err := here.Created(t.Context(), alice, Created{ID: "1"}); !errors.Is(err, storage.ErrNotFound) {
		t.Error(err)
	}
	store.err = nil
	if owns(t, here, alice, "1") {
		t.Error("a task of no server is owned")
	}
}

// TestKeepSweeping lets tasks end: they are dropped in memory and in the store. Errors of sweeping are reported, and it
// goes on.
func TestKeepSweeping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(shared)
		o := &Owners{Store: store, Now: time.Now}
		create(t, o, alice, Created{ID: "1"})
		create(t, o, alice, Created{ID: "2", TTL: -1})
		sweepFor := func(long time.Duration) (failures []error) {
			ctx, cancel := context.WithTimeout(t.Context(), long)
			defer cancel()
			o.KeepSweeping(ctx, func(err error) { failures = append(failures, err) })
			return failures
		}
		if failures := sweepFor(grace - time.Second); len(failures) > 0 || len(store.tasks) != 2 {
			t.Errorf("a task is forgotten too early: %v", failures)
		}
		if failures := sweepFor(sweepEvery + time.Second); len(failures) > 0 || len(store.tasks) != 1 || o.book.recent.Len() != 1 {
			t.Errorf("%d tasks are in the store, %d in memory: %v", len(store.tasks), o.book.recent.Len(), failures)
		}
		store.err = storage.ErrUnavailable
		if failures := sweepFor(2*sweepEvery + time.Second); len(failures) != 2 || !errors.Is(failures[1], storage.ErrUnavailable) {
			t.Errorf("what is told of sweeping that fails: %v", failures)
		}
	})
}

// TestForget checks that tasks of a user who has left come back neither from memory nor into the store.
func TestForget(t *testing.T) {
	here, _, store, _ := cluster()
	store.err = errors.New("away")
	hers := session.Binding{Organization: "o", User: "alice", Server: "s"}
	his := hers
	his.User = "adam"
	for who, id := range map[session.Binding]string{hers: "hers", his: "his"} {
		_ = here.Created(t.Context(), who, Created{ID: id})
	}
	here.Forget("o", "alice")
	here.Forget("o", "nobody")
	store.err = nil
	if owns, err := here.Owns(t.Context(), hers, "hers"); owns || err != nil || store.writes != 2 {
		t.Errorf("she owns it: %t, %v; %d writes", owns, err, store.writes)
	}
	if owns, err := here.Owns(t.Context(), his, "his"); !owns || err != nil {
		t.Errorf("he owns his: %t, %v", owns, err)
	}
}
