package sighting

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/storage"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// note holds what was written about a server.
type note struct {
	organization, id, problem string
	seen                      time.Time
}

// notes is a store of notes, with a clock and a background that tests turn.
type notes struct {
	*Observer
	written []note
	modern  []bool
	server  storage.Server
	sight   Sight
	now     time.Time
	fails   error
	closing bool
	// waiting holds the writes of the background while it is held up.
	heldUp  bool
	waiting []func(context.Context)
}

func newNotes() *notes {
	n := &notes{now: start}
	n.server = storage.Server{ID: "one", OrganizationID: "acme", Slug: "git", Entry: storage.DirectoryEntry{URL: "https://git.example/mcp"}}
	n.sight.Load(&n.server)
	n.Observer = New(Options{
		Store: n, Now: func() time.Time { return n.now },
		Beside: func(write func(context.Context)) bool {
			switch {
			case n.closing:
				return false
			case n.heldUp:
				n.waiting = append(n.waiting, write)
			default:
				write(context.Background())
			}
			return true
		},
		Unreachable: func(address *url.URL, _ error) string { return address.Host + " does not answer" },
	})
	return n
}

func (n *notes) Server(_ context.Context, organization, id string) (storage.Server, error) {
	if organization != n.server.OrganizationID || id != n.server.ID {
		return storage.Server{}, storage.ErrNotFound
	}
	return n.server, n.fails
}

func (n *notes) NoteServer(_ context.Context, organization, id string, seen time.Time, problem string) error {
	n.written = append(n.written, note{organization, id, problem, seen})
	return n.fails
}

func (n *notes) NoteModern(_ context.Context, _, _ string, modern bool) error {
	n.modern = append(n.modern, modern)
	return n.fails
}

// answered notes an answer, and returns the number of notes since the last call.
func (n *notes) answered(status int) int {
	before := len(n.written)
	n.Answered(&n.server, &n.sight, status)
	return len(n.written) - before
}

// TestAnswersAreNotedSeldom checks that a request on a warm node writes nothing, and a change is noted soon.
func TestAnswersAreNotedSeldom(t *testing.T) {
	n := newNotes()
	for i, step := range []struct {
		after  time.Duration
		status int
		notes  int
	}{
		{0, 200, 1}, {0, 200, 0}, {time.Minute - time.Second, 404, 0}, {time.Second, 200, 1},
		{4 * time.Second, 502, 0}, {time.Second, 502, 1}, // a server that answers only now and then
		{time.Hour, 502, 0}, // known
		{0, 503, 1},         // another failure, an hour later
		{4 * time.Second, 200, 0}, {time.Second, 200, 1},
	} {
		n.now = n.now.Add(step.after)
		if got := n.answered(step.status); got != step.notes {
			t.Errorf("step %d: %d notes, want %d", i, got, step.notes)
		}
	}
	want := note{"acme", "one", "", n.now}
	if last := n.written[len(n.written)-1]; last != want {
		t.Errorf("%+v, want %+v", last, want)
	}
}

func TestNotedProblems(t *testing.T) {
	failed := func(err error) func(*notes) { return func(n *notes) { n.Failed(&n.server, &n.sight, err) } }
	for name, c := range map[string]struct {
		observe  func(*notes)
		problem  string
		answered bool
	}{
		"a status":      {func(n *notes) { n.answered(500) }, "status 500", true},
		"no connection": {failed(&forward.Error{Class: forward.ErrConnect}), "git.example does not answer", false},
		"no answer":     {failed(&forward.Error{Class: forward.ErrTimeout}), "in time", false},
		"half an answer": {
			failed(&forward.Error{Class: forward.ErrIdle}), "in time", false,
		},
		"no usable answer":   {failed(&forward.Error{Class: forward.ErrUpstream}), "could not be used", false},
		"another failure":    {failed(errors.New("x")), "could not be used", false},
		"no credential":      {func(n *notes) { n.WantsCredential(&n.server, &n.sight) }, "asks for a credential", true},
		"a failure and more": {func(n *notes) { n.answered(500); n.answered(500) }, "status 500", true},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNotes()
			c.observe(n)
			if len(n.written) != 1 || !strings.Contains(n.written[0].problem, c.problem) || n.written[0].seen.IsZero() == c.answered {
				t.Errorf("%+v", n.written)
			}
		})
	}
	n := newNotes()
	n.server.Entry.URL = "https://[git"
	if n.Failed(&n.server, &n.sight, errors.New("x")); len(n.written) != 0 {
		t.Errorf("a server that could not be asked: %+v", n.written)
	}
}

// TestKnownProblem checks that notes in the store count as this node's.
func TestKnownProblem(t *testing.T) {
	n := newNotes()
	n.answered(500)
	server := n.server
	server.LastError, server.LastSeenAt = n.written[0].problem, start
	n.sight = Sight{}
	n.sight.Load(&server)
	if n.now = start.Add(time.Hour); n.answered(500) != 0 {
		t.Error("noted again")
	}
	if n.answered(200) != 1 {
		t.Error("its end is not noted")
	}
	server = storage.Server{LastSeenAt: n.now}
	n.sight = Sight{}
	n.sight.Load(&server)
	if n.now = n.now.Add(time.Minute - time.Second); n.answered(200) != 0 {
		t.Error("another node's note does not count")
	}
}

// TestOneNoteAtATime checks that requests do not wait for a note, and write no other meanwhile.
func TestOneNoteAtATime(t *testing.T) {
	n := newNotes()
	n.heldUp = true
	for range 3 {
		n.answered(200)
		n.answered(500)
	}
	if len(n.waiting) != 1 {
		t.Fatalf("%d notes wait", len(n.waiting))
	}
	n.fails = storage.ErrUnavailable
	n.waiting[0](t.Context())
	if n.answered(200); len(n.waiting) != 1 {
		t.Error("a note that was lost is made again at once")
	}
	n.now = n.now.Add(time.Minute)
	if n.answered(200); len(n.waiting) != 2 {
		t.Error("a note that was lost is never made again")
	}
}

// TestClosing checks that a configuration that closes notes nothing, and does not keep the next one from it.
func TestClosing(t *testing.T) {
	n := newNotes()
	n.closing = true
	if n.answered(200) != 0 {
		t.Error("noted")
	}
	if n.closing = false; n.answered(200) != 1 {
		t.Error("not noted afterwards")
	}
}

func TestModern(t *testing.T) {
	n := newNotes()
	known := func() bool {
		t.Helper()
		is, err := n.KnownModern(t.Context(), &n.server, &n.sight)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	if known() {
		t.Error("known before it was seen")
	}
	n.fails = storage.ErrUnavailable
	n.SpeaksModern(&n.server, &n.sight)
	if _, err := n.KnownModern(t.Context(), &n.server, &n.sight); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("known although it could not be noted: %v", err)
	}
	n.fails = nil
	for range 2 {
		n.SpeaksModern(&n.server, &n.sight)
	}
	if !known() || len(n.modern) != 2 {
		t.Errorf("known %v, written %v", known(), n.modern)
	}
	n.sight = Sight{}
	if known() {
		t.Error("known of another sight")
	}
	if n.server.Modern = true; !known() {
		t.Error("another node's note does not count")
	}
	n.sight.Load(&n.server)
	if n.SpeaksModern(&n.server, &n.sight); len(n.modern) != 2 {
		t.Error("a known fact is written")
	}
}

// TestNoSight checks that nothing is noted of a server without a sight.
func TestNoSight(t *testing.T) {
	n := newNotes()
	n.Answered(&n.server, nil, 500)
	n.Failed(&n.server, nil, errors.New("x"))
	n.WantsCredential(&n.server, nil)
	n.SpeaksModern(&n.server, nil)
	if len(n.written) != 0 || len(n.modern) != 0 {
		t.Errorf("%+v, %v", n.written, n.modern)
	}
	if is, err := n.KnownModern(t.Context(), &n.server, nil); is || err != nil {
		t.Errorf("%v, %v", is, err)
	}
}
