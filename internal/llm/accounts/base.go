package accounts

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/apikey"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// Settings holds the accounts and models that a configuration gives to every organization.
type Settings struct {
	Accounts []AccountSettings
	Models   []ModelSettings
}

// AccountSettings describes an account of the configuration.
type AccountSettings struct {
	Kind, Name      string
	BaseURL         string      // "": the kind's own
	Secret          seal.Secret // the empty one: the provider needs none
	Timeouts        storage.ModelTimeouts
	NoStreamOptions bool
}

// ModelSettings describes a model of the configuration.
type ModelSettings struct {
	Alias, Description string
	Targets            []TargetSettings
	MaxOutput          int64    // 0: not set
	Fallbacks          []string // aliases of other models of the configuration
}

// TargetSettings describes a target of a model of the configuration.
type TargetSettings struct {
	Account string // its name
	Model   string
	Weight  int
}

// Base holds the part of a catalogue that a configuration sets: the kinds of providers, and the accounts and models that
// every organization has. It does not change.
type Base struct {
	kinds        map[string]Protocol
	checkAddress func(*url.URL) (reason string)
	names        storage.ConfiguredModels
	accounts     map[string]*Account // by id
	models       map[string]*Model   // by alias
}

// Summary describes an account of the configuration in the form that administrators of organizations may see. Its address
// and its secret are only for the operator of the gateway.
type Summary struct {
	ID, Name, Kind string
	HasSecret      bool
	Timeouts       storage.ModelTimeouts

	NoStreamOptions bool
}

// configuredID is the namespace from which the ids of configured accounts are made of their names, so that they stay the
// same across nodes and restarts.
var configuredID = uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/durward-gateway/durward#provider"))

var aliasText = regexp.MustCompile(apikey.AliasPattern)

// NewBase makes the base of a configuration's catalogue, and fails when the settings have errors. kinds holds the
// protocols by the names of their kinds. checkAddress returns the reason why the gateway may not call an address, in
// words for people; "" when it may.
func NewBase(kinds map[string]Protocol, checkAddress func(*url.URL) (reason string), s Settings) (*Base, error) {
	b := &Base{
		kinds: kinds, checkAddress: checkAddress,
		names:    storage.ConfiguredModels{Providers: make(map[string]string), Aliases: make(map[string]struct{})},
		accounts: make(map[string]*Account), models: make(map[string]*Model),
	}
	for i := range s.Accounts {
		if err := b.addAccount(&s.Accounts[i]); err != nil {
			return nil, fmt.Errorf("provider %s: %w", s.Accounts[i].Name, err)
		}
	}
	for i := range s.Models {
		if err := b.addModel(&s.Models[i]); err != nil {
			return nil, fmt.Errorf("alias %s: %w", s.Models[i].Alias, err)
		}
	}
	for i := range s.Models {
		if err := b.addFallbacks(&s.Models[i]); err != nil {
			return nil, fmt.Errorf("alias %s: %w", s.Models[i].Alias, err)
		}
	}
	return b, nil
}

// Kinds returns the available kinds of providers, sorted.
func (b *Base) Kinds() []string { return slices.Sorted(maps.Keys(b.kinds)) }

// NeedsBaseURL reports whether accounts of a kind must have a base URL.
func (b *Base) NeedsBaseURL(kind string) bool {
	known := b.kinds[kind]
	return known != nil && known.BaseURL() == ""
}

// ConfiguredModels returns the configuration's models for every organization, in the form for stores.
func (b *Base) ConfiguredModels() storage.ConfiguredModels { return b.names }

// ConfiguredAccounts lists the accounts of the configuration, ordered by name.
func (b *Base) ConfiguredAccounts() []Summary {
	all := make([]Summary, 0, len(b.accounts))
	for _, account := range b.accounts {
		all = append(all, account.summary())
	}
	slices.SortFunc(all, func(a, b Summary) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// ConfiguredAccount returns the account of the configuration that has the id.
func (b *Base) ConfiguredAccount(id string) (Summary, bool) {
	account, ok := b.accounts[id]
	if !ok {
		return Summary{}, false
	}
	return account.summary(), true
}

func (a *Account) summary() Summary {
	return Summary{a.ID, a.Name, a.Kind, !a.secret.Empty(), a.timeouts, a.NoStreamOptions}
}

func (b *Base) addAccount(s *AccountSettings) error {
	protocol := b.kinds[s.Kind]
	switch {
	case protocol == nil:
		return fmt.Errorf("unrecognized kind %q; known are %s", s.Kind, strings.Join(b.Kinds(), ", "))
	case strings.TrimSpace(s.Name) != s.Name || s.Name == "":
		return errors.New("a name has no blanks around it")
	case b.accountNamed(s.Name) != nil:
		return errors.New("that name is given twice")
	case s.BaseURL == "" && b.NeedsBaseURL(s.Kind):
		return errors.New("base_url is required")
	}
	for _, d := range []time.Duration{s.Timeouts.Connect, s.Timeouts.Response, s.Timeouts.Idle} {
		if d < 0 || d > MaxTimeout {
			return fmt.Errorf("%v is not a time between 0 and %v", d, MaxTimeout)
		}
	}
	if s.BaseURL != "" {
		if reason := b.CheckBaseURL(s.BaseURL); reason != "" {
			return fmt.Errorf("base_url: %s", reason)
		}
	}
	account := &Account{
		ID: uuid.NewSHA1(configuredID, []byte(s.Name)).String(), Name: s.Name, Kind: s.Kind, Protocol: protocol, NoStreamOptions: s.NoStreamOptions,
		timeouts: s.Timeouts, secret: s.Secret,
	}
	if err := account.setURLs(s.BaseURL); err != nil {
		return err
	}
	b.names.Providers[account.ID] = s.Name
	b.accounts[account.ID] = account
	return nil
}

// accountNamed finds an account by its name, by the rule by which stores compare names.
func (b *Base) accountNamed(name string) *Account {
	for _, account := range b.accounts {
		if strings.EqualFold(account.Name, name) {
			return account
		}
	}
	return nil
}

func (b *Base) addModel(s *ModelSettings) error {
	switch {
	case !aliasText.MatchString(s.Alias):
		return errors.New("that is no name of an alias")
	case b.models[s.Alias] != nil:
		return errors.New("it is given twice")
	case len(s.Targets) == 0:
		return errors.New("it needs a target")
	case s.MaxOutput < 0 || s.MaxOutput > MaxOutput:
		return fmt.Errorf("max_output_tokens %d is not between 1 and %d", s.MaxOutput, MaxOutput)
	}
	model := &Model{Alias: s.Alias, Description: s.Description, MaxOutput: s.MaxOutput}
	for _, t := range s.Targets {
		account := b.accountNamed(t.Account)
		switch {
		case account == nil:
			return fmt.Errorf("there is no provider %q", t.Account)
		case t.Model == "":
			return errors.New("a target needs a model")
		case t.Weight < 0 || t.Weight > MaxWeight:
			return fmt.Errorf("weight %d is not between 0 and %d", t.Weight, MaxWeight)
		}
		model.Targets = append(model.Targets, Target{Account: account, Model: t.Model, Weight: t.Weight, Timeouts: account.timeouts})
	}
	b.models[s.Alias] = model
	b.names.Aliases[s.Alias] = struct{}{}
	return nil
}

// addFallbacks sets the fallbacks of a model, after all models were added.
func (b *Base) addFallbacks(s *ModelSettings) error {
	model := b.models[s.Alias]
	for _, alias := range s.Fallbacks {
		fallback := b.models[alias]
		if fallback == nil || fallback == model || slices.Contains(model.Fallbacks, fallback) {
			return fmt.Errorf("fallback %q is not another alias of the configuration, named once", alias)
		}
		model.Fallbacks = append(model.Fallbacks, fallback)
	}
	return nil
}
