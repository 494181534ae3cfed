package connection

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// TestEndsWithItsRevocation checks that for any end of a connection its tokens wait to be revoked once the end is
// committed, even after a crash right behind the commit. Another process tells the provider.
func TestEndsWithItsRevocation(t *testing.T) {
	for name, end := range map[string]func(b *bundle) error{
		"disconnect": func(b *bundle) error { return b.Disconnect(b.t.Context(), b.key) },
		"the server is deleted": func(b *bundle) error {
			_, err := b.DeleteServer(b.t.Context(), b.key.OrganizationID, b.key.ServerID, b.who.UserID, b.clock.now())
			return err
		},
		"broken": func(b *bundle) error {
			c, err := b.store.Connection(b.t.Context(), b.key)
			if err != nil {
				return err
			}
			return b.mark(b.t.Context(), b.key, c.Version, "x", false)
		},
		"undone": func(b *bundle) error {
			c, err := b.store.Connection(b.t.Context(), b.key)
			if err != nil {
				return err
			}
			g, err := b.openGrant(c)
			if err != nil {
				return err
			}
			token, err := b.undoToken(b.key, g.ID)
			if err != nil {
				return err
			}
			_, err = b.Undo(b.t.Context(), token)
			return err
		},
		"a credential is typed": func(b *bundle) error {
			_, err := b.connectTyped(b.t.Context(), b.key, b.server, storage.ProviderBearerToken, grant{Access: seal.NewSecret("typed")})
			return err
		},
		"connected anew, independent": func(b *bundle) error {
			b.independent(true)
			c, err := b.store.Connection(b.t.Context(), b.key)
			if err != nil {
				return err
			}
			_, err = b.putConnection(b.t.Context(), c, grant{ID: "new", Access: seal.NewSecret("new")})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.connect()
			b.idle()
			if err := end(b); err != nil {
				t.Fatal(err)
			}
			if n := len(b.waiting()); n != 1 || len(b.revoked()) != 0 {
				t.Fatalf("%d wait, revoked %v", n, b.revoked())
			}
			b.clock.advance(revokeLease)
			if err := b.node().RevokeDue(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := b.revoked(); len(got) != 2 || len(b.waiting()) != 0 {
				t.Errorf("revoked %v, %d wait", got, len(b.waiting()))
			}
		})
	}
}

// TestReplacedTogether connects a user several times at one moment, where tokens are independent. One grant is left,
// and all others are revoked.
func TestReplacedTogether(t *testing.T) {
	b := setup(t)
	b.connect()
	b.independent(true)
	const times = 6
	var all sync.WaitGroup
	failures := make([]error, times)
	client, err := b.store.OAuthClient(t.Context(), b.key.OrganizationID, b.key.ServerID)
	if err != nil {
		t.Fatal(err)
	}
	former, err := b.store.Connection(t.Context(), b.key)
	if err != nil {
		t.Fatal(err)
	}
	for n := range times {
		all.Go(func() {
			c := storage.Connection{ConnectionKey: b.key, ID: former.ID, Kind: storage.ProviderOAuth2, ClientID: client.ClientID, Issuer: client.Issuer,
				Origin: former.Origin, Resource: former.Resource, ExpiresAt: b.clock.now().Add(time.Hour)}
			_, failures[n] = b.putConnection(t.Context(), c, grant{ID: fmt.Sprint(n), Access: seal.NewSecret(fmt.Sprint("access ", n))})
		})
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
	left, err := b.store.Connection(t.Context(), b.key)
	if err != nil {
		t.Fatal(err)
	}
	g, err := b.openGrant(left)
	if err != nil {
		t.Fatal(err)
	}
	b.settle(func() bool { return len(b.waiting()) == 0 })
	told := map[string]bool{}
	for _, token := range b.revoked() {
		told[token] = true
	}
	for n := range times {
		if access := fmt.Sprint("access ", n); told[access] == (access == g.Access.Reveal()) {
			t.Errorf("%q is left, and %q revoked: %v", g.Access.Reveal(), access, told[access])
		}
	}
}

// TestEndingThatCannotBeRead ends a connection whose credential nobody can open any more. It ends, and is counted.
func TestEndingThatCannotBeRead(t *testing.T) {
	b := setup(t)
	b.connect()
	b.edit(func(c *storage.Connection) { c.SealedCredential = []byte("what no key opens") })
	if err := b.Disconnect(t.Context(), b.key); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Connection(t.Context(), b.key); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("it is still there: %v", err)
	}
	b.counted(map[Event]int64{NotRevoked: 1})
	if log := b.log.String(); !strings.Contains(log, "tokens cannot be revoked") {
		t.Errorf("logged %s", log)
	}
}

// idle keeps the broker from starting background work. Direct requests to it continue; Close would end them.
func (b *bundle) idle() {
	b.closing.Lock()
	defer b.closing.Unlock()
	b.closed = true
}

// TestEndingRunsAgain checks that a repeated transaction asks again. The first result is not counted, and none of its
// rows is told.
func TestEndingRunsAgain(t *testing.T) {
	b := setup(t)
	b.connect()
	ended := storage.Ended{Former: b.connection(), Server: b.server}
	ended.Former.SealedCredential = []byte("what no key opens")
	e := b.newEnding()
	for range 3 {
		if rows, err := e.revocations(t.Context(), ended); err != nil || len(rows) != 0 {
			t.Errorf("%d rows, %v", len(rows), err)
		}
	}
	b.counted(map[Event]int64{})
	e.told()
	b.counted(map[Event]int64{NotRevoked: 1})
}

// TestSpeakerOfFormerClient checks that tokens of a former client without an address to revoke them at are not said to be
// at one that has changed.
func TestSpeakerOfFormerClient(t *testing.T) {
	b := setup(t)
	b.connect()
	now := b.client()
	for client, want := range map[string]error{"former": nil, now.ClientID: errEndpointMoved} {
		former := b.connection()
		former.ClientID = client
		ended := storage.Ended{Former: former, Server: b.server, Client: &now}
		endpoint, _, err := b.newEnding().speaker(ended, issued{Kind: storage.ClientRegistered, Origins: "https://id.test"})
		if endpoint != "" || !errors.Is(err, want) {
			t.Errorf("%s: %q, %v", client, endpoint, err)
		}
	}
}

// TestEndingWithoutClient checks that the tokens of a connection are revoked as their grant says when the store has no
// client of the server.
func TestEndingWithoutClient(t *testing.T) {
	b := setup(t)
	b.connect()
	rows, err := b.newEnding().revocations(t.Context(), storage.Ended{Former: b.connection(), Server: b.server})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	told, err := b.openRevocation(rows[0])
	if err != nil || told.ClientID != b.client().ClientID || told.Endpoint != b.provider.URL+"/revoke" || told.Refresh == "" {
		t.Errorf("%v", err)
	}
}
