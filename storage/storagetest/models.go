package storagetest

import (
	"errors"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// configured holds the configured models of the cases.
var configured = storage.ConfiguredModels{
	Providers: map[string]string{"01900000-0000-7000-9000-000000000001": "House"},
	Aliases:   map[string]struct{}{"house": {}},
}

// newProvider returns a provider with every member set, not stored.
func newProvider(organization, name string) storage.LLMProvider {
	return storage.LLMProvider{ID: newID(), OrganizationID: organization, Name: name, Kind: "openai", BaseURL: "https://llm.example.com/v1",
		SealedSecret: []byte{0, 1, 0xff}, Timeouts: storage.ModelTimeouts{Connect: time.Second, Response: time.Minute, Idle: time.Hour},
		NoStreamOptions: true, CreatedAt: start, UpdatedAt: start.Add(time.Second)}
}

// provider stores a provider.
func (b *bundle) provider(t *testing.T, organization, name string) storage.LLMProvider {
	t.Helper()
	p := newProvider(organization, name)
	noError(t, b.CreateLLMProvider(t.Context(), configured, p))
	return p
}

// newMapping returns a mapping with every member set, not stored.
func newMapping(organization, alias, provider string, fallbacks ...string) storage.ModelMapping {
	return storage.ModelMapping{ID: newID(), OrganizationID: organization, Alias: alias, Description: "About " + alias,
		Targets: []storage.ModelTarget{
			{ProviderID: provider, Model: "large", Weight: 3, Timeouts: storage.ModelTimeouts{Response: time.Minute}},
			{ProviderID: provider, Model: "small"},
		}, Fallbacks: fallbacks, MaxOutputTokens: 8192, CreatedAt: start, UpdatedAt: start.Add(time.Second)}
}

// mapping stores a mapping.
func (b *bundle) mapping(t *testing.T, organization, alias, provider string, fallbacks ...string) storage.ModelMapping {
	t.Helper()
	m := newMapping(organization, alias, provider, fallbacks...)
	noError(t, b.CreateModelMapping(t.Context(), configured, m))
	return m
}

// newSmart returns a smart model with every member set, not stored.
func newSmart(organization, alias, determiner string, slots ...string) storage.SmartModel {
	m := storage.SmartModel{ID: newID(), OrganizationID: organization, Alias: alias, Description: "About " + alias, Enabled: true,
		DeterminerAlias: determiner, Breakpoints: []int{100, 1000}, DeterminerInputMaxChars: 500, DefaultSlot: 1, Sticky: true,
		CreatedAt: start, UpdatedAt: start.Add(time.Second)}
	for _, slot := range slots {
		m.Slots = append(m.Slots, storage.ModelSlot{Alias: slot, Label: "for " + slot})
	}
	return m
}

// smart stores a smart model.
func (b *bundle) smart(t *testing.T, organization, alias, determiner string, slots ...string) storage.SmartModel {
	t.Helper()
	m := newSmart(organization, alias, determiner, slots...)
	noError(t, b.CreateSmartModel(t.Context(), configured, m))
	return m
}

// wantTarget checks that an error is this TargetError.
func wantTarget(t *testing.T, err error, want storage.TargetError) {
	t.Helper()
	var got *storage.TargetError
	if !errors.As(err, &got) {
		t.Fatalf("got error %v, want a TargetError", err)
	}
	equal(t, *got, want)
}

func testProviders(t *testing.T, b *bundle) {
	ctx := t.Context()
	want := b.provider(t, b.orgA, "Zoo")
	bare := storage.LLMProvider{ID: newID(), OrganizationID: b.orgA, Name: "bare"}
	noError(t, b.CreateLLMProvider(ctx, storage.ConfiguredModels{}, bare))
	b.provider(t, b.orgB, "Zoo")
	for _, want := range []storage.LLMProvider{want, bare} {
		got, err := b.LLMProvider(ctx, b.orgA, want.ID)
		noError(t, err)
		equal(t, got, want)
	}
	for _, name := range []string{"zo o", "BARE", "house"} {
		wantConflict(t, b.CreateLLMProvider(ctx, configured, newProvider(b.orgA, name)), "name")
	}
	for id := range configured.Providers {
		taken := newProvider(b.orgA, "New")
		taken.ID = id
		wantConflict(t, b.CreateLLMProvider(ctx, configured, taken), "id")
	}
	taken := newProvider(b.orgA, "New")
	taken.ID = want.ID
	wantConflict(t, b.CreateLLMProvider(ctx, configured, taken), "id")

	update := func(edit func(*storage.LLMProvider)) (storage.LLMProvider, error) {
		return b.UpdateLLMProvider(ctx, configured, b.orgA, want.ID, func(p *storage.LLMProvider) error { edit(p); return nil })
	}
	for _, name := range []string{"Bare", "House"} {
		_, err := update(func(p *storage.LLMProvider) { p.Name, p.SealedSecret[0] = name, 9 })
		wantConflict(t, err, "name")
	}
	refusal := errors.New("refused")
	_, err := b.UpdateLLMProvider(ctx, configured, b.orgA, want.ID, func(p *storage.LLMProvider) error { p.Name = "never"; return refusal })
	wantError(t, err, refusal)
	want.Name, want.Kind, want.BaseURL, want.Timeouts, want.UpdatedAt = "Ark", "anthropic", "", storage.ModelTimeouts{}, start.Add(time.Minute)
	got, err := update(func(p *storage.LLMProvider) {
		id := p.ID
		*p = want
		p.ID, p.OrganizationID, p.CreatedAt = id+"x", b.orgB, start.Add(time.Hour)
	})
	noError(t, err)
	equal(t, got, want)
	for _, secret := range [][]byte{{7}, nil} { // the secret alone
		want.SealedSecret = secret
		_, err = update(func(p *storage.LLMProvider) { p.SealedSecret = secret })
		noError(t, err)
		got, err = b.LLMProvider(ctx, b.orgA, want.ID)
		noError(t, err)
		equal(t, got, want)
	}
	set, err := b.ModelSet(ctx, b.orgA)
	noError(t, err)
	equal(t, set.Providers, []storage.LLMProvider{want, bare})

	// A provider whose name the configuration now has too can still be changed.
	later := storage.ConfiguredModels{Providers: map[string]string{b.unknown: "ark"}}
	_, err = b.UpdateLLMProvider(ctx, later, b.orgA, want.ID, func(p *storage.LLMProvider) error { p.Kind = "openai"; return nil })
	noError(t, err)

	noError(t, b.DeleteLLMProvider(ctx, b.orgA, want.ID))
	wantError(t, b.DeleteLLMProvider(ctx, b.orgA, want.ID), storage.ErrNotFound)
	_, err = b.LLMProvider(ctx, b.orgA, want.ID)
	wantError(t, err, storage.ErrNotFound)
}

func testMappings(t *testing.T, b *bundle) {
	ctx := t.Context()
	provider, foreign := b.provider(t, b.orgA, "P"), b.provider(t, b.orgB, "P")
	house := newMapping(b.orgA, "house-model", "")
	for id := range configured.Providers {
		house.Targets = []storage.ModelTarget{{ProviderID: id, Model: "m"}}
	}
	noError(t, b.CreateModelMapping(ctx, configured, house))
	fast := b.mapping(t, b.orgA, "fast", provider.ID)
	want := b.mapping(t, b.orgA, "Fast", provider.ID, "fast", "house")
	smart := b.smart(t, b.orgA, "smart", "fast", "fast")
	b.mapping(t, b.orgB, "theirs", foreign.ID)
	b.mapping(t, b.orgB, "fast", foreign.ID) // an organization's aliases are its own
	for _, want := range []storage.ModelMapping{house, fast, want} {
		got, err := b.ModelMapping(ctx, b.orgA, want.ID)
		noError(t, err)
		equal(t, got, want)
	}
	for _, alias := range []string{"fast", "smart", "house"} {
		wantConflict(t, b.CreateModelMapping(ctx, configured, newMapping(b.orgA, alias, provider.ID)), "model_alias")
	}
	taken := newMapping(b.orgA, "new", provider.ID)
	taken.ID = fast.ID
	wantConflict(t, b.CreateModelMapping(ctx, configured, taken), "id")
	taken.ID = smart.ID
	wantConflict(t, b.CreateModelMapping(ctx, configured, taken), "id")

	for name, c := range map[string]struct {
		edit func(*storage.ModelMapping)
		want storage.TargetError
	}{
		"unknown provider":  {func(m *storage.ModelMapping) { m.Targets[1].ProviderID = b.unknown }, storage.TargetError{Field: "targets", Index: 1}},
		"foreign provider":  {func(m *storage.ModelMapping) { m.Targets[1].ProviderID = foreign.ID }, storage.TargetError{Field: "targets", Index: 1}},
		"no provider":       {func(m *storage.ModelMapping) { m.Targets[0].ProviderID = "" }, storage.TargetError{Field: "targets"}},
		"unknown fallback":  {func(m *storage.ModelMapping) { m.Fallbacks = []string{"fast", "unknown"} }, storage.TargetError{Field: "fallbacks", Index: 1}},
		"foreign fallback":  {func(m *storage.ModelMapping) { m.Fallbacks = []string{"theirs"} }, storage.TargetError{Field: "fallbacks"}},
		"fallback's case":   {func(m *storage.ModelMapping) { m.Fallbacks = []string{"FAST"} }, storage.TargetError{Field: "fallbacks"}},
		"empty fallback":    {func(m *storage.ModelMapping) { m.Fallbacks = []string{""} }, storage.TargetError{Field: "fallbacks"}},
		"smart fallback":    {func(m *storage.ModelMapping) { m.Fallbacks = []string{"fast", "smart"} }, storage.TargetError{Field: "fallbacks", Index: 1, Smart: true}},
		"its own fallback":  {func(m *storage.ModelMapping) { m.Fallbacks = []string{m.Alias} }, storage.TargetError{Field: "fallbacks", Smart: true}},
		"before a conflict": {func(m *storage.ModelMapping) { m.Alias, m.Fallbacks = "fast", []string{"unknown"} }, storage.TargetError{Field: "fallbacks"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMapping(b.orgA, "new", provider.ID)
			c.edit(&m)
			wantTarget(t, b.CreateModelMapping(ctx, configured, m), c.want)
			_, err := b.UpdateModelMapping(ctx, configured, b.orgA, want.ID, func(m *storage.ModelMapping) error { c.edit(m); return nil })
			wantTarget(t, err, c.want)
		})
	}

	update := func(edit func(*storage.ModelMapping)) (storage.ModelMapping, error) {
		return b.UpdateModelMapping(ctx, configured, b.orgA, want.ID, func(m *storage.ModelMapping) error { edit(m); return nil })
	}
	for _, alias := range []string{"fast", "smart", "house"} {
		_, err := update(func(m *storage.ModelMapping) { m.Alias, m.Fallbacks = alias, nil })
		wantConflict(t, err, "model_alias")
	}
	_, err := update(func(m *storage.ModelMapping) { m.Fallbacks, m.Alias = []string{m.Alias}, "renamed" })
	wantTarget(t, err, storage.TargetError{Field: "fallbacks"})
	refusal := errors.New("refused")
	_, err = b.UpdateModelMapping(ctx, configured, b.orgA, want.ID, func(m *storage.ModelMapping) error { m.Targets[0].Model = "never"; return refusal })
	wantError(t, err, refusal)
	want.Alias, want.Description, want.UpdatedAt = "renamed", "new", start.Add(time.Minute)
	want.Targets, want.Fallbacks = []storage.ModelTarget{{ProviderID: provider.ID, Model: "only"}}, []string{"house-model", "house"}
	got, err := update(func(m *storage.ModelMapping) {
		*m = want
		m.ID, m.OrganizationID, m.CreatedAt = newID(), b.orgB, start.Add(time.Hour)
	})
	noError(t, err)
	equal(t, got, want)
	got, err = b.ModelMapping(ctx, b.orgA, want.ID)
	noError(t, err)
	equal(t, got, want)
	b.mapping(t, b.orgA, "Fast", provider.ID) // the name is free
	set, err := b.ModelSet(ctx, b.orgA)
	noError(t, err)
	equal(t, aliases(set), []string{"Fast", "fast", "house-model", "renamed", "smart"})

	// A model that the configuration no longer gives does not keep a mapping from being changed, but cannot be named
	// anew.
	none := storage.ConfiguredModels{}
	_, err = b.UpdateModelMapping(ctx, none, b.orgA, want.ID, func(m *storage.ModelMapping) error { m.Description = "changed"; return nil })
	noError(t, err)
	_, err = b.UpdateModelMapping(ctx, none, b.orgA, fast.ID, func(m *storage.ModelMapping) error { m.Fallbacks = []string{"house"}; return nil })
	wantTarget(t, err, storage.TargetError{Field: "fallbacks"})
	// No smart model may take its place, because nothing may refer to one.
	wantConflict(t, b.CreateSmartModel(ctx, none, newSmart(b.orgA, "house", "fast", "fast")), "model_alias")
}

// aliases lists the aliases of a set.
func aliases(set storage.ModelSet) (all []string) {
	for _, m := range set.Mappings {
		all = append(all, m.Alias)
	}
	for _, m := range set.Smart {
		all = append(all, m.Alias)
	}
	return all
}

func testModelsInUse(t *testing.T, b *bundle) {
	ctx := t.Context()
	provider := b.provider(t, b.orgA, "P")
	slot, determiner, fallback := b.mapping(t, b.orgA, "slot", provider.ID), b.mapping(t, b.orgA, "determiner", provider.ID), b.mapping(t, b.orgA, "fallback", provider.ID)
	user := b.mapping(t, b.orgA, "user", provider.ID, "fallback")
	smart := b.smart(t, b.orgA, "smart", "determiner", "slot", "slot")
	other := b.provider(t, b.orgB, "P") // the same names elsewhere are unused
	for _, alias := range []string{"slot", "determiner", "fallback"} {
		m := b.mapping(t, b.orgB, alias, other.ID)
		noError(t, b.DeleteModelMapping(ctx, b.orgB, m.ID))
	}
	noError(t, b.DeleteLLMProvider(ctx, b.orgB, other.ID))

	wantConflict(t, b.DeleteLLMProvider(ctx, b.orgA, provider.ID), "in_use")
	for _, m := range []storage.ModelMapping{slot, determiner, fallback} {
		wantConflict(t, b.DeleteModelMapping(ctx, b.orgA, m.ID), "in_use")
		_, err := b.UpdateModelMapping(ctx, configured, b.orgA, m.ID, func(m *storage.ModelMapping) error { m.Alias += "2"; return nil })
		wantConflict(t, err, "in_use")
		got, err := b.ModelMapping(ctx, b.orgA, m.ID)
		noError(t, err)
		equal(t, got, m)
	}

	// An edit or a deletion that removes the reference to an alias frees it.
	_, err := b.UpdateSmartModel(ctx, configured, b.orgA, smart.ID, func(m *storage.SmartModel) error { m.Slots, m.DeterminerAlias = m.Slots[:1], ""; return nil })
	noError(t, err)
	noError(t, b.DeleteModelMapping(ctx, b.orgA, determiner.ID))
	wantConflict(t, b.DeleteModelMapping(ctx, b.orgA, slot.ID), "in_use")
	noError(t, b.DeleteSmartModel(ctx, b.orgA, smart.ID))
	noError(t, b.DeleteModelMapping(ctx, b.orgA, slot.ID))
	noError(t, b.DeleteModelMapping(ctx, b.orgA, user.ID))
	_, err = b.UpdateModelMapping(ctx, configured, b.orgA, fallback.ID, func(m *storage.ModelMapping) error { m.Alias = "slot"; return nil })
	noError(t, err)
	wantConflict(t, b.DeleteLLMProvider(ctx, b.orgA, provider.ID), "in_use")
	noError(t, b.DeleteModelMapping(ctx, b.orgA, fallback.ID))
	wantError(t, b.DeleteModelMapping(ctx, b.orgA, fallback.ID), storage.ErrNotFound)
	noError(t, b.DeleteLLMProvider(ctx, b.orgA, provider.ID))
	set, err := b.ModelSet(ctx, b.orgA)
	noError(t, err)
	equal(t, set, storage.ModelSet{})
}

func testSmartModels(t *testing.T, b *bundle) {
	ctx := t.Context()
	provider, foreign := b.provider(t, b.orgA, "P"), b.provider(t, b.orgB, "P")
	b.mapping(t, b.orgA, "fast", provider.ID)
	b.mapping(t, b.orgA, "good", provider.ID)
	b.mapping(t, b.orgB, "theirs", foreign.ID)
	want := b.smart(t, b.orgA, "auto", "fast", "fast", "good", "house", "fast")
	bare := storage.SmartModel{ID: newID(), OrganizationID: b.orgA, Alias: "bare", Slots: []storage.ModelSlot{{Alias: "house"}}}
	noError(t, b.CreateSmartModel(ctx, configured, bare))
	for _, want := range []storage.SmartModel{want, bare} {
		got, err := b.SmartModel(ctx, b.orgA, want.ID)
		noError(t, err)
		equal(t, got, want)
	}
	for _, alias := range []string{"fast", "auto", "house"} {
		wantConflict(t, b.CreateSmartModel(ctx, configured, newSmart(b.orgA, alias, "fast", "fast")), "model_alias")
	}
	taken := newSmart(b.orgA, "new", "fast", "fast")
	taken.ID = want.ID
	wantConflict(t, b.CreateSmartModel(ctx, configured, taken), "id")

	slots := func(all ...string) func(*storage.SmartModel) {
		return func(m *storage.SmartModel) { m.Slots = newSmart("", "", "", all...).Slots }
	}
	for name, c := range map[string]struct {
		edit func(*storage.SmartModel)
		want storage.TargetError
	}{
		"unknown slot":       {slots("fast", "good", "unknown"), storage.TargetError{Field: "slots", Index: 2}},
		"foreign slot":       {slots("theirs"), storage.TargetError{Field: "slots"}},
		"a slot's case":      {slots("FAST"), storage.TargetError{Field: "slots"}},
		"a slot in place":    {func(m *storage.SmartModel) { m.Slots[0].Alias = "unknown" }, storage.TargetError{Field: "slots"}},
		"smart slot":         {slots("fast", "bare"), storage.TargetError{Field: "slots", Index: 1, Smart: true}},
		"unknown determiner": {func(m *storage.SmartModel) { m.DeterminerAlias = "unknown" }, storage.TargetError{Field: "determiner_model_alias"}},
		"smart determiner":   {func(m *storage.SmartModel) { m.DeterminerAlias = "bare" }, storage.TargetError{Field: "determiner_model_alias", Smart: true}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newSmart(b.orgA, "new", "fast", "fast")
			c.edit(&m)
			wantTarget(t, b.CreateSmartModel(ctx, configured, m), c.want)
			_, err := b.UpdateSmartModel(ctx, configured, b.orgA, want.ID, func(m *storage.SmartModel) error { c.edit(m); return nil })
			wantTarget(t, err, c.want)
		})
	}

	update := func(edit func(*storage.SmartModel)) (storage.SmartModel, error) {
		return b.UpdateSmartModel(ctx, configured, b.orgA, want.ID, func(m *storage.SmartModel) error { edit(m); return nil })
	}
	for _, alias := range []string{"fast", "bare", "house"} {
		_, err := update(func(m *storage.SmartModel) { m.Alias = alias })
		wantConflict(t, err, "model_alias")
	}
	_, err := update(func(m *storage.SmartModel) { m.Slots, m.Alias = []storage.ModelSlot{{Alias: m.Alias}}, "renamed" })
	wantTarget(t, err, storage.TargetError{Field: "slots", Smart: true})
	refusal := errors.New("refused")
	_, err = b.UpdateSmartModel(ctx, configured, b.orgA, want.ID, func(m *storage.SmartModel) error {
		m.Slots[0].Label, m.Breakpoints[0] = "never", 1
		return refusal
	})
	wantError(t, err, refusal)
	edited := newSmart("", "renamed", "good", "good")
	edited.Enabled, edited.Breakpoints, edited.Sticky, edited.DefaultSlot = false, nil, false, 0
	edited.UpdatedAt = start.Add(time.Minute)
	got, err := update(func(m *storage.SmartModel) { *m = edited })
	noError(t, err)
	edited.ID, edited.OrganizationID = want.ID, b.orgA
	equal(t, got, edited)
	got, err = b.SmartModel(ctx, b.orgA, want.ID)
	noError(t, err)
	equal(t, got, edited)
	b.mapping(t, b.orgA, "auto", provider.ID) // the name is free

	// A slot that the configuration no longer gives does not keep the model from being switched off.
	_, err = b.UpdateSmartModel(ctx, storage.ConfiguredModels{}, b.orgA, bare.ID, func(m *storage.SmartModel) error { m.Enabled = !m.Enabled; return nil })
	noError(t, err)
	noError(t, b.DeleteSmartModel(ctx, b.orgA, bare.ID))
	wantError(t, b.DeleteSmartModel(ctx, b.orgA, bare.ID), storage.ErrNotFound)
	_, err = b.SmartModel(ctx, b.orgA, bare.ID)
	wantError(t, err, storage.ErrNotFound)
	b.mapping(t, b.orgA, "bare", provider.ID)
}
