package gatewayapi

import (
	"time"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// These are the bounds of providers.
const (
	maxURL    = 2048
	maxSecret = 4096
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

// readTimeouts reads all timeouts: an absent one counts as null.
func readTimeouts(o *validate.Object) validate.Field[storage.ModelTimeouts] {
	field := o.Object("timeouts", validate.Nullable)
	out := validate.Field[storage.ModelTimeouts]{Present: field.Present, Null: field.Null}
	if field.Value != nil {
		read := func(name string) time.Duration {
			rule := validate.Integer{Flags: validate.Nullable, Min: 1, Max: accounts.MaxTimeout.Milliseconds()}
			return time.Duration(field.Value.Int(name, rule).Value) * time.Millisecond
		}
		out.Value = storage.ModelTimeouts{Connect: read("connect_ms"), Response: read("response_ms"), Idle: read("idle_ms")}
	}
	return out
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
}

func viewStreamOptions(none bool) string {
	if none {
		return accounts.StreamOptionsOff
	}
	return accounts.StreamOptionsAuto
}

func viewProvider(p storage.LLMProvider) providerView {
	return providerView{
		ID: p.ID, OrganizationID: &p.OrganizationID, Name: p.Name, Kind: p.Kind, Source: storage.SourceCustom, BaseURL: routes.Optional(p.BaseURL),
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

// providerEdit holds the fields of a body about a provider.
type providerEdit struct {
	name, kind, baseURL, streamOptions validate.Field[string]

	secret validate.Field[seal.Secret]

	timeouts validate.Field[storage.ModelTimeouts]
}

func (q *request) readProvider(o *validate.Object, create bool) providerEdit {
	e := providerEdit{
		name:     o.Name(required(create), maxName),
		kind:     o.Text("kind", validate.Text{Flags: required(create), Enum: q.Core.Accounts.Kinds()}),
		baseURL:  o.Text("base_url", validate.Text{Flags: validate.Nullable, Min: 1, Max: maxURL}),
		secret:   o.Secret("api_key", validate.Text{Flags: validate.Nullable, Min: 1, Max: maxSecret, Pattern: accounts.SecretText}),
		timeouts: readTimeouts(o),

		streamOptions: o.Text("stream_options", validate.Text{Enum: []string{accounts.StreamOptionsAuto, accounts.StreamOptionsOff}}),
	}
	if e.baseURL.Value != "" {
		if reason := q.Core.Accounts.CheckBaseURL(e.baseURL.Value); reason != "" {
			o.Report(validate.ValueError, "Value error, "+reason, "base_url")
		}
	}
	return e
}

// apply changes a provider. Its secret is bound to the address for which it was given: it is not sent to another one.
func (e providerEdit) apply(q *request, p *storage.LLMProvider) error {
	kind, baseURL := p.Kind, p.BaseURL
	set(&p.Name, e.name)
	set(&p.Kind, e.kind)
	replace(&p.BaseURL, e.baseURL)
	replace(&p.Timeouts, e.timeouts)
	if e.streamOptions.Present {
		p.NoStreamOptions = e.streamOptions.Value == accounts.StreamOptionsOff
	}
	switch {
	case p.BaseURL == "" && q.Core.Accounts.NeedsBaseURL(p.Kind):
		return validate.Problems{{Loc: []any{"body", "base_url"}, Msg: "Value error, providers of this kind have no address of their own", Type: validate.ValueError}}
	case e.secret.Present:
		return q.Core.Accounts.SealSecret(p, e.secret.Value)
	case p.SealedSecret != nil && (p.Kind != kind || p.BaseURL != baseURL):
		return validate.Problems{{
			Loc: []any{"body", "api_key"}, Msg: "Value error, give it again when kind or base_url change: it is not sent to another place", Type: validate.ValueError,
		}}
	}
	return nil
}

func listProviders(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	all, err := q.Core.Store.ModelSet(q.Context(), q.Organization())
	return append(views(all.Providers, viewProvider), views(q.Core.Accounts.ConfiguredAccounts(), viewConfiguredProvider)...), err
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
	return viewProvider(p), nil
}

func createProvider(q *request) (any, error) {
	now := q.now()
	p := storage.LLMProvider{OrganizationID: q.Organization(), CreatedAt: now, UpdatedAt: now}
	var edit providerEdit
	if err := q.Read(false, func(o *validate.Object) { edit = q.readProvider(o, true) }); err != nil {
		return nil, err
	}
	var err error
	if p.ID, err = q.newID(); err != nil {
		return nil, err
	}
	if err := edit.apply(q, &p); err != nil {
		return nil, err
	}
	if err := q.Core.Store.CreateLLMProvider(q.Context(), q.configured(), p); err != nil {
		return nil, answered(err, errNoProvider)
	}
	return viewProvider(p), nil
}

func updateProvider(q *request) (any, error) {
	var edit providerEdit
	if err := q.Read(false, func(o *validate.Object) { edit = q.readProvider(o, false) }); err != nil {
		return nil, err
	}
	p, err := q.Core.Store.UpdateLLMProvider(q.Context(), q.configured(), q.Organization(), q.id(), func(p *storage.LLMProvider) error {
		p.UpdatedAt = q.now()
		return edit.apply(q, p)
	})
	if err != nil {
		return nil, answered(err, q.noProvider())
	}
	return viewProvider(p), nil
}

func deleteProvider(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	return deleted(q.Core.Store.DeleteLLMProvider(q.Context(), q.Organization(), q.id()), q.noProvider())
}
