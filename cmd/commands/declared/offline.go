package declared

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/credential/entryedit"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/ops/declare"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// maxMeta bounds a server's meta, as the API's default does.
const maxMeta = 64 << 10

// node is the writer of the audit log's records of applied files: no gateway has the name.
const node = "durward-apply"

// Offline is a store without a gateway.
type Offline struct {
	Store   storage.Store
	Keyring *seal.Keyring
	Secret  func(reference string) (seal.Secret, error)
	// CheckURL judges the addresses of directory entries, Providers are the identity providers that they may name.
	CheckURL  func(u *url.URL) error
	Providers []string
	// Warning is told before files are planned; "": there is none.
	Warning string
	Warn    io.Writer
	// AnyIssuer says that agents may be of other issuers than those of Providers, because not all are known.
	AnyIssuer bool
	// Models are those of the configuration.
	Models *accounts.Base
}

// Run implements Target.
func (o Offline) Run(ctx context.Context, files []declare.File, how How) ([]declare.Plan, error) {
	if o.Warning != "" {
		fmt.Fprintln(o.Warn, "warning: "+o.Warning)
	}
	return declare.Run(ctx, declare.Options{
		Store: record.NewStore(o.Store, nil), Keyring: o.Keyring, Now: time.Now, MaxMeta: maxMeta, Prune: how.Prune, Secret: Secrets(o.Secret),
		Entries: entryedit.Rules{MaxMeta: maxMeta, CheckURL: o.CheckURL, Provider: func(issuer string) bool { return slices.Contains(o.Providers, issuer) }},
		Models:  o.Models,
		Issuer: func(named string) (string, bool) {
			return named, named != "" && (o.AnyIssuer || slices.Contains(o.Providers, named))
		},
		Organization: o.organization, Audit: o.audit,
	}, files, how.Dry)
}

// organization finds an organization by its id or slug.
func (o Offline) organization(ctx context.Context, named string) (string, error) {
	all, err := o.Store.Organizations(ctx)
	if err != nil {
		return "", err
	}
	var found []storage.Organization
	for _, one := range all {
		if named == "" || one.ID == named || one.Slug == named {
			found = append(found, one)
		}
	}
	switch {
	case len(found) == 1:
		return found[0].ID, nil
	case named == "":
		return "", fmt.Errorf("the store has %d organizations: say which one, by its slug or id", len(all))
	case len(found) == 0:
		return "", fmt.Errorf("the store has no organization %q: a user's first login makes it", named)
	}
	return "", fmt.Errorf("several organizations have the slug %q: give the id", named)
}

// audit records what is applied in the name of nobody.
func (o Offline) audit(ctx context.Context, organization string) (context.Context, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	return storage.WithAudit(ctx, &storage.Audited{
		OrganizationID: organization, Node: node, MACs: o.Keyring.MAC(record.MACPurpose),
		Entries: []storage.AuditEntry{{
			ID: id.String(), At: time.Now().UTC(), Kind: storage.AuditAdmin, Event: "configuration.apply", Client: node, Outcome: "ok",
			Detail: map[string]any{"offline": true},
		}},
	}), nil
}

// Export implements Target.
func (o Offline) Export(ctx context.Context, organization string) ([]byte, error) {
	id, err := o.organization(ctx, organization)
	if err != nil {
		return nil, err
	}
	organizationRecord, err := o.Store.Organization(ctx, id)
	if err != nil {
		return nil, err
	}
	name := organizationRecord.Slug
	if name == "" {
		name = id
	}
	return declare.Export(ctx, o.Store, o.Models.ConfiguredModels(), id, name, time.Now())
}

// Close implements Target.
func (o Offline) Close() error { return o.Store.Close() }
