package conversation

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/storage"
)

// plainSealer seals by writing down. It opens what was sealed for the same party only.
type plainSealer struct{}

func (plainSealer) Seal(plaintext, ad []byte) string {
	return base64.RawURLEncoding.EncodeToString(ad) + "." + base64.RawURLEncoding.EncodeToString(plaintext)
}

func (plainSealer) Open(sealed string, ad []byte) ([]byte, error) {
	party, text, _ := strings.Cut(sealed, ".")
	if party != base64.RawURLEncoding.EncodeToString(ad) {
		return nil, errors.New("sealed for another party")
	}
	return base64.RawURLEncoding.DecodeString(text)
}

// table is a storage.Conversations with the conversations of one user.
type table struct {
	mu   sync.Mutex
	rows map[string]storage.Conversation
}

func (s *table) CreateConversation(_ context.Context, c storage.Conversation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[c.ID] = c
	return nil
}

func (s *table) Conversation(_ context.Context, organization, userID, id string, now time.Time) (storage.Conversation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.rows[id]
	if !ok || c.OrganizationID != organization || c.UserID != userID || !now.Before(c.ExpiresAt) {
		return storage.Conversation{}, storage.ErrNotFound
	}
	return c, nil
}

func (s *table) OpenConversation(ctx context.Context, organization, userID, id, upstream string, now, expires time.Time) (storage.Conversation, error) {
	c, err := s.Conversation(ctx, organization, userID, id, now)
	if err != nil || c.Upstream != "" {
		return c, err
	}
	c.Upstream, c.ExpiresAt = upstream, expires
	return c, s.CreateConversation(ctx, c)
}

func (s *table) DeleteConversation(_ context.Context, _, _, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rows, id)
	return nil
}

var (
	noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	alex = session.Binding{Organization: "acme", User: "alex", Agent: "agent", Server: "demo"}
)

// bench is a keeper with its store and its clock.
type bench struct {
	*Keeper
	store *table
	now   time.Time
}

func newBench(t *testing.T) *bench {
	t.Helper()
	memory, err := NewMemory(new(cache.Epochs))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(memory.Close)
	b := &bench{store: &table{rows: make(map[string]storage.Conversation)}, now: noon}
	now := func() time.Time { return b.now }
	b.Keeper = New(Options{Memory: memory, Store: b.store, Sessions: session.New(plainSealer{}, now), Now: now})
	return b
}

// begin begins a conversation of alex, and returns its id.
func (b *bench) begin(t *testing.T) string {
	t.Helper()
	begun := session.BeginGuided()
	if _, err := b.Begin(t.Context(), alex, begun, []byte(`{"protocolVersion":"2025-11-25"}`)); err != nil {
		t.Fatal(err)
	}
	return begun.Upstream
}

func upstream(id string) func(context.Context, []byte) (session.Session, error) {
	return func(context.Context, []byte) (session.Session, error) {
		return session.Session{Upstream: id, ProtocolVersion: "2025-11-25"}, nil
	}
}

// TestOpenedOnce checks that requests which wait for a conversation share one session at the server, and that each later
// one gets it without asking the server.
func TestOpenedOnce(t *testing.T) {
	b := newBench(t)
	id := b.begin(t)
	var opened atomic.Int64
	var declared atomic.Pointer[string]
	open := func(_ context.Context, said []byte) (session.Session, error) {
		opened.Add(1)
		text := string(said)
		declared.Store(&text)
		return session.Session{Upstream: "theirs", ProtocolVersion: "2025-11-25"}, nil
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got, err := b.Session(t.Context(), alex, id, open); err != nil || got.Upstream != "theirs" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	all.Wait()
	if opened.Load() != 1 || *declared.Load() != `{"protocolVersion":"2025-11-25"}` {
		t.Errorf("opened %d times, with %s", opened.Load(), *declared.Load())
	}
}

// TestOpenedByAnotherNode checks that the session that another node has opened meanwhile is used.
func TestOpenedByAnotherNode(t *testing.T) {
	b := newBench(t)
	id := b.begin(t)
	got, err := b.Session(t.Context(), alex, id, func(ctx context.Context, _ []byte) (session.Session, error) {
		sealed, err := b.Sessions.Seal(session.Session{Upstream: "first"}, alex)
		if err != nil {
			return session.Session{}, err
		}
		_, err = b.store.OpenConversation(ctx, alex.Organization, alex.User, id, sealed, noon, noon.Add(time.Hour))
		return session.Session{Upstream: "second"}, err
	})
	if err != nil || got.Upstream != "first" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestClientThatLeaves checks that a session is opened for the others, although the first client that waited is gone.
func TestClientThatLeaves(t *testing.T) {
	b := newBench(t)
	id := b.begin(t)
	ctx, leave := context.WithCancel(t.Context())
	got, err := b.Session(ctx, alex, id, func(ctx context.Context, _ []byte) (session.Session, error) {
		leave()
		return session.Session{Upstream: "theirs"}, ctx.Err()
	})
	if err != nil || got.Upstream != "theirs" {
		t.Errorf("%+v, %v", got, err)
	}
}

// others are owners that differ from alex in one part.
func others() map[string]session.Binding {
	all := make(map[string]session.Binding)
	for part, change := range map[string]func(*session.Binding){
		"organization": func(o *session.Binding) { o.Organization = "other" },
		"user":         func(o *session.Binding) { o.User = "kim" },
		"agent":        func(o *session.Binding) { o.Agent = "another" },
		"issuer":       func(o *session.Binding) { o.Issuer = "another" },
		"server":       func(o *session.Binding) { o.Server = "another" },
	} {
		owner := alex
		change(&owner)
		all[part] = owner
	}
	return all
}

// TestOwner checks that a conversation belongs to its user, agent and server.
func TestOwner(t *testing.T) {
	b := newBench(t)
	id := b.begin(t)
	if _, err := b.Session(t.Context(), alex, id, upstream("theirs")); err != nil {
		t.Fatal(err)
	}
	for part, owner := range others() {
		if got, err := b.Session(t.Context(), owner, id, upstream("mine")); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("another %s: %+v, %v", part, got, err)
		}
	}
}

// TestOwnerWhileItOpens checks that nobody else gets the session of a conversation that is being opened, and that no
// session for it is opened at another server.
func TestOwnerWhileItOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		id := b.begin(t)
		answer := make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			_, err := b.Session(t.Context(), alex, id, func(context.Context, []byte) (session.Session, error) {
				<-answer
				return session.Session{Upstream: "theirs"}, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		for part, owner := range others() {
			all.Go(func() {
				got, err := b.Session(t.Context(), owner, id, func(context.Context, []byte) (session.Session, error) {
					if part != "agent" && part != "issuer" {
						t.Errorf("another %s opens a session", part)
					}
					return session.Session{}, storage.ErrNotFound
				})
				if !errors.Is(err, storage.ErrNotFound) {
					t.Errorf("another %s: %+v, %v", part, got, err)
				}
			})
		}
		synctest.Wait()
		close(answer)
		all.Wait()
	})
}

// newKeeperOver returns a keeper of another node with the same store.
func newKeeperOver(t *testing.T, b *bench) *Keeper {
	t.Helper()
	memory, err := NewMemory(new(cache.Epochs))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(memory.Close)
	o := b.Options
	o.Memory = memory
	return New(o)
}

// TestEnds checks that a conversation ends when its client ends it, a week after it began, and a month after it was
// opened.
func TestEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		opened bool
		after  time.Duration
		over   bool
	}{
		"not opened, within a week": {false, waitsFor - time.Second, false},
		"not opened, after a week":  {false, waitsFor, true},
		"opened, within a month":    {true, lastsFor - time.Second, false},
		"opened, after a month":     {true, lastsFor, true},
	} {
		b := newBench(t)
		id := b.begin(t)
		if tc.opened {
			if _, err := b.Session(t.Context(), alex, id, upstream("theirs")); err != nil {
				t.Fatal(err)
			}
		}
		b.now = noon.Add(tc.after)
		if _, err := newKeeperOver(t, b).Session(t.Context(), alex, id, upstream("theirs")); errors.Is(err, storage.ErrNotFound) != tc.over {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := newBench(t)
	id := b.begin(t)
	if err := b.End(t.Context(), alex, id); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Session(t.Context(), alex, id, upstream("theirs")); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("it goes on after its end: %v", err)
	}
}

// TestServerRefuses checks that the error of a server is passed on, and that the next request tries again.
func TestServerRefuses(t *testing.T) {
	b := newBench(t)
	id := b.begin(t)
	refused := errors.New("no")
	if _, err := b.Session(t.Context(), alex, id, func(context.Context, []byte) (session.Session, error) { return session.Session{}, refused }); !errors.Is(err, refused) {
		t.Errorf("%v", err)
	}
	if got, err := b.Session(t.Context(), alex, id, upstream("theirs")); err != nil || got.Upstream != "theirs" {
		t.Errorf("%+v, %v", got, err)
	}
}
