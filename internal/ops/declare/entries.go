package declare

import (
	"context"
	"fmt"
	"strings"

	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/credential/entryedit"
	"github.com/durward-gateway/durward/internal/credential/serveredit"
	"github.com/durward-gateway/durward/storage"
)

// formOfEntry returns an entry as an administrator would have written it.
func formOfEntry(e storage.DirectoryEntry) directory.Record {
	r := entryedit.RecordOf(e)
	if text := strings.TrimSpace(string(r.Meta)); text == "{}" || text == "null" {
		r.Meta = nil
	}
	return r
}

// planEntries plans the entries of the directory. They come before everything else: servers of the same files name them.
func (p *planner) planEntries(d *document, whole *validate.Object) {
	read, _ := objects(d, whole, directoryMember)
	for _, o := range read {
		if o == nil {
			continue
		}
		var record directory.Record
		was := readEntry(o, p.Entries, &record)
		o.Only()
		e := record.Entry(storage.SourceCustom)
		if e.Slug == "" {
			if e.Slug = slug.FromName(e.Name); slug.Reserved(e.Slug) {
				o.Report(validate.ValueError, "the name gives a slug that is reserved: say which slug it has", "name")
			}
		}
		if p.entriesDeclared[e.Slug] {
			o.Report(validate.ValueError, fmt.Sprintf("an entry with the slug %q is declared already, or gets another slug", e.Slug), "slug")
			continue
		}
		p.entriesDeclared[e.Slug] = true
		p.planEntry(o, e, record, was)
	}
}

// readEntry reads an entry of the directory and its former slug.
func readEntry(o *validate.Object, rules entryedit.Rules, record *directory.Record) (was string) {
	was = o.Text("was", validate.Text{Min: 1}).Value
	rules.New(record)(o)
	return was
}

func (p *planner) planEntry(o *validate.Object, e storage.DirectoryEntry, record directory.Record, was string) {
	e.OrganizationID, e.CreatedAt, e.UpdatedAt = p.organization, p.now, p.now
	former, exists := p.entries[e.Slug]
	if renamed, there := p.entries[was]; there && was != e.Slug {
		if exists {
			o.Report(validate.ValueError, fmt.Sprintf("there are entries of both slugs: %q cannot become %q", was, e.Slug), "was")
			return
		}
		former, exists = renamed, true
		p.entriesDeclared[was] = true // nothing else has it in these files
	}
	switch {
	case exists && p.isManaged(KindEntry, former.ID):
		o.Report(validate.ValueError, fmt.Sprintf("the entry %q is declared already, under another slug", former.Slug), "slug")
		return
	case !exists:
		e.ID = newID()
		p.manages(KindEntry, e.ID)
		p.entries[e.Slug] = e
		fields, err := differences(struct{}{}, formOfEntry(e))
		p.add(o, err, Change{Action: Create, Kind: KindEntry, Name: e.Slug, Fields: fields, id: e.ID, do: func(ctx context.Context) error {
			return p.Store.CreateDirectoryEntry(ctx, e)
		}})
		return
	case former.Source != storage.SourceCustom:
		o.Report(validate.ValueError, fmt.Sprintf("the entry %q comes with the gateway or its configuration, and is not changed here", e.Slug), "slug")
		return
	}
	if former.Slug != e.Slug {
		delete(p.entries, former.Slug)
	}
	entryedit.CheckKept(o, record, former)
	e.ID, e.CreatedAt = former.ID, former.CreatedAt
	p.manages(KindEntry, e.ID)
	p.entries[e.Slug] = e
	fields, err := differences(formOfEntry(former), formOfEntry(e))
	if len(fields) == 0 && err == nil {
		return
	}
	p.add(o, err, Change{Action: Update, Kind: KindEntry, Name: e.Slug, Was: renamedFrom(former.Slug, e.Slug), Fields: fields, id: e.ID, do: func(ctx context.Context) error {
		changed, err := p.Store.UpdateDirectoryEntry(ctx, p.organization, e.ID, func(v *storage.DirectoryEntry) error {
			*v = e
			return nil
		})
		if err != nil {
			return err
		}
		return serveredit.Activate(ctx, p.Store, changed, p.now)
	}})
}

// renamedFrom returns the former name where it is another one.
func renamedFrom(former, name string) string {
	if former == name {
		return ""
	}
	return former
}
