package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/gateway/tracing"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/llm/smart"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

const modelProviders = "durward.providers"

// loadModelKinds loads every kind of provider that is linked in: accounts in the store may be of any kind.
func (a *App) loadModelKinds(ctx caddy.Context) (err error) {
	a.modelKinds, err = ModelKinds(ctx)
	return err
}

// ModelKinds loads every kind of provider that is linked in.
func ModelKinds(ctx caddy.Context) (map[string]accounts.Protocol, error) {
	kinds := make(map[string]accounts.Protocol)
	for _, module := range caddy.GetModules(modelProviders) {
		loaded, err := ctx.LoadModuleByID(string(module.ID), nil)
		if err != nil {
			return nil, fmt.Errorf("loading %s: %w", module.ID, err)
		}
		kind, ok := loaded.(ModelProvider)
		if !ok {
			return nil, fmt.Errorf("%s is no provider of models", module.ID)
		}
		kinds[module.ID.Name()] = kind
	}
	return kinds, nil
}

// ModelsWithoutSecrets returns the configuration's part of the catalogue of models for a command line, which calls none of
// them. development is nil outside of development mode.
func ModelsWithoutSecrets(kinds map[string]accounts.Protocol, check func(*url.URL) (reason string), providers []settings.Provider, aliases []settings.Alias,
	development DevelopmentIdentity,
) (*accounts.Base, error) {
	providers, aliases = modelsToBind(providers, aliases, development)
	var all accounts.Settings
	for _, p := range providers {
		p.Key = "" // it is not used
		account, err := p.Account()
		if err != nil {
			return nil, fmt.Errorf("provider %s: %w", account.Name, err)
		}
		all.Accounts = append(all.Accounts, account)
	}
	for i := range aliases {
		all.Models = append(all.Models, aliases[i].Model())
	}
	return accounts.NewBase(kinds, check, all)
}

// bindModels resolves the configuration's models.
func (c *Core) bindModels(a *App) (err error) {
	var all accounts.Settings
	providers, aliases := modelsToBind(a.Providers, a.Aliases, a.Development())
	for i := range providers {
		account, err := providers[i].Account()
		if err != nil {
			return fmt.Errorf("provider %s: %w", account.Name, err)
		}
		all.Accounts = append(all.Accounts, account)
	}
	for i := range aliases {
		all.Models = append(all.Models, aliases[i].Model())
	}
	c.models, err = accounts.NewBase(a.modelKinds, c.UpstreamProblem, all)
	return err
}

// newCatalog makes the catalogue of models. The data keys must be open.
func (c *Core) newCatalog() *accounts.Catalog {
	return accounts.New(accounts.Options{Base: c.models, Memory: c.resources.models, Store: c.Store, Vault: c.Keyring, Log: c.Log})
}

// modelsToBind returns the providers and aliases of the configuration, and those of development mode whose names are
// free.
func modelsToBind(ownProviders []settings.Provider, ownAliases []settings.Alias, development DevelopmentIdentity) (providers []settings.Provider, aliases []settings.Alias) {
	providers, aliases = ownProviders, ownAliases
	if development == nil {
		return providers, aliases
	}
	brought := development.Models()
	for _, p := range brought.Providers {
		if !slices.ContainsFunc(ownProviders, func(own settings.Provider) bool {
			return strings.EqualFold(own.Name, p.Name)
		}) {
			providers = append(slices.Clip(providers), p)
		}
	}
	for _, alias := range brought.Aliases {
		if !slices.ContainsFunc(ownAliases, func(own settings.Alias) bool { return own.Name == alias.Name }) {
			aliases = append(slices.Clip(aliases), alias)
		}
	}
	return providers, aliases
}

// ErrNoRuntime reports that no site of the configuration serves models, so no model can be asked.
var ErrNoRuntime = errors.New("the configuration has no durward_llm, which calls models")

// ModelAsker lets the model of an alias of the caller's organization answer a prompt, as smart.Asker describes. The
// tokens count for the caller; the request does not. The alias may lead to fallbacks, and never to a smart model.
type ModelAsker func(ctx context.Context, call *Call, alias string, prompt smart.Prompt) (answer string, err error)

// Runtime lets other handlers than durward_llm ask models.
type Runtime struct {
	asker atomic.Pointer[ModelAsker] // nil: no site serves models
}

// ProvideModels is called by durward_llm when it is provisioned: other handlers ask models through it. When there are
// several handlers, the last one stays; all do the same.
func (a *App) ProvideModels(ask ModelAsker) {
	a.coreMu.Lock()
	defer a.coreMu.Unlock()
	a.core.Runtime.Provide(ask)
}

// Provide sets the function that asks models.
func (r *Runtime) Provide(ask ModelAsker) { r.asker.Store(&ask) }

// Ask has a model answer a prompt on the account of the call's caller. It fails with ErrNoRuntime when no site
// serves models.
func (r *Runtime) Ask(ctx context.Context, call *Call, alias string, prompt smart.Prompt) (string, error) {
	ask := r.asker.Load()
	if ask == nil {
		return "", ErrNoRuntime
	}
	return (*ask)(ctx, call, alias, prompt)
}

// askFor has a model answer a prompt on the account of the user who asked for a job, whose request has ended.
func (c *Core) askFor(ctx context.Context, j *storage.Job, alias string, prompt smart.Prompt) (string, error) {
	call := &Call{Core: c, Caller: &authn.Caller{OrganizationID: j.OrganizationID, UserID: j.UserID}}
	return c.Runtime.Ask(ctx, call, alias, prompt)
}

// Asks notes the alias that the call asks for, for the access log and the call's trace.
func (l *CallLog) Asks(trace *tracing.Trace, alias string) {
	l.Model = alias
	trace.Asks(alias)
}

// Routed notes the model to which a smart model sends the call, for the access log, the call's trace and the metrics.
func (l *CallLog) Routed(trace *tracing.Trace, d smart.Decision) {
	l.RoutedModel, l.RouteReason = d.Alias, string(d.Reason)
	trace.Routed(d.Alias, string(d.Reason))
	metrics.CountModelRoute(d)
}
