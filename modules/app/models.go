package app

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/llm/route"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/proxy/http1"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// keptModels is the number of organizations whose models are kept in memory.
const keptModels = 10_000

// Models holds the models that the callers of an organization can ask for: its own aliases and the configuration's. It
// is shared by requests and must not be changed, nor may the values it points to.
type Models struct {
	byAlias map[string]*Model
	aliases []string // sorted
}

// Model is the target of an alias.
type Model struct {
	Alias       string
	Description string
	CreatedAt   time.Time // zero for the configuration's
	// Smart is set for a smart model; it has no targets of its own.
	Smart   *storage.SmartModel
	Targets []ModelTarget
	// Fallbacks are the models whose targets are tried after Targets, in order; their own fallbacks are not.
	Fallbacks []*Model
	// MaxOutput is the greatest number of tokens that it makes for one choice; 0: not set.
	MaxOutput int64
}

// MostOutput returns the greatest number of tokens for one choice of any model that can answer a call to this one.
func (m *Model) MostOutput() int64 {
	most := cmp.Or(m.MaxOutput, limit.MostOutput)
	for _, f := range m.Fallbacks {
		most = max(most, cmp.Or(f.MaxOutput, limit.MostOutput))
	}
	return most
}

// ModelTarget is a model of a provider.
type ModelTarget struct {
	Account  *ModelAccount
	Model    string // the provider's name of it
	Weight   int
	Timeouts storage.ModelTimeouts // zero members take the gateway's values
}

// ModelAccount is an account with a provider of models.
type ModelAccount struct {
	ID       string
	Name     string
	Kind     string
	Provider ModelProvider // nil: this binary knows no such kind

	urls   [endpoints]*url.URL // nil where the provider does not serve the endpoint
	stored *storage.LLMProvider
	secret seal.Secret // of the configuration's

	// NoStreamOptions reports that the provider does not know stream_options.
	NoStreamOptions bool
}

const endpoints = int(limit.CountTokens) + 1

// Find returns the model of an alias. Disabled smart models are not found.
func (m *Models) Find(alias string) (*Model, bool) {
	found, ok := m.byAlias[alias]
	return found, ok
}

// All calls each with every model that can be asked for, ordered by alias.
func (m *Models) All(each func(*Model) bool) {
	for _, alias := range m.aliases {
		if !each(m.byAlias[alias]) {
			return
		}
	}
}

// URL returns the address of an endpoint; nil when the provider does not serve it. It must not be changed.
func (a *ModelAccount) URL(endpoint limit.Endpoint) *url.URL { return a.urls[endpoint] }

// setURLs appends the paths of a kind's endpoints to the base URL.
func (a *ModelAccount) setURLs(base string) error {
	if a.Provider == nil {
		return nil
	}
	if base == "" {
		base = a.Provider.BaseURL()
	}
	u, err := url.Parse(base)
	if err != nil {
		return fmt.Errorf("reading the base URL of provider %s: %w", a.Name, err)
	}
	for endpoint := range endpoints {
		path, ok := a.Provider.Path(limit.Endpoint(endpoint))
		if !ok {
			continue
		}
		at := *u
		at.Path = strings.TrimRight(u.Path, "/") + path
		if at.RawPath != "" {
			at.RawPath = strings.TrimRight(u.RawPath, "/") + path
		}
		a.urls[endpoint] = &at
	}
	return nil
}

// models is the configuration's part of the models that can be asked for.
type models struct {
	kinds      map[string]ModelProvider
	configured configuredModels
	// modelsID identifies this configuration in the cache, which outlives it.
	modelsID string
}

func (r *resources) makeModels() (err error) {
	r.breakers = route.NewBreakers(route.Options{})
	r.noStreamOptions = route.NewRefusals(nil)
	r.models, err = newCache(r, "models", cache.Options[*Models]{Entries: keptModels})
	return err
}

// Models returns the models that the callers of an organization can ask for now. Errors are the store's.
func (c *Core) Models(ctx context.Context, organization string) (*Models, error) {
	// The time does not matter: an entry ends only with its epoch.
	if known, ok := c.resources.models.Recent(time.Time{}, organization, "models", c.modelsID); ok {
		return known, nil
	}
	return c.resources.models.Get(ctx, cache.NewKey(organization, "models", c.modelsID), func(ctx context.Context) (*Models, error) {
		set, err := c.Store.ModelSet(ctx, organization)
		if err != nil {
			return nil, fmt.Errorf("reading models: %w", err)
		}
		return c.merge(&set), nil
	})
}

// Breakers returns the circuit breakers of all providers. They outlive configurations.
func (c *Core) Breakers() *route.Breakers { return c.resources.breakers }

// NoStreamOptions returns the models that were found not to know stream_options. They outlive configurations.
func (c *Core) NoStreamOptions() *route.Refusals { return c.resources.noStreamOptions }

// ModelKinds returns the available kinds of providers, sorted.
func (c *Core) ModelKinds() []string { return slices.Sorted(maps.Keys(c.kinds)) }

// NeedsBaseURL reports whether accounts of a kind must have a base URL.
func (c *Core) NeedsBaseURL(kind string) bool {
	known := c.kinds[kind]
	return known != nil && known.BaseURL() == ""
}

// ConfiguredModels returns the configuration's models for every organization, in the form for stores.
func (c *Core) ConfiguredModels() storage.ConfiguredModels { return c.configured.names }

// merge adds an organization's models to the configuration's; the organization's replace those of the same name.
func (c *Core) merge(set *storage.ModelSet) *Models {
	accounts := maps.Clone(c.configured.byID)
	if accounts == nil {
		accounts = make(map[string]*ModelAccount, len(set.Providers))
	}
	for i := range set.Providers {
		p := &set.Providers[i]
		accounts[p.ID] = c.storedAccount(p)
	}
	m := &Models{byAlias: maps.Clone(c.configured.models)}
	if m.byAlias == nil {
		m.byAlias = make(map[string]*Model, len(set.Mappings)+len(set.Smart))
	}
	for i := range set.Mappings {
		mapping := &set.Mappings[i]
		m.byAlias[mapping.Alias] = &Model{
			Alias: mapping.Alias, Description: mapping.Description, CreatedAt: mapping.CreatedAt, Targets: c.storedTargets(mapping.Targets, accounts),
			MaxOutput: mapping.MaxOutputTokens,
		}
	}
	for i := range set.Mappings {
		mapping := &set.Mappings[i]
		model := m.byAlias[mapping.Alias]
		for _, alias := range mapping.Fallbacks {
			if fallback := m.byAlias[alias]; fallback != nil {
				model.Fallbacks = append(model.Fallbacks, fallback)
			}
		}
	}
	for i := range set.Smart {
		s := &set.Smart[i]
		if !s.Enabled {
			delete(m.byAlias, s.Alias) // the name belongs to the organization; the configuration's model was not meant
			continue
		}
		m.byAlias[s.Alias] = &Model{Alias: s.Alias, Description: s.Description, CreatedAt: s.CreatedAt, Smart: s}
	}
	m.aliases = slices.Sorted(maps.Keys(m.byAlias))
	return m
}

// storedTargets returns the targets of a mapping whose accounts exist.
func (c *Core) storedTargets(stored []storage.ModelTarget, accounts map[string]*ModelAccount) (targets []ModelTarget) {
	for _, t := range stored {
		account := accounts[t.ProviderID]
		if account == nil {
			continue // an account of the configuration, which no longer has it
		}
		around := c.configured.timeouts[account.ID]
		if account.stored != nil {
			around = account.stored.Timeouts
		}
		targets = append(targets, ModelTarget{Account: account, Model: t.Model, Weight: t.Weight, Timeouts: within(t.Timeouts, around)})
	}
	return targets
}

func (c *Core) storedAccount(p *storage.LLMProvider) *ModelAccount {
	account := &ModelAccount{ID: p.ID, Name: p.Name, Kind: p.Kind, Provider: c.kinds[p.Kind], stored: p, NoStreamOptions: p.NoStreamOptions}
	if err := account.setURLs(p.BaseURL); err != nil {
		c.Log.Warn("a provider cannot be used", "provider", p.ID, "error", err)
	}
	return account
}

// within fills the unset members of timeouts from the surrounding ones.
func within(t, around storage.ModelTimeouts) storage.ModelTimeouts {
	for _, d := range []struct{ of, around *time.Duration }{{&t.Connect, &around.Connect}, {&t.Response, &around.Response}, {&t.Idle, &around.Idle}} {
		if *d.of == 0 {
			*d.of = *d.around
		}
	}
	return t
}

// Credential returns a function that puts the account's secret on a request, at the last moment: nothing keeps the
// secret meanwhile.
func (c *Core) Credential(a *ModelAccount) forward.Credential {
	return forward.CredentialFunc(func(r *http1.Request) error {
		secret := a.secret
		if a.stored != nil {
			var err error
			if secret, err = c.OpenProviderSecret(a.stored); err != nil {
				return fmt.Errorf("opening the secret of a provider: %w", err)
			}
		}
		h := make(http.Header, len(r.Fields)+1)
		for _, f := range r.Fields {
			h[f.Name] = append(h[f.Name], f.Value)
		}
		a.Provider.Authorize(h, secret)
		r.Fields = r.Fields[:0]
		for name, values := range h {
			for _, v := range values {
				r.Fields = append(r.Fields, http1.Field{Name: name, Value: v})
			}
		}
		return nil
	})
}
