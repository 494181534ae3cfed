package storagetest

import (
	"errors"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

func names(entries []storage.DirectoryEntry) []string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Name)
	}
	return all
}

// directory lists the names that an organization sees.
func (b *bundle) directory(t *testing.T, organization string) []string {
	t.Helper()
	page, err := b.DirectoryEntries(t.Context(), storage.DirectoryFilter{OrganizationID: organization, Page: storage.PageRequest{Number: 1, Limit: 100}})
	noError(t, err)
	equal(t, page.Total, len(page.Items))
	return names(page.Items)
}

func testSyncDirectory(t *testing.T, b *bundle) {
	ctx := t.Context()
	sync := func(source storage.Source, now time.Time, entries ...storage.DirectoryEntry) error {
		return b.SyncDirectory(ctx, source, entries, now)
	}
	var changes []string
	defer b.OnChange(func(organization string) { changes = append(changes, organization) })()

	one, two := entry("One"), entry("Two")
	noError(t, sync(storage.SourceConfig, start, one, two))
	got, err := b.DirectoryEntry(ctx, b.orgA, one.ID)
	noError(t, err)
	want := one
	want.Source, want.CreatedAt, want.UpdatedAt = storage.SourceConfig, start, start
	equal(t, got, want)
	equal(t, b.directory(t, b.orgB), []string{"Notes", "One", "Two"}) // the catalogue's entries stay
	equal(t, changes, []string{""})

	// The same entries again change nothing and report nothing.
	noError(t, sync(storage.SourceConfig, start.Add(time.Hour), two, one))
	got, err = b.DirectoryEntry(ctx, b.orgA, one.ID)
	noError(t, err)
	equal(t, got, want)
	equal(t, changes, []string{""})

	// A changed entry keeps its creation time.
	one.Description, one.Scopes = "changed", nil
	noError(t, sync(storage.SourceConfig, start.Add(time.Hour), one, two))
	got, err = b.DirectoryEntry(ctx, b.orgA, one.ID)
	noError(t, err)
	want.Description, want.Scopes, want.UpdatedAt = "changed", nil, start.Add(time.Hour)
	equal(t, got, want)

	// A removed entry is deleted, unless a server refers to it.
	v := b.newServer(b.orgA, "Refers", "refers")
	v.DirectoryID = two.ID
	noError(t, b.CreateServer(ctx, v))
	noError(t, sync(storage.SourceConfig, start))
	equal(t, b.directory(t, b.orgA), []string{"Notes", "Two"})
	_, err = b.DeleteServer(ctx, b.orgA, v.ID, "", start)
	noError(t, err)
	equal(t, b.directory(t, b.orgA), []string{"Notes", "Two"}) // a read-only entry does not go with its server
	noError(t, sync(storage.SourceConfig, start))
	equal(t, b.directory(t, b.orgA), []string{"Notes"})

	// The call stores all or nothing.
	a, twin := entry("A"), entry("Twin")
	twin.Slug = a.Slug
	wantConflict(t, sync(storage.SourceConfig, start, a, twin), "slug")
	a.ID = b.entry.ID // the catalogue's
	wantConflict(t, sync(storage.SourceConfig, start, entry("B"), a), "id")
	equal(t, b.directory(t, b.orgA), []string{"Notes"})
	if err := sync(storage.SourceCustom, start); err == nil {
		t.Error("custom entries were synced")
	}

	// A new entry may have a slug that an organization chose first, or that a removed one still has.
	custom := b.customEntry(t, b.orgA, "Custom")
	global := entry("Global")
	global.Slug = custom.Slug
	noError(t, sync(storage.SourceConfig, start, global))
}

func testCustomEntries(t *testing.T, b *bundle) {
	ctx := t.Context()
	e := b.customEntry(t, b.orgA, "Mine")
	got, err := b.DirectoryEntry(ctx, b.orgA, e.ID)
	noError(t, err)
	equal(t, got, e)
	equal(t, b.directory(t, b.orgA), []string{"Mine", "Notes"})
	equal(t, b.directory(t, b.orgB), []string{"Notes"})

	// Slugs are unique among the entries that the organization sees.
	for _, slug := range []string{e.Slug, b.entry.Slug} {
		twin := entry("Twin")
		twin.OrganizationID, twin.Source, twin.Slug = b.orgA, storage.SourceCustom, slug
		wantConflict(t, b.CreateDirectoryEntry(ctx, twin), "slug")
	}
	elsewhere := entry("Elsewhere")
	elsewhere.OrganizationID, elsewhere.Source, elsewhere.Slug = b.orgB, storage.SourceCustom, e.Slug
	noError(t, b.CreateDirectoryEntry(ctx, elsewhere))
	global := entry("Global")
	global.Source = storage.SourceCustom
	if err := b.CreateDirectoryEntry(ctx, global); err == nil {
		t.Error("a custom entry without an organization was created")
	}

	// Updates.
	updated, err := b.UpdateDirectoryEntry(ctx, b.orgA, e.ID, func(d *storage.DirectoryEntry) error {
		equal(t, *d, e)
		d.Name, d.URL, d.Meta, d.UpdatedAt = "Renamed", "https://new.example.com", nil, start.Add(time.Minute)
		d.ID, d.OrganizationID, d.Source, d.CreatedAt = newID(), b.orgB, storage.SourceConfig, start.Add(time.Hour)
		return nil
	})
	noError(t, err)
	e.Name, e.URL, e.Meta, e.UpdatedAt = "Renamed", "https://new.example.com", nil, start.Add(time.Minute)
	equal(t, updated, e)
	got, err = b.DirectoryEntry(ctx, b.orgA, e.ID)
	noError(t, err)
	equal(t, got, e)

	_, err = b.UpdateDirectoryEntry(ctx, b.orgA, e.ID, func(d *storage.DirectoryEntry) error {
		d.Slug = b.entry.Slug
		return nil
	})
	wantConflict(t, err, "slug")
	refusal := errors.New("refused")
	_, err = b.UpdateDirectoryEntry(ctx, b.orgA, e.ID, func(d *storage.DirectoryEntry) error {
		d.Name = "never"
		return refusal
	})
	if err != refusal {
		t.Errorf("got %v, want the edit's own error", err)
	}
	got, err = b.DirectoryEntry(ctx, b.orgA, e.ID)
	noError(t, err)
	equal(t, got, e)

	// The organization cannot change read-only entries.
	_, err = b.UpdateDirectoryEntry(ctx, b.orgA, b.entry.ID, func(*storage.DirectoryEntry) error { return nil })
	wantError(t, err, storage.ErrNotFound)
	wantError(t, b.DeleteDirectoryEntry(ctx, b.orgA, b.entry.ID), storage.ErrNotFound)

	// Deletions.
	v := b.newServer(b.orgA, "Refers", "refers")
	v.DirectoryID = e.ID
	noError(t, b.CreateServer(ctx, v))
	wantConflict(t, b.DeleteDirectoryEntry(ctx, b.orgA, e.ID), "server")
	_, err = b.UpdateServer(ctx, b.orgA, v.ID, func(v *storage.Server) error {
		v.DirectoryID = b.entry.ID
		return nil
	})
	noError(t, err)
	noError(t, b.DeleteDirectoryEntry(ctx, b.orgA, e.ID))
	wantError(t, b.DeleteDirectoryEntry(ctx, b.orgA, e.ID), storage.ErrNotFound)
	_, err = b.DirectoryEntry(ctx, b.orgA, e.ID)
	wantError(t, err, storage.ErrNotFound)
}

func testDirectoryLists(t *testing.T, b *bundle) {
	ctx := t.Context()
	for _, name := range []string{"beta", "Alpha", "ÄRGER", "al pine", "100%_\\sure"} {
		b.customEntry(t, b.orgA, name)
	}
	equal(t, b.directory(t, b.orgA), []string{"100%_\\sure", "Alpha", "al pine", "beta", "Notes", "ÄRGER"})

	for _, c := range []struct {
		search string
		want   []string
	}{
		{"ALPHA", []string{"Alpha"}},
		{"ärg", []string{"ÄRGER"}},
		{"al", []string{"Alpha", "al pine"}},
		{"about BETA", []string{"beta"}}, // the description
		{b.entry.Slug, []string{"Notes"}},
		{"%", []string{"100%_\\sure"}},
		{"_\\S", []string{"100%_\\sure"}},
		{"nothing", nil},
	} {
		page, err := b.DirectoryEntries(ctx, storage.DirectoryFilter{OrganizationID: b.orgA, Search: c.search, Page: storage.PageRequest{Number: 1, Limit: 10}})
		noError(t, err)
		equal(t, names(page.Items), c.want)
		equal(t, page.Total, len(c.want))
	}

	var all []string
	for number := 1; number <= 4; number++ {
		page, err := b.DirectoryEntries(ctx, storage.DirectoryFilter{OrganizationID: b.orgA, Page: storage.PageRequest{Number: number, Limit: 2}})
		noError(t, err)
		equal(t, page.Total, 6)
		all = append(all, names(page.Items)...)
	}
	equal(t, all, b.directory(t, b.orgA))
}
