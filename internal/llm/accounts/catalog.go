// Package accounts knows which models an organization can ask for, and the accounts with providers that serve them. The
// configuration gives some to every organization, and each organization has its own in the store. The package opens the
// secret of an account only to put it on a request.
package accounts

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/llm/route"
	"github.com/durward-gateway/durward/storage"
)

// Store is the store's part with the models of organizations.
type Store interface {
	ModelSet(ctx context.Context, organization string) (storage.ModelSet, error)
}

// Options holds the dependencies of a Catalog. Base, Memory, Store and Vault are required.
type Options struct {
	// Base is the configuration's part of the catalogue.
	Base *Base
	// Memory outlives the configuration. It must stay open as long as the catalogue is used.
	Memory *Memory
	Store  Store
	// Vault seals and opens the secrets of organizations' accounts.
	Vault Vault
	// Log tells about accounts that cannot be used; nil: nothing does.
	Log *slog.Logger
}

// Catalog is a configuration's view of the models and accounts of all organizations. It is safe for concurrent use.
type Catalog struct {
	*Base

	memory *Memory
	store  Store
	vault  Vault
	log    *slog.Logger
	// id names this catalogue in the cache, which outlives it.
	id string
}

// New makes a catalogue.
func New(o Options) *Catalog {
	c := &Catalog{Base: o.Base, memory: o.Memory, store: o.Store, vault: o.Vault, log: o.Log, id: strconv.FormatUint(o.Memory.catalogs.Add(1), 10)}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Models returns the models that the callers of an organization can ask for now. Errors are the store's.
func (c *Catalog) Models(ctx context.Context, organization string) (*Models, error) {
	// The time does not matter: an entry ends only with its epoch.
	if known, ok := c.memory.models.Recent(time.Time{}, organization, "models", c.id); ok {
		return known, nil
	}
	return c.memory.models.Get(ctx, cache.NewKey(organization, "models", c.id), func(ctx context.Context) (*Models, error) {
		set, err := c.store.ModelSet(ctx, organization)
		if err != nil {
			return nil, fmt.Errorf("reading models: %w", err)
		}
		return c.merge(&set), nil
	})
}

// Breakers returns the circuit breakers of all accounts. They outlive configurations.
func (c *Catalog) Breakers() *route.Breakers { return c.memory.breakers }

// NoStreamOptions returns the models that were found not to know stream_options. They outlive configurations.
func (c *Catalog) NoStreamOptions() *route.Refusals { return c.memory.noStreamOptions }

// merge adds an organization's models to the configuration's. The organization's replace those of the same name.
func (c *Catalog) merge(set *storage.ModelSet) *Models {
	m := &Models{byAlias: maps.Clone(c.models)}
	m.addMappings(set.Mappings, c.accountsWith(set.Providers))
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

// accountsWith returns the configuration's accounts and those of an organization, by id.
func (c *Catalog) accountsWith(stored []storage.LLMProvider) map[string]*Account {
	accounts := maps.Clone(c.accounts)
	for i := range stored {
		p := &stored[i]
		account := &Account{
			ID: p.ID, Name: p.Name, Kind: p.Kind, Protocol: c.kinds[p.Kind], NoStreamOptions: p.NoStreamOptions, timeouts: p.Timeouts, stored: p,
		}
		if err := account.setURLs(p.BaseURL); err != nil {
			c.log.Warn("a provider cannot be used", "provider", p.ID, "error", err)
		}
		accounts[p.ID] = account
	}
	return accounts
}
