package taskbook

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/mcpsession"
	"github.com/durward-gateway/durward/storage"
)

// shared is a store that keeps what storage.Tasks promises.
type shared struct {
	tasks map[storage.TaskOwner][]string
	reads int
	err   error
}

func (s *shared) AddTask(_ context.Context, t storage.Task) error {
	if s.err == nil {
		s.tasks[t.TaskOwner] = append(s.tasks[t.TaskOwner], t.Digest)
	}
	return s.err
}

func (s *shared) Tasks(_ context.Context, of storage.TaskOwner, _ time.Time) ([]string, error) {
	s.reads++
	return s.tasks[of], s.err
}

func owns(t *testing.T, o *Owners, who mcpsession.Binding, id string) bool {
	t.Helper()
	is, err := o.Owns(t.Context(), who, id)
	if err != nil {
		t.Error(err)
	}
	return is
}

// TestOwns asks two nodes whose a task is that one of them saw.
func TestOwns(t *testing.T) {
	store := &shared{tasks: make(map[storage.TaskOwner][]string)}
	here, there := &Owners{Store: store, Now: time.Now}, &Owners{Store: store, Now: time.Now}
	alice := mcpsession.Binding{Organization: "o", User: "alice", Agent: "a", Server: "s"}
	for _, id := range []string{"1", "1", "", strings.Repeat("x", maxID+1)} {
		if err := here.Created(t.Context(), alice, id); err != nil {
			t.Error(err)
		}
	}
	if n := len(store.tasks[ownerOf(alice)]); n != 1 || !owns(t, here, alice, "1") || store.reads != 0 {
		t.Errorf("%d tasks are stored, %d reads", n, store.reads)
	}
	for range 3 {
		if !owns(t, there, alice, "1") || store.reads != 1 {
			t.Errorf("another node does not know the task, or asks again and again: %d reads", store.reads)
		}
	}
	for name, other := range map[string]mcpsession.Binding{
		"O14 another user":         {Organization: "o", User: "bob", Agent: "a", Server: "s"},
		"O14 another agent":        {Organization: "o", User: "alice", Agent: "b", Server: "s"},
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

// TestNoStore asks while the store is away: what this process saw is known, and nothing else is anybody's.
func TestNoStore(t *testing.T) {
	store := &shared{err: storage.ErrUnavailable}
	o := &Owners{Store: store, Now: time.Now}
	who := mcpsession.Binding{Organization: "o", User: "alice"}
	if err := o.Created(t.Context(), who, "1"); !errors.Is(err, storage.ErrUnavailable) {
		t.Error(err)
	}
	if !owns(t, o, who, "1") {
		t.Error("what was seen here is not known")
	}
	if is, err := o.Owns(t.Context(), who, "2"); is || !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("%v, %v", is, err)
	}
}

// TestStoreComesBack fails to store a task: other nodes know it once its client has asked this one.
func TestStoreComesBack(t *testing.T) {
	store := &shared{tasks: make(map[storage.TaskOwner][]string), err: storage.ErrUnavailable}
	here, there := &Owners{Store: store, Now: time.Now}, &Owners{Store: store, Now: time.Now}
	who := mcpsession.Binding{Organization: "o", User: "alice"}
	if err := here.Created(t.Context(), who, "1"); err == nil {
		t.Fatal("it is stored")
	}
	if !owns(t, here, who, "1") {
		t.Error("it is not known while the store is away")
	}
	store.err = nil
	for range 2 {
		if !owns(t, here, who, "1") || !owns(t, there, who, "1") {
			t.Error("it is not known everywhere")
		}
	}
	if n := len(store.tasks[ownerOf(who)]); n != 1 {
		t.Errorf("it was stored %d times", n)
	}
}

func TestBounds(t *testing.T) {
	var b book
	owner := func(i int) mcpsession.Binding { return mcpsession.Binding{User: strconv.Itoa(i)} }
	for i := range maxOwned + 1 {
		b.add(owner(0), strconv.Itoa(i), true)
	}
	has := func(i int, id string) bool {
		known, _ := b.has(owner(i), id)
		return known
	}
	if has(0, "0") || !has(0, "1") || b.count != maxOwned {
		t.Errorf("an owner's oldest task is known: %v; %d tasks", has(0, "0"), b.count)
	}
	for i := 1; i <= maxTasks; i++ {
		b.add(owner(i), "x", true)
	}
	if b.count > maxTasks || has(0, "1") || !has(maxTasks, "x") || b.recent.Len() != len(b.owners) {
		t.Errorf("%d tasks of %d owners", b.count, len(b.owners))
	}
}
