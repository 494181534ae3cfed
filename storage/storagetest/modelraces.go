package storagetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// testAliasRace makes mappings and smart models of one alias, and renames others to it, at once: one has it.
func testAliasRace(t *testing.T, b *bundle) {
	ctx := t.Context()
	provider := b.provider(t, b.orgA, "P")
	b.mapping(t, b.orgA, "slot", provider.ID)
	var won atomic.Int32
	count := func(err error) {
		var conflict *storage.ConflictError
		if err == nil {
			won.Add(1)
		} else if !errors.As(err, &conflict) || conflict.Field != "model_alias" {
			t.Error(err)
		}
	}
	var all sync.WaitGroup
	for i := range 4 {
		mapping := b.mapping(t, b.orgA, fmt.Sprint("mapping ", i), provider.ID)
		smart := b.smart(t, b.orgA, fmt.Sprint("smart ", i), "slot", "slot")
		all.Go(func() { count(b.CreateModelMapping(ctx, configured, newMapping(b.orgA, "race", provider.ID))) })
		all.Go(func() { count(b.CreateSmartModel(ctx, configured, newSmart(b.orgA, "race", "slot", "slot"))) })
		all.Go(func() {
			_, err := b.UpdateModelMapping(ctx, configured, b.orgA, mapping.ID, func(m *storage.ModelMapping) error { m.Alias = "race"; return nil })
			count(err)
		})
		all.Go(func() {
			_, err := b.UpdateSmartModel(ctx, configured, b.orgA, smart.ID, func(m *storage.SmartModel) error { m.Alias = "race"; return nil })
			count(err)
		})
	}
	all.Wait()
	equal(t, won.Load(), 1)
	b.soundModels(t, b.orgA)
}

// testModelReferenceRace deletes and renames objects while others begin to refer to them: afterwards nothing refers
// to a missing one.
func testModelReferenceRace(t *testing.T, b *bundle) {
	ctx := t.Context()
	for i := range 8 {
		alias := fmt.Sprint("alias ", i)
		provider := b.provider(t, b.orgA, fmt.Sprint("provider ", i))
		mapping := b.mapping(t, b.orgA, alias, provider.ID)
		idle := b.provider(t, b.orgA, fmt.Sprint("idle ", i))
		var all sync.WaitGroup
		try := func(f func() error) {
			all.Go(func() {
				var target *storage.TargetError
				if err := f(); err != nil && !errors.Is(err, storage.ErrConflict) && !errors.Is(err, storage.ErrNotFound) && !errors.As(err, &target) {
					t.Error(err)
				}
			})
		}
		try(func() error { return b.CreateSmartModel(ctx, configured, newSmart(b.orgA, "smart "+alias, "", alias)) })
		try(func() error {
			return b.CreateSmartModel(ctx, configured, newSmart(b.orgA, "determined "+alias, alias, "house"))
		})
		try(func() error {
			return b.CreateModelMapping(ctx, configured, newMapping(b.orgA, "new "+alias, idle.ID, alias))
		})
		try(func() error { return b.DeleteLLMProvider(ctx, b.orgA, idle.ID) })
		if i%2 == 0 {
			try(func() error { return b.DeleteModelMapping(ctx, b.orgA, mapping.ID) })
		} else {
			try(func() error {
				_, err := b.UpdateModelMapping(ctx, configured, b.orgA, mapping.ID, func(m *storage.ModelMapping) error { m.Alias += " renamed"; return nil })
				return err
			})
		}
		all.Wait()
	}
	b.soundModels(t, b.orgA)
}

// soundModels checks that aliases are unique, and that every referenced object exists and is not smart.
func (b *bundle) soundModels(t *testing.T, organization string) {
	t.Helper()
	set, err := b.ModelSet(t.Context(), organization)
	noError(t, err)
	providers, known, smart := make(map[string]bool), map[string]bool{"house": true}, make(map[string]bool)
	for _, p := range set.Providers {
		providers[p.ID] = true
	}
	for _, m := range set.Mappings {
		if known[m.Alias] {
			t.Errorf("two have the alias %q", m.Alias)
		}
		known[m.Alias] = true
	}
	for _, m := range set.Smart {
		if known[m.Alias] || smart[m.Alias] {
			t.Errorf("two have the alias %q", m.Alias)
		}
		smart[m.Alias] = true
	}
	for _, m := range set.Mappings {
		for _, target := range m.Targets {
			if !providers[target.ProviderID] {
				t.Errorf("%q has a target of a provider that is gone", m.Alias)
			}
		}
		for _, alias := range m.Fallbacks {
			if !known[alias] {
				t.Errorf("%q falls back to %q", m.Alias, alias)
			}
		}
	}
	for _, m := range set.Smart {
		for _, slot := range m.Slots {
			if !known[slot.Alias] {
				t.Errorf("%q has a slot %q", m.Alias, slot.Alias)
			}
		}
		if m.DeterminerAlias != "" && !known[m.DeterminerAlias] {
			t.Errorf("%q asks %q", m.Alias, m.DeterminerAlias)
		}
	}
}
