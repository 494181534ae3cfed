package storagetest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

func testServers(t *testing.T, b *bundle) {
	ctx := t.Context()
	for _, v := range []storage.Server{b.serverA, b.serverB} {
		got, err := b.Server(ctx, v.OrganizationID, v.ID)
		noError(t, err)
		equal(t, got, v)
		got, err = b.ServerBySlug(ctx, v.OrganizationID, v.Slug) // O06: one slug, two organizations
		noError(t, err)
		equal(t, got, v)
	}
	bare := storage.Server{ID: newID(), OrganizationID: b.orgA, Name: "Bare", Slug: "bare", DirectoryID: b.entry.ID,
		Status: storage.ServerPending, Entry: b.entry}
	noError(t, b.CreateServer(ctx, bare))
	got, err := b.Server(ctx, b.orgA, bare.ID)
	noError(t, err)
	equal(t, got, bare)
	if got.SealedClientSecret != nil || got.Meta != nil {
		t.Errorf("nothing became %#v and %#v", got.SealedClientSecret, got.Meta)
	}

	hidden := b.customEntry(t, b.orgB, "Hidden")
	for _, id := range []string{hidden.ID, b.unknown, ""} {
		v := b.newServer(b.orgA, "New", "new")
		v.DirectoryID = id
		wantError(t, b.CreateServer(ctx, v), storage.ErrNotFound)
	}
	v := b.newServer(b.unknown, "New", "new")
	wantError(t, b.CreateServer(ctx, v), storage.ErrNotFound)
}

func testServerConflicts(t *testing.T, b *bundle) {
	ctx := t.Context()
	v := b.newServer(b.orgA, "Ölmühle \u00a0 Two", "slug-one")
	noError(t, b.CreateServer(ctx, v))
	for _, name := range []string{"Ölmühle Two", "ÖLMÜHLETWO", " ölmühle\ttwo\u2003\n"} {
		wantConflict(t, b.CreateServer(ctx, b.newServer(b.orgA, name, "slug-two")), "name")
	}
	wantConflict(t, b.CreateServer(ctx, b.newServer(b.orgA, "Other", "slug-one")), "slug")
	noError(t, b.CreateServer(ctx, b.newServer(b.orgB, v.Name, v.Slug)))

	other := b.newServer(b.orgA, "Other", "slug-two")
	noError(t, b.CreateServer(ctx, other))
	_, err := b.UpdateServer(ctx, b.orgA, other.ID, func(s *storage.Server) error { s.Name = "ÖlmühleTwo"; return nil })
	wantConflict(t, err, "name")
	_, err = b.UpdateServer(ctx, b.orgA, other.ID, func(s *storage.Server) error { s.Slug = "slug-one"; return nil })
	wantConflict(t, err, "slug")
	_, err = b.UpdateServer(ctx, b.orgA, v.ID, func(s *storage.Server) error { s.Name = "ölmühle two"; return nil })
	noError(t, err) // its own name in another spelling

	_, err = b.DeleteServer(ctx, b.orgA, v.ID, "", start) // this frees both
	noError(t, err)
	noError(t, b.CreateServer(ctx, b.newServer(b.orgA, v.Name, v.Slug)))
}

// testNoteServer checks that notes about a server do not touch the changes of administrators, go forward only, and
// report no change.
func testNoteServer(t *testing.T, b *bundle) {
	ctx := t.Context()
	want := b.serverA
	told := 0
	defer b.OnChange(func(string) { told++ })()
	for _, step := range []struct {
		seen    time.Time
		problem string
		want    time.Time
	}{
		{start, "", start},
		{time.Time{}, "it does not answer", start},
		{start.Add(time.Minute + time.Nanosecond), "", start.Add(time.Minute)},
		{start, "an older one", start.Add(time.Minute)},
	} {
		noError(t, b.NoteServer(ctx, b.orgA, want.ID, step.seen, step.problem))
		want.LastSeenAt, want.LastError = step.want, step.problem
		got, err := b.Server(ctx, b.orgA, want.ID)
		noError(t, err)
		equal(t, got, want)
	}
	noError(t, b.NoteModern(ctx, b.orgA, want.ID, true))
	want.Modern = true
	equal(t, told, 0)
	updated, err := b.UpdateServer(ctx, b.orgA, want.ID, func(s *storage.Server) error {
		s.ClientID, s.LastSeenAt, s.LastError, s.Modern = "other", start.Add(time.Hour), "not an edit's", false
		return nil
	})
	noError(t, err)
	want.ClientID, want.UpdatedAt = "other", updated.UpdatedAt
	equal(t, updated, want)
	noError(t, b.NoteServer(ctx, b.orgB, want.ID, start.Add(time.Hour), "of another organization"))
	noError(t, b.NoteModern(ctx, b.orgB, want.ID, false))
	got, err := b.Server(ctx, b.orgA, want.ID)
	noError(t, err)
	equal(t, got, want)
	noError(t, b.NoteServer(ctx, b.orgA, b.unknown, start, "gone"))
	noError(t, b.NoteModern(ctx, b.orgA, b.unknown, true))
}

func testServerNameRace(t *testing.T, b *bundle) {
	var created, refused atomic.Int32
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			switch err := b.CreateServer(t.Context(), b.newServer(b.orgA, "One name", fmt.Sprintf("slug-%d", i))); {
			case err == nil:
				created.Add(1)
			case errors.Is(err, storage.ErrConflict):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	equal(t, []int32{created.Load(), refused.Load()}, []int32{1, 15})
}

func testUpdateServer(t *testing.T, b *bundle) {
	ctx := t.Context()
	want := b.serverA
	updated, err := b.UpdateServer(ctx, b.orgA, want.ID, func(v *storage.Server) error {
		equal(t, *v, want)
		v.Name, v.Slug, v.Status, v.ClientID = "New name", "new-slug", storage.ServerError, ""
		v.SealedClientSecret, v.Meta, v.UpdatedAt = nil, []byte(`[]`), start.Add(time.Minute+time.Nanosecond)
		v.ID, v.OrganizationID, v.CreatedBy, v.CreatedAt = newID(), b.orgB, newID(), start.Add(time.Hour)
		return nil
	})
	noError(t, err)
	want.Name, want.Slug, want.Status, want.ClientID = "New name", "new-slug", storage.ServerError, ""
	want.SealedClientSecret, want.Meta, want.UpdatedAt = nil, []byte(`[]`), start.Add(time.Minute)
	equal(t, updated, want)
	got, err := b.Server(ctx, b.orgA, want.ID)
	noError(t, err)
	equal(t, got, want)
	_, err = b.ServerBySlug(ctx, b.orgA, b.serverA.Slug)
	wantError(t, err, storage.ErrNotFound)

	refusal := errors.New("refused")
	_, err = b.UpdateServer(ctx, b.orgA, want.ID, func(v *storage.Server) error { v.Name = "never"; return refusal })
	if err != refusal {
		t.Errorf("got %v, want the edit's own error", err)
	}
	hidden := b.customEntry(t, b.orgB, "Hidden")
	_, err = b.UpdateServer(ctx, b.orgA, want.ID, func(v *storage.Server) error { v.DirectoryID = hidden.ID; return nil })
	wantError(t, err, storage.ErrNotFound)
	got, err = b.Server(ctx, b.orgA, want.ID)
	noError(t, err)
	equal(t, got, want)

	// An edit that panics leaves the store usable and the server as it was.
	func() {
		defer func() { _ = recover() }()
		_, _ = b.UpdateServer(ctx, b.orgA, want.ID, func(v *storage.Server) error { v.Name = "never"; panic("edit") })
	}()
	got, err = b.UpdateServer(ctx, b.orgA, want.ID, func(*storage.Server) error { return nil })
	noError(t, err)
	equal(t, got, want)

	// Concurrent edits each see the one before.
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if _, err := b.UpdateServer(ctx, b.orgA, want.ID, func(v *storage.Server) error { v.ClientID += "x"; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, err = b.Server(ctx, b.orgA, want.ID)
	noError(t, err)
	equal(t, got.ClientID, strings.Repeat("x", 16))
}

func testDeleteServer(t *testing.T, b *bundle) {
	ctx := t.Context()
	custom := b.customEntry(t, b.orgA, "Custom")
	var servers []storage.Server
	for _, name := range []string{"First", "Second"} {
		v := b.newServer(b.orgA, name, strings.ToLower(name))
		v.DirectoryID, v.Entry = custom.ID, custom
		noError(t, b.CreateServer(ctx, v))
		servers = append(servers, v)
	}
	key1 := storage.ConnectionKey{OrganizationID: b.orgA, UserID: b.userA1, ServerID: servers[0].ID}
	key2 := storage.ConnectionKey{OrganizationID: b.orgA, UserID: b.userA2, ServerID: servers[0].ID}
	connections := []storage.Connection{b.connect(t, key1), b.connect(t, key2)}
	if key2.UserID < key1.UserID {
		connections[0], connections[1] = connections[1], connections[0]
	}
	bystander := b.connect(t, b.connectionA1)
	client := oauthClient(b.orgA, servers[0].ID)
	noError(t, b.PutOAuthClient(ctx, client, ""))
	a := attempt(key1)
	noError(t, b.CreateAttempt(ctx, a))

	deleted, err := b.DeleteServer(untold(ctx), b.orgA, servers[0].ID, "", start)
	noError(t, err)
	equal(t, deleted, storage.DeletedServer{Server: servers[0], Connections: connections, Client: &client})

	_, err = b.DeleteServer(untold(ctx), b.orgA, servers[0].ID, "", start)
	wantError(t, err, storage.ErrNotFound)
	_, err = b.Connection(ctx, key1)
	wantError(t, err, storage.ErrNotFound)
	_, err = b.OAuthClient(ctx, b.orgA, servers[0].ID)
	wantError(t, err, storage.ErrNotFound)
	_, err = b.TakeAttempt(ctx, a.StateHash, start)
	wantError(t, err, storage.ErrNotFound)
	got, err := b.Connection(ctx, b.connectionA1)
	noError(t, err)
	equal(t, got, bystander)

	// O15: a new record with the same id starts from nothing.
	noError(t, b.CreateServer(ctx, servers[0]))
	_, err = b.Connection(ctx, key1)
	wantError(t, err, storage.ErrNotFound)
	_, err = b.DeleteServer(untold(ctx), b.orgA, servers[0].ID, "", start)
	noError(t, err)

	// The custom entry is deleted with its last server, others stay.
	equal(t, b.directory(t, b.orgA), []string{"Custom", "Notes"})
	deleted, err = b.DeleteServer(untold(ctx), b.orgA, servers[1].ID, "", start)
	noError(t, err)
	equal(t, deleted, storage.DeletedServer{Server: servers[1]})
	equal(t, b.directory(t, b.orgA), []string{"Notes"})
}

func oauthClient(organization, server string) storage.OAuthClient {
	return storage.OAuthClient{OrganizationID: organization, ServerID: server, Issuer: "https://as.example.com", ClientID: "dcr-1",
		SealedSecret: []byte{1, 0, 2}, AuthMethod: "client_secret_basic", Kind: storage.ClientRegistered,
		RedirectURI: "https://gate.example.com/api/oauth/callback", Endpoints: storage.OAuthEndpoints{Issuer: "https://as.example.com", TokenEndpoint: "https://as.example.com/token"},
		Scopes: []string{"read"}, IssuerInResponse: true, CreatedAt: start, Origin: "https://mcp.example.com",
		SecretExpiresAt: start.Add(time.Hour), RefreshResourceOff: true, Refused: true}
}

func testOAuthClients(t *testing.T, b *bundle) {
	ctx := t.Context()
	_, err := b.OAuthClient(ctx, b.orgA, b.serverA.ID)
	wantError(t, err, storage.ErrNotFound)
	c := oauthClient(b.orgA, b.serverA.ID)
	noError(t, b.PutOAuthClient(ctx, c, ""))
	got, err := b.OAuthClient(ctx, b.orgA, b.serverA.ID)
	noError(t, err)
	equal(t, got, c)

	c = storage.OAuthClient{OrganizationID: b.orgA, ServerID: b.serverA.ID, Issuer: "https://as2.example.com", ClientID: "https://gate.example.com/client",
		AuthMethod: "none", Kind: storage.ClientMetadata, CreatedAt: start.Add(time.Hour)}
	// Only a caller that has seen the stored client replaces it: another node's client stays.
	for _, former := range []string{"", "dcr-2"} {
		wantConflict(t, b.PutOAuthClient(ctx, c, former), "client_id")
	}
	kept, err := b.OAuthClient(ctx, b.orgA, b.serverA.ID)
	noError(t, err)
	equal(t, kept, got)
	noError(t, b.PutOAuthClient(ctx, c, got.ClientID))
	got, err = b.OAuthClient(ctx, b.orgA, b.serverA.ID)
	noError(t, err)
	equal(t, got, c)

	// The client is deleted with an edit that makes it another one, or stays with its former issuer.
	b.server(t, b.orgA, "Taken")
	for _, edit := range []func(*storage.Server) (bool, error){
		func(*storage.Server) (bool, error) { return true, storage.ErrUnavailable },
		func(s *storage.Server) (bool, error) { s.Name = "Taken"; return true, nil },
	} {
		if _, err := b.UpdateServerAndClient(ctx, b.orgA, b.serverA.ID, edit); err == nil {
			t.Error("the edit is taken")
		}
		_, err := b.OAuthClient(ctx, b.orgA, b.serverA.ID)
		noError(t, err)
	}
	for range 2 {
		_, err = b.UpdateServerAndClient(ctx, b.orgA, b.serverA.ID, func(s *storage.Server) (bool, error) { s.ClientID = "another"; return true, nil })
		noError(t, err)
	}
	_, err = b.OAuthClient(ctx, b.orgA, b.serverA.ID)
	wantError(t, err, storage.ErrNotFound)
	wantConflict(t, b.PutOAuthClient(ctx, c, c.ClientID), "client_id") // the client to replace is gone
	wantError(t, b.PutOAuthClient(ctx, oauthClient(b.orgA, b.unknown), ""), storage.ErrNotFound)

	// Of several nodes that register at the same moment one client is stored, and all use it.
	for _, former := range []string{"", "first"} {
		errs := make([]error, 4)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() {
				c := oauthClient(b.orgA, b.serverA.ID)
				if c.ClientID = "first"; former != "" {
					c.ClientID = fmt.Sprint("second-", i)
				}
				errs[i] = b.PutOAuthClient(ctx, c, former)
			})
		}
		all.Wait()
		stored := 0
		for _, err := range errs {
			if err == nil {
				stored++
			} else {
				wantConflict(t, err, "client_id")
			}
		}
		equal(t, stored, 1)
	}
}

// views lists the names of the servers that a filter of organization A finds for user A1, on one page.
func (b *bundle) views(t *testing.T, f storage.ServerFilter) []string {
	t.Helper()
	f.OrganizationID, f.UserID, f.Page = b.orgA, b.userA1, storage.PageRequest{Number: 1, Limit: 100}
	if f.Now.IsZero() {
		f.Now = start
	}
	page, err := b.Servers(t.Context(), f)
	noError(t, err)
	equal(t, page.Total, len(page.Items))
	var all []string
	for _, v := range page.Items {
		all = append(all, v.Name)
	}
	return all
}

func testServerLists(t *testing.T, b *bundle) {
	ctx := t.Context()
	for i, name := range []string{"beta", "Alpha", "50%_off\\", "ÉCLAIR"} {
		v := b.newServer(b.orgA, name, fmt.Sprintf("list-%d", i))
		if name == "beta" {
			v.Status = storage.ServerPending
		}
		noError(t, b.CreateServer(ctx, v))
	}
	everything := []string{"50%_off\\", "Alpha", "beta", "Shared name", "ÉCLAIR"}
	connected := b.connect(t, b.connectionA1)

	one := []string{"Shared name"}
	for _, c := range []struct {
		name   string
		filter storage.ServerFilter
		want   []string
	}{
		{"everything", storage.ServerFilter{}, everything},
		{"name", storage.ServerFilter{Search: "aLPHa"}, []string{"Alpha"}},
		{"beyond ASCII", storage.ServerFilter{Search: "éclair"}, []string{"ÉCLAIR"}},
		{"slug", storage.ServerFilter{Search: "LIST-1"}, []string{"Alpha"}},
		{"percent is no wildcard", storage.ServerFilter{Search: "%"}, []string{"50%_off\\"}},
		{"underscore is no wildcard", storage.ServerFilter{Search: "_O"}, []string{"50%_off\\"}},
		{"backslash escapes nothing", storage.ServerFilter{Search: "off\\"}, []string{"50%_off\\"}},
		{"Q05 a long pattern", storage.ServerFilter{Search: strings.Repeat("(a+)+$%", 20_000)}, nil},
		{"id", storage.ServerFilter{ID: b.serverA.ID}, one},
		{"slug exactly", storage.ServerFilter{Slug: b.serverA.Slug}, one},
		{"no part of a slug", storage.ServerFilter{Slug: b.serverA.Slug[:3]}, nil},
		{"O05 another organization's id", storage.ServerFilter{ID: b.serverB.ID}, nil},
		{"status", storage.ServerFilter{Status: []storage.ServerStatus{storage.ServerPending}}, []string{"beta"}},
		{"statuses", storage.ServerFilter{Status: []storage.ServerStatus{storage.ServerPending, storage.ServerActive, storage.ServerError, storage.ServerActive}}, everything},
		{"unknown status", storage.ServerFilter{Status: []storage.ServerStatus{"unheard-of"}}, nil},
		{"empty status", storage.ServerFilter{Status: []storage.ServerStatus{""}}, nil},
		{"connected", storage.ServerFilter{ConnectionStatuses: []storage.ConnectionStatus{storage.ConnectionConnected}}, one},
		{"not connected", storage.ServerFilter{ConnectionStatuses: []storage.ConnectionStatus{storage.ConnectionAvailable, storage.ConnectionPending, storage.ConnectionError}},
			[]string{"50%_off\\", "Alpha", "beta", "ÉCLAIR"}},
		{"unknown connection status", storage.ServerFilter{ConnectionStatuses: []storage.ConnectionStatus{"unheard-of"}}, nil},
		{"all together", storage.ServerFilter{Search: "a", Status: []storage.ServerStatus{storage.ServerActive},
			ConnectionStatuses: []storage.ConnectionStatus{storage.ConnectionAvailable}}, []string{"Alpha", "ÉCLAIR"}},
	} {
		t.Run(c.name, func(t *testing.T) { equal(t, b.views(t, c.filter), c.want) })
	}

	page, err := b.Servers(ctx, storage.ServerFilter{OrganizationID: b.orgA, UserID: b.userA1, ID: b.serverA.ID, Now: start, Page: storage.PageRequest{Number: 1, Limit: 1}})
	noError(t, err)
	equal(t, page.Items, []storage.ServerView{{Server: b.serverA, ConnectionStatus: connected.Status}})

	var all []string
	for number := 1; number <= 4; number++ {
		page, err := b.Servers(ctx, storage.ServerFilter{OrganizationID: b.orgA, UserID: b.userA1, Now: start, Page: storage.PageRequest{Number: number, Limit: 2}})
		noError(t, err)
		equal(t, page.Total, len(everything)) // also beyond the end
		for _, v := range page.Items {
			all = append(all, v.Name)
		}
	}
	equal(t, all, everything)
	page, err = b.Servers(ctx, storage.ServerFilter{OrganizationID: b.orgA, Now: start, Page: storage.PageRequest{Number: math.MaxInt, Limit: 100}})
	noError(t, err)
	equal(t, len(page.Items), 0)
}

func testPagingUnderInserts(t *testing.T, b *bundle) {
	ctx := t.Context()
	for i := range 20 {
		b.server(t, b.orgB, fmt.Sprintf("M %02d", i))
	}
	stop := make(chan struct{})
	var inserting sync.WaitGroup
	inserting.Go(func() {
		for i := range 500 {
			select {
			case <-stop:
				return
			default:
			}
			if err := b.CreateServer(ctx, b.newServer(b.orgB, fmt.Sprintf("Z %d", i), fmt.Sprintf("z-%d", i))); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 20 {
		seen := make(map[string]bool)
		for number := 1; number <= 4; number++ {
			page, err := b.Servers(ctx, storage.ServerFilter{OrganizationID: b.orgB, Now: start, Page: storage.PageRequest{Number: number, Limit: 5}})
			noError(t, err)
			if page.Total < 21 || len(page.Items) != 5 {
				t.Fatalf("page %d: %d items of %d", number, len(page.Items), page.Total)
			}
			for _, v := range page.Items {
				if seen[v.ID] || v.Name[0] != 'M' {
					t.Fatalf("page %d shows %s again, or too early", number, v.Name)
				}
				seen[v.ID] = true
			}
		}
	}
	close(stop)
	inserting.Wait()
}
