package declare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/credential/serveredit"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// findServers finds the servers of all documents by their names, or by their former ones.
func (p *planner) findServers(documents []*document) map[*yaml.Node]found[storage.Server] {
	all := find(p, documents, kind[storage.Server]{
		list: serversMember, member: "name", what: "a server", all: p.servers,
		id: func(v *storage.Server) string { return v.ID }, name: func(v *storage.Server) string { return v.Name }, same: strings.EqualFold,
	}, make(map[string]bool))
	for _, f := range all {
		p.names.serverOf[f.id] = f.name
	}
	return all
}

// isReference reports whether a text names a place where a secret is, in the form of the configuration.
func isReference(s string) bool {
	return strings.HasSuffix(s, "}") && (strings.HasPrefix(s, "{env.") || strings.HasPrefix(s, "{file."))
}

// secretMembers are the members that hold references to secrets, by the list that they are in.
var secretMembers = map[string][]string{serversMember: {"client_secret", "client_private_key"}, providersMember: {"api_key"}}

// eachSecret calls f with every member of a document that names a secret.
func (d *document) eachSecret(f func(n *yaml.Node, path string)) {
	for list, members := range secretMembers {
		for i, n := range d.each(list) {
			for _, name := range members {
				if v := member(n, name); v != nil && v.Tag == "!!str" {
					f(v, fmt.Sprintf("%s[%d].%s", list, i, name))
				}
			}
		}
	}
}

// References lists the references to secrets that the files contain. Files that cannot be read contain none.
func References(files []File) (references []string) {
	documents, _ := read(files)
	for _, d := range documents {
		d.eachSecret(func(n *yaml.Node, _ string) {
			if isReference(n.Value) {
				references = append(references, n.Value)
			}
		})
	}
	return references
}

// resolveSecrets puts secrets in the place of their references.
func (p *planner) resolveSecrets(d *document) {
	d.eachSecret(func(n *yaml.Node, path string) {
		if !isReference(n.Value) {
			p.wrong(d, n, path, "a file holds no secret: write a reference to it, {env.NAME} or {file./path}")
			n.Value, n.Tag = "", "!!null"
			return
		}
		secret, err := p.Secret(n.Value)
		if err != nil {
			p.wrong(d, n, path, err.Error())
			n.Value, n.Tag = "", "!!null"
			return
		}
		n.Value = secret.Reveal()
	})
}

// serverFields holds the members of a server in a file.
type serverFields struct {
	name, slug, entry, clientID string
	secret                      validate.Field[seal.Secret] // or the key, when isKey
	isKey                       bool
	meta                        json.RawMessage
}

func readServer(o *validate.Object, maxMeta int) (f serverFields) {
	f.name = o.Name(validate.Required, directory.MaxName).Value
	o.Text("was", validate.Text{Min: 1})
	f.slug = serveredit.Slug(o, 0).Value
	f.entry = o.Text("directory", validate.Text{Flags: validate.Required, Min: 1}).Value
	if f.clientID = serveredit.ClientID(o).Value; serveredit.LooksObfuscated(f.clientID) {
		o.Report(validate.ValueError, serveredit.MsgObfuscated, "client_id")
	}
	f.secret, f.isKey = serveredit.ClientProof(o)
	f.meta = o.Document("meta", 0, maxMeta).Or(json.RawMessage("{}"))
	return f
}

func (p *planner) planServers(d *document, whole *validate.Object, all map[*yaml.Node]found[storage.Server]) {
	read, nodes := objects(d, whole, serversMember)
	for i, o := range read {
		if o == nil {
			continue
		}
		f, known := all[nodes[i]]
		p.planServer(o, f, known)
	}
}

func (p *planner) planServer(o *validate.Object, f found[storage.Server], known bool) {
	s := storage.Server{ID: f.id, OrganizationID: p.organization, CreatedBy: p.By, CreatedAt: p.now, UpdatedAt: p.now}
	if f.present != nil {
		s = *f.present
	}
	read := readServer(o, p.MaxMeta)
	o.Only()
	s.Name, s.ClientID, s.Meta = read.name, read.clientID, read.meta
	switch e, ok := p.entries[read.entry]; {
	case read.entry == "":
	case !ok:
		o.Report(validate.ValueError, fmt.Sprintf("the server directory has no entry with the slug %q", read.entry), "directory")
	case f.present != nil && f.present.DirectoryID != e.ID:
		o.Report(validate.ValueError, fmt.Sprintf("the directory entry of a server never changes, and is %q: declare another server", f.present.Entry.Slug), "directory")
	default:
		s.DirectoryID, s.Entry = e.ID, e
	}
	p.giveSlug(o, &s, read.slug, f.present == nil)
	if err := serveredit.CheckProof(s.Entry, read.secret.Set(), read.isKey); err != nil {
		var problems validate.Problems
		if errors.As(err, &problems) {
			for _, problem := range problems {
				problem.Loc = problem.Loc[1:]
				o.Note(problem)
			}
		}
	}
	if known {
		p.keepServer(o, s, f, read.secret.Value)
	}
}

// giveSlug gives a server the slug that the file chose, or a new one that of its name.
func (p *planner) giveSlug(o *validate.Object, s *storage.Server, chosen string, isNew bool) {
	switch {
	case chosen != "":
		s.Slug = chosen
	case isNew && s.Name != "":
		if s.Slug = slug.FromName(s.Name); slug.Reserved(s.Slug) {
			o.Report(validate.ValueError, "the name gives a slug that is reserved: say which slug it has", "name")
		}
	}
	for _, other := range p.servers {
		if other.Slug == s.Slug && other.ID != s.ID {
			o.Report(validate.ValueError, fmt.Sprintf("the server %q has the slug %q already: say which slug this one has", other.Name, s.Slug), "slug")
		}
	}
}

// keepServer adds the change that makes the server so.
func (p *planner) keepServer(o *validate.Object, s storage.Server, f found[storage.Server], secret seal.Secret) {
	p.manages(KindServer, s.ID)
	place := connection.ClientSecretAD(p.organization, s.ID)
	same, err := p.sameSecret(f.present, secret)
	if err == nil && !same {
		if s.SealedClientSecret = nil; !secret.Empty() {
			s.SealedClientSecret, err = p.Keyring.Seal([]byte(secret.Reveal()), place)
		}
	}
	if err != nil {
		o.Report(validate.ValueError, "the client's secret cannot be sealed or compared: "+err.Error(), "client_secret")
		return
	}
	if f.present == nil {
		s.Status = serveredit.Lifecycle(s.Entry, s.ClientID != "", !secret.Empty())
		fields, err := differences(struct{}{}, formOfServer(s))
		p.add(o, err, Change{Action: Create, Kind: KindServer, Name: s.Name, Fields: fields, id: s.ID, do: func(ctx context.Context) error {
			return p.Store.CreateServer(ctx, s)
		}})
		return
	}
	present := *f.present
	present.Entry.Slug = s.Entry.Slug // it never becomes another entry, and has another name only
	fields, err := differences(formOfServer(present), formOfServer(s))
	if !same && len(fields) == 0 || !same && s.SealedClientSecret != nil && f.present.SealedClientSecret != nil {
		fields = append(fields, FieldChange{Field: "client_secret"})
	}
	if len(fields) == 0 && err == nil {
		return
	}
	p.add(o, err, Change{Action: Update, Kind: KindServer, Name: s.Name, Was: f.renamed(f.present.Name), Fields: fields, id: s.ID, do: func(ctx context.Context) error {
		_, err := p.Store.UpdateServerAndClient(ctx, p.organization, s.ID, func(v *storage.Server) (bool, error) {
			// As for a change by the API, users stay connected when a secret is merely replaced.
			another := v.ClientID != s.ClientID || (v.SealedClientSecret == nil) != (s.SealedClientSecret == nil) ||
				!same && v.Status == storage.ServerError && v.Entry.OwnServer()
			if another || !same {
				v.Status = serveredit.Lifecycle(v.Entry, s.ClientID != "", s.SealedClientSecret != nil)
			}
			v.Name, v.Slug, v.ClientID, v.SealedClientSecret, v.Meta, v.UpdatedAt = s.Name, s.Slug, s.ClientID, s.SealedClientSecret, s.Meta, p.now
			return another, nil
		})
		return err
	}})
}

// add adds a change, or reports why there is none.
func (p *planner) add(o *validate.Object, err error, c Change) {
	if err != nil {
		o.Report(validate.ValueError, err.Error())
		return
	}
	p.changes = append(p.changes, c)
}

// sameSecret reports whether a server has this secret.
func (p *planner) sameSecret(present *storage.Server, secret seal.Secret) (bool, error) {
	if present == nil || present.SealedClientSecret == nil {
		return secret.Empty(), nil
	}
	if secret.Empty() {
		return false, nil
	}
	plain, err := p.Keyring.Open(present.SealedClientSecret, connection.ClientSecretAD(p.organization, present.ID))
	return bytes.Equal(plain, []byte(secret.Reveal())), err
}
