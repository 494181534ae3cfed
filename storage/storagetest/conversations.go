package storagetest

import (
	"encoding/json"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

func (b *bundle) newConversation(id string) storage.Conversation {
	return storage.Conversation{
		ID: id, OrganizationID: b.orgA, UserID: b.userA1, ServerID: b.serverA.ID, Declared: json.RawMessage(`{"protocolVersion":"2025-11-25"}`),
		CreatedAt: start, ExpiresAt: start.Add(time.Hour),
	}
}

func testConversations(t *testing.T, b *bundle) {
	ctx := t.Context()
	want := b.newConversation("first")
	noError(t, b.CreateConversation(ctx, want))
	read := func(c storage.Conversation, now time.Time) (storage.Conversation, error) {
		return b.Conversation(ctx, c.OrganizationID, c.UserID, c.ID, now)
	}
	got, err := read(want, want.ExpiresAt.Add(-time.Microsecond))
	noError(t, err)
	equal(t, got, want)

	// It belongs to its user, for its time.
	for name, change := range map[string]func(*storage.Conversation){
		"organization": func(c *storage.Conversation) { c.OrganizationID = b.orgB },
		"user":         func(c *storage.Conversation) { c.UserID = b.userA2 },
		"id":           func(c *storage.Conversation) { c.ID = "second" },
	} {
		t.Run(name, func(t *testing.T) {
			other := want
			change(&other)
			_, err := read(other, start)
			wantError(t, err, storage.ErrNotFound)
			_, err = b.OpenConversation(ctx, other.OrganizationID, other.UserID, other.ID, "theirs", start, start.Add(time.Hour))
			wantError(t, err, storage.ErrNotFound)
			noError(t, b.DeleteConversation(ctx, other.OrganizationID, other.UserID, other.ID))
		})
	}
	_, err = read(want, want.ExpiresAt)
	wantError(t, err, storage.ErrNotFound)
	got, err = read(want, start)
	noError(t, err)
	equal(t, got, want)

	// Of several that open it, one does, and all learn of it.
	var mu sync.Mutex
	var opened []storage.Conversation
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			c, err := b.OpenConversation(ctx, want.OrganizationID, want.UserID, want.ID, "session "+strconv.Itoa(i), start, start.Add(2*time.Hour))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			opened = append(opened, c)
		})
	}
	wg.Wait()
	got, err = read(want, start.Add(90*time.Minute))
	noError(t, err)
	want.Upstream, want.ExpiresAt = got.Upstream, start.Add(2*time.Hour)
	equal(t, got, want)
	for _, c := range opened {
		equal(t, c, want)
	}

	noError(t, b.DeleteConversation(ctx, want.OrganizationID, want.UserID, want.ID))
	_, err = read(want, start)
	wantError(t, err, storage.ErrNotFound)
	noError(t, b.DeleteConversation(ctx, want.OrganizationID, want.UserID, want.ID))

	for _, change := range []func(*storage.Conversation){
		func(c *storage.Conversation) { c.ServerID = b.unknown },
		func(c *storage.Conversation) { c.ServerID = b.serverB.ID },
		func(c *storage.Conversation) { c.UserID = b.userB1 },
	} {
		c := b.newConversation("gone")
		change(&c)
		wantError(t, b.CreateConversation(ctx, c), storage.ErrNotFound)
	}
}

// testConversationsBounded checks that a client that begins again and again does not fill the store.
func testConversationsBounded(t *testing.T, b *bundle) {
	ctx := t.Context()
	for i := range storage.MaxConversations + 2 {
		c := b.newConversation("c" + strconv.Itoa(i))
		c.CreatedAt = start.Add(time.Duration(i) * time.Second)
		noError(t, b.CreateConversation(ctx, c))
	}
	for i, there := range map[int]bool{0: false, 1: false, 2: true, storage.MaxConversations + 1: true} {
		_, err := b.Conversation(ctx, b.orgA, b.userA1, "c"+strconv.Itoa(i), start)
		if there {
			noError(t, err)
		} else {
			wantError(t, err, storage.ErrNotFound)
		}
	}
}
