package app

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/apikey"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// ConfiguredProvider is an account with a provider of models that every organization can use.
type ConfiguredProvider struct {
	// The provider's protocol: the name of a module of `durward.providers`, such as `openai` or `anthropic`. Required.
	Kind string `json:"kind,omitempty"`
	// The name by which aliases and rate limits know it. Default: the kind.
	Name string `json:"name,omitempty"`
	// The base URL, in the form in which the provider's clients take it. Default: `https://api.openai.com/v1` for the kind
	// `openai`, `https://api.anthropic.com` for `anthropic`; a kind that has no address of its own needs one.
	BaseURL string `json:"base_url,omitempty"`
	// A reference to its API key, `{env.NAME}` or `{file./path}`. Default: none is sent.
	Key string `json:"key,omitempty"`
	// The longest time for making a connection. Default: 5s.
	ConnectTimeout caddy.Duration `json:"connect_timeout,omitempty"`
	// The longest time until an answer begins. Default: 5m.
	ResponseTimeout caddy.Duration `json:"response_timeout,omitempty"`
	// The longest silence of an answer that has begun. Default: `idle` of `streams`.
	IdleTimeout caddy.Duration `json:"idle_timeout,omitempty"`
	// Whether streamed chat completions have `stream_options`, which asks the provider for their usage: `auto` or `off`.
	// With `auto`, a refusal that names it leads to one more try without it; this is remembered for an hour. Without it
	// usage is estimated. Default: `auto`.
	StreamOptions string `json:"stream_options,omitempty"`
}

// These are the values of StreamOptions.
const (
	StreamOptionsAuto = "auto"
	StreamOptionsOff  = "off"
)

// ConfiguredAlias is a name under which every organization can ask for models.
type ConfiguredAlias struct {
	// The name that callers write as `model`. Required.
	Name string `json:"name,omitempty"`
	// The description that callers read about it. Default: none.
	Description string `json:"description,omitempty"`
	// The models that answer. At least one is required.
	Targets []ConfiguredTarget `json:"targets,omitempty"`
	// The most tokens of output that its models make for one choice. No call reserves more, whatever it asks for. Default:
	// 1000000.
	MaxOutputTokens int64 `json:"max_output_tokens,omitempty"`
	// Other aliases of the configuration, whose targets are tried when all targets of this alias failed. Default: none.
	Fallbacks []string `json:"fallbacks,omitempty"`
}

// ConfiguredTarget is a model of a configured provider.
type ConfiguredTarget struct {
	// The provider's name. Required.
	Provider string `json:"provider,omitempty"`
	// The provider's name of the model. Required.
	Model string `json:"model,omitempty"`
	// The target's share of the calls that begin with it, in relation to the weights of the others. Default: 0; when all are 0,
	// the first one is tried first.
	Weight int `json:"weight,omitempty"`
}

// configuredModels holds the configuration's models, resolved.
type configuredModels struct {
	names    storage.ConfiguredModels
	byID     map[string]*ModelAccount
	timeouts map[string]storage.ModelTimeouts // by id
	models   map[string]*Model                // by alias
}

// ConfiguredAccount is a provider of the configuration in the form that administrators of organizations may see. Its
// address and its secret are only for the operator of the gateway.
type ConfiguredAccount struct {
	ID, Name, Kind string
	HasSecret      bool
	Timeouts       storage.ModelTimeouts

	NoStreamOptions bool
}

// ConfiguredAccounts lists the providers of the configuration, ordered by name.
func (c *Core) ConfiguredAccounts() []ConfiguredAccount {
	all := make([]ConfiguredAccount, 0, len(c.configured.byID))
	for id := range c.configured.byID {
		account, _ := c.ConfiguredAccount(id)
		all = append(all, account)
	}
	slices.SortFunc(all, func(a, b ConfiguredAccount) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// ConfiguredAccount returns the provider of the configuration that has the id.
func (c *Core) ConfiguredAccount(id string) (ConfiguredAccount, bool) {
	a, ok := c.configured.byID[id]
	if !ok {
		return ConfiguredAccount{}, false
	}
	return ConfiguredAccount{a.ID, a.Name, a.Kind, !a.secret.Empty(), c.configured.timeouts[id], a.NoStreamOptions}, true
}

const modelProviders = "durward.providers"

// providerID is the namespace from which the ids of configured providers are made of their names, so that they stay the
// same across nodes and restarts.
var providerID = uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/durward-gateway/durward#provider"))

var aliasText = regexp.MustCompile(apikey.AliasPattern)

// modelSerial numbers the configurations of this process.
var modelSerial atomic.Uint64

// loadModelKinds loads every kind of provider that is linked in: accounts in the store may be of any kind.
func (a *App) loadModelKinds(ctx caddy.Context) error {
	a.modelKinds = make(map[string]ModelProvider)
	for _, module := range caddy.GetModules(modelProviders) {
		loaded, err := ctx.LoadModuleByID(string(module.ID), nil)
		if err != nil {
			return fmt.Errorf("loading %s: %w", module.ID, err)
		}
		kind, ok := loaded.(ModelProvider)
		if !ok {
			return fmt.Errorf("%s is no provider of models", module.ID)
		}
		a.modelKinds[module.ID.Name()] = kind
	}
	return nil
}

// bindModels resolves the configuration's models.
func (c *Core) bindModels(a *App) error {
	providers, aliases := a.modelsToBind()
	return c.BindModels(a.modelKinds, providers, aliases)
}

// BindModels sets the available kinds of providers, and the providers and aliases that every organization has. It is
// called once, before any request.
func (c *Core) BindModels(kinds map[string]ModelProvider, providers []ConfiguredProvider, aliases []ConfiguredAlias) error {
	c.kinds = kinds
	c.modelsID = strconv.FormatUint(modelSerial.Add(1), 10)
	c.configured = configuredModels{
		names: storage.ConfiguredModels{Providers: make(map[string]string), Aliases: make(map[string]struct{})},
		byID:  make(map[string]*ModelAccount), timeouts: make(map[string]storage.ModelTimeouts), models: make(map[string]*Model),
	}
	for i := range providers {
		if err := c.bindProvider(&providers[i]); err != nil {
			return err
		}
	}
	for i := range aliases {
		if err := c.bindAlias(&aliases[i]); err != nil {
			return fmt.Errorf("alias %s: %w", aliases[i].Name, err)
		}
	}
	for i := range aliases {
		model := c.configured.models[aliases[i].Name]
		for _, name := range aliases[i].Fallbacks {
			fallback := c.configured.models[name]
			if fallback == nil || fallback == model || slices.Contains(model.Fallbacks, fallback) {
				return fmt.Errorf("alias %s: fallback %q is not another alias of the configuration, named once", model.Alias, name)
			}
			model.Fallbacks = append(model.Fallbacks, fallback)
		}
	}
	return nil
}

// modelsToBind returns the providers and aliases of the configuration, and those of development mode whose names are
// free.
func (a *App) modelsToBind() (providers []ConfiguredProvider, aliases []ConfiguredAlias) {
	providers, aliases = a.Providers, a.Aliases
	development := a.Development()
	if development == nil {
		return providers, aliases
	}
	brought := development.Models()
	for _, p := range brought.Providers {
		if !slices.ContainsFunc(a.Providers, func(own ConfiguredProvider) bool {
			return strings.EqualFold(own.Name, p.Name)
		}) {
			providers = append(slices.Clip(providers), p)
		}
	}
	for _, alias := range brought.Aliases {
		if !slices.ContainsFunc(a.Aliases, func(own ConfiguredAlias) bool { return own.Name == alias.Name }) {
			aliases = append(slices.Clip(aliases), alias)
		}
	}
	return providers, aliases
}

func (c *Core) bindProvider(p *ConfiguredProvider) error {
	name := p.Name
	if name == "" {
		name = p.Kind
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("provider "+name+": "+format, args...)
	}
	kind := c.kinds[p.Kind]
	switch {
	case kind == nil:
		return fail("unrecognized kind %q; known are %s", p.Kind, strings.Join(c.ModelKinds(), ", "))
	case strings.TrimSpace(name) != name || name == "":
		return fail("a name has no blanks around it")
	case c.configuredAccount(name) != nil:
		return fail("that name is given twice")
	case p.BaseURL == "" && c.NeedsBaseURL(p.Kind):
		return fail("base_url is required")
	case p.StreamOptions != "" && p.StreamOptions != StreamOptionsAuto && p.StreamOptions != StreamOptionsOff:
		return fail("stream_options is auto or off")
	case p.Key != "" && !IsReference(p.Key):
		return fail("key takes a reference, {env.NAME} or {file./path}: a key written here would be readable on the admin endpoint")
	}
	timeouts := storage.ModelTimeouts{Connect: time.Duration(p.ConnectTimeout), Response: time.Duration(p.ResponseTimeout), Idle: time.Duration(p.IdleTimeout)}
	for _, d := range []time.Duration{timeouts.Connect, timeouts.Response, timeouts.Idle} {
		if d < 0 || d > MaxModelTimeout {
			return fail("%v is not a time between 0 and %v", d, MaxModelTimeout)
		}
	}
	account := &ModelAccount{ID: uuid.NewSHA1(providerID, []byte(name)).String(), Name: name, Kind: p.Kind, Provider: kind, NoStreamOptions: p.StreamOptions == StreamOptionsOff}
	if p.BaseURL != "" {
		if reason := c.CheckBaseURL(p.BaseURL); reason != "" {
			return fail("base_url: %s", reason)
		}
	}
	if err := account.setURLs(p.BaseURL); err != nil {
		return err
	}
	if p.Key != "" {
		key, err := resolve(p.Key)
		if err != nil {
			return fail("%w", err)
		}
		if !ProviderSecretText.MatchString(key) {
			return fail("the key has characters that no header may have")
		}
		account.secret = seal.NewSecret(key)
	}
	c.configured.names.Providers[account.ID] = name
	c.configured.byID[account.ID] = account
	c.configured.timeouts[account.ID] = timeouts
	return nil
}

// configuredAccount finds a provider by its name, by the rule by which stores compare names.
func (c *Core) configuredAccount(name string) *ModelAccount {
	for _, account := range c.configured.byID {
		if strings.EqualFold(account.Name, name) {
			return account
		}
	}
	return nil
}

func (c *Core) bindAlias(a *ConfiguredAlias) error {
	switch {
	case !aliasText.MatchString(a.Name):
		return errors.New("that is no name of an alias")
	case c.configured.models[a.Name] != nil:
		return errors.New("it is given twice")
	case len(a.Targets) == 0:
		return errors.New("it needs a target")
	case a.MaxOutputTokens < 0 || a.MaxOutputTokens > MaxModelOutput:
		return fmt.Errorf("max_output_tokens %d is not between 1 and %d", a.MaxOutputTokens, MaxModelOutput)
	}
	model := &Model{Alias: a.Name, Description: a.Description, MaxOutput: a.MaxOutputTokens}
	for _, t := range a.Targets {
		account := c.configuredAccount(t.Provider)
		switch {
		case account == nil:
			return fmt.Errorf("there is no provider %q", t.Provider)
		case t.Model == "":
			return errors.New("a target needs a model")
		case t.Weight < 0 || t.Weight > MaxModelWeight:
			return fmt.Errorf("weight %d is not between 0 and %d", t.Weight, MaxModelWeight)
		}
		model.Targets = append(model.Targets, ModelTarget{Account: account, Model: t.Model, Weight: t.Weight, Timeouts: c.configured.timeouts[account.ID]})
	}
	c.configured.models[a.Name] = model
	c.configured.names.Aliases[a.Name] = struct{}{}
	return nil
}
