package gatewayapi

import (
	"time"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/llm/llmedit"
	"github.com/durward-gateway/durward/internal/ops/declare"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// timeoutsView is the API's form of timeouts, in milliseconds; null takes the surrounding value.
type timeoutsView struct {
	Connect  *int64 `json:"connect_ms"`
	Response *int64 `json:"response_ms"`
	Idle     *int64 `json:"idle_ms"`
}

func viewTimeouts(t storage.ModelTimeouts) timeoutsView {
	milliseconds := func(d time.Duration) *int64 {
		if d == 0 {
			return nil
		}
		n := d.Milliseconds()
		return &n
	}
	return timeoutsView{milliseconds(t.Connect), milliseconds(t.Response), milliseconds(t.Idle)}
}

// providerView is the API's view of a provider. It has no member for the secret.
type providerView struct {
	ID             string          `json:"id"`
	OrganizationID *string         `json:"org_id"` // null: the configuration's, as for times
	Name           string          `json:"name"`
	Kind           string          `json:"kind"`
	Source         storage.Source  `json:"source"`   // custom, or config: a provider of the configuration cannot be changed here
	BaseURL        *string         `json:"base_url"` // null: the kind's own, or not shown
	HasSecret      bool            `json:"has_api_key"`
	Timeouts       timeoutsView    `json:"timeouts"`
	StreamOptions  string          `json:"stream_options"` // auto or off
	CreatedAt      *routes.Instant `json:"created_at"`
	UpdatedAt      *routes.Instant `json:"updated_at"`
	ManagedByFile  bool            `json:"managed_by_file,omitempty"` // an applied file declares it
}

func viewStreamOptions(none bool) string {
	if none {
		return accounts.StreamOptionsOff
	}
	return accounts.StreamOptionsAuto
}

func (q *request) viewProvider(p storage.LLMProvider) providerView {
	return providerView{
		ManagedByFile: q.ManagedByFile(declare.KindProvider, p.ID),
		ID:            p.ID, OrganizationID: &p.OrganizationID, Name: p.Name, Kind: p.Kind, Source: storage.SourceCustom, BaseURL: routes.Optional(p.BaseURL),
		HasSecret: p.SealedSecret != nil, Timeouts: viewTimeouts(p.Timeouts), StreamOptions: viewStreamOptions(p.NoStreamOptions), CreatedAt: (*routes.Instant)(&p.CreatedAt), UpdatedAt: (*routes.Instant)(&p.UpdatedAt),
	}
}

func viewConfiguredProvider(a accounts.Summary) providerView {
	return providerView{ID: a.ID, Name: a.Name, Kind: a.Kind, Source: storage.SourceConfig, HasSecret: a.HasSecret, Timeouts: viewTimeouts(a.Timeouts), StreamOptions: viewStreamOptions(a.NoStreamOptions)}
}

// noProvider returns the refusal of a change to a provider that the store does not have.
func (q *request) noProvider() error {
	if _, ok := q.Core.Accounts.ConfiguredAccount(q.id()); ok {
		return errReadOnly
	}
	return errNoProvider
}

// providerExists returns storage.ErrNotFound when the organization can use no provider of that id.
func (q *request) providerExists(id string) error {
	if _, ok := q.Core.Accounts.ConfiguredAccount(id); ok {
		return nil
	}
	_, err := q.Core.Store.LLMProvider(q.Context(), q.Organization(), id)
	return err
}

// configured returns the configuration's models for every organization.
func (q *request) configured() storage.ConfiguredModels { return q.Core.Accounts.ConfiguredModels() }

func listProviders(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	all, err := q.Core.Store.ModelSet(q.Context(), q.Organization())
	return append(views(all.Providers, q.viewProvider), views(q.Core.Accounts.ConfiguredAccounts(), viewConfiguredProvider)...), err
}

func getProvider(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	if configured, ok := q.Core.Accounts.ConfiguredAccount(q.id()); ok {
		return viewConfiguredProvider(configured), nil
	}
	p, err := q.Core.Store.LLMProvider(q.Context(), q.Organization(), q.id())
	if err != nil {
		return nil, routes.Missing(err, errNoProvider)
	}
	return q.viewProvider(p), nil
}

func createProvider(q *request) (any, error) {
	now := q.now()
	p := storage.LLMProvider{OrganizationID: q.Organization(), CreatedAt: now, UpdatedAt: now}
	var edit llmedit.ProviderEdit
	if err := q.Read(false, func(o *validate.Object) { edit = llmedit.ReadProvider(o, true, q.Core.Accounts.Base) }); err != nil {
		return nil, err
	}
	var err error
	if p.ID, err = q.newID(); err != nil {
		return nil, err
	}
	if err := edit.Apply(q.Core.Accounts.Base, q.Core.Keyring, &p); err != nil {
		return nil, err
	}
	if err := q.Core.Store.CreateLLMProvider(q.Context(), q.configured(), p); err != nil {
		return nil, answered(err, errNoProvider)
	}
	return q.viewProvider(p), nil
}

func updateProvider(q *request) (any, error) {
	var edit llmedit.ProviderEdit
	if err := q.Read(false, func(o *validate.Object) { edit = llmedit.ReadProvider(o, false, q.Core.Accounts.Base) }); err != nil {
		return nil, err
	}
	p, err := q.Core.Store.UpdateLLMProvider(q.Context(), q.configured(), q.Organization(), q.id(), func(p *storage.LLMProvider) error {
		p.UpdatedAt = q.now()
		return edit.Apply(q.Core.Accounts.Base, q.Core.Keyring, p)
	})
	if err != nil {
		return nil, answered(err, q.noProvider())
	}
	return q.viewProvider(p), nil
}

func deleteProvider(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	return deleted(q.Core.Store.DeleteLLMProvider(q.Context(), q.Organization(), q.id()), q.noProvider())
}
