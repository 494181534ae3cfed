package accounts_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/llm/route"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/proxy/http1"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// protocol is a kind of provider that serves chat completions only.
type protocol struct{ base string }

func (p protocol) BaseURL() string { return p.base }

func (protocol) Path(endpoint limit.Endpoint) (string, bool) {
	return "/chat", endpoint == limit.ChatCompletions
}

func (protocol) Authorize(h http.Header, secret seal.Secret) { h.Set("X-Key", secret.Reveal()) }

func (protocol) Headers() *forward.Rules { return nil }

// vault seals in the clear, with the place, and counts how often it opens.
type vault struct {
	opened int
	err    error
}

func (v *vault) Seal(plain []byte, at seal.AD) ([]byte, error) {
	return fmt.Append(nil, at, "|", string(plain)), v.err
}

func (v *vault) Open(sealed []byte, at seal.AD) ([]byte, error) {
	v.opened++
	if v.err != nil {
		return nil, v.err
	}
	plain, ok := strings.CutPrefix(string(sealed), fmt.Sprint(at)+"|")
	if !ok {
		return nil, errors.New("sealed for another place")
	}
	return []byte(plain), nil
}

// sets is a store, by organization.
type sets struct {
	of  map[string]storage.ModelSet
	err error
	n   atomic.Int64 // of reads
}

func (s *sets) ModelSet(_ context.Context, organization string) (storage.ModelSet, error) {
	s.n.Add(1)
	return s.of[organization], s.err
}

// bench is a catalogue with the parts that it uses.
type bench struct {
	*accounts.Catalog
	memory *accounts.Memory
	epochs *cache.Epochs
	store  *sets
	vault  *vault
}

var kinds = map[string]accounts.Protocol{"openai": protocol{"https://api.example/v1"}, "inhouse": protocol{}}

var configured = accounts.Settings{
	Accounts: []accounts.AccountSettings{{Kind: "openai", Name: "house", Secret: seal.NewSecret("sk-house"), Timeouts: storage.ModelTimeouts{Connect: time.Second, Idle: 2 * time.Second}}},
	Models: []accounts.ModelSettings{
		{Alias: "small", Description: "the house's", Targets: []accounts.TargetSettings{{Account: "HOUSE", Model: "s"}}, Fallbacks: []string{"large"}},
		{Alias: "large", Targets: []accounts.TargetSettings{{Account: "house", Model: "l"}}, MaxOutput: 10},
	},
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{epochs: new(cache.Epochs), store: &sets{of: make(map[string]storage.ModelSet)}, vault: new(vault)}
	var err error
	if b.memory, err = accounts.NewMemory(b.epochs, time.Now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.memory.Close)
	b.Catalog = b.catalog(t, configured)
	return b
}

func (b *bench) catalog(t *testing.T, s accounts.Settings) *accounts.Catalog {
	t.Helper()
	base, err := accounts.NewBase(kinds, func(*url.URL) string { return "" }, s)
	if err != nil {
		t.Fatal(err)
	}
	return accounts.New(accounts.Options{Base: base, Memory: b.memory, Store: b.store, Vault: b.vault})
}

func (b *bench) models(t *testing.T, organization string) *accounts.Models {
	t.Helper()
	m, err := b.Models(t.Context(), organization)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// kept reads an organization's models until they are kept, which the cache does in the background. It returns the number
// of reads of the store.
func (b *bench) kept(t *testing.T, organization string) (reads int64) {
	t.Helper()
	for t.Context().Err() == nil {
		reads = b.store.n.Load()
		if b.models(t, organization); b.store.n.Load() == reads {
			return reads
		}
		runtime.Gosched()
	}
	return reads
}

func aliases(m *accounts.Models) (all []string) {
	for model := range m.All {
		all = append(all, model.Alias)
	}
	return all
}

// house returns the id of the configuration's account.
func (b *bench) house() string { return b.ConfiguredAccounts()[0].ID }

// TestModels checks which models an organization can ask for: the configuration's, and its own, which go before them.
func TestModels(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	own := storage.LLMProvider{ID: "own", OrganizationID: "acme", Name: "own", Kind: "inhouse", BaseURL: "https://models.acme/x/", Timeouts: storage.ModelTimeouts{Response: time.Minute}}
	b.store.of["acme"] = storage.ModelSet{
		Providers: []storage.LLMProvider{own, {ID: "odd", Kind: "unknown", BaseURL: "https://models.acme"}},
		Mappings: []storage.ModelMapping{
			{Alias: "small", Description: "ours", MaxOutputTokens: 50, Fallbacks: []string{"large", "fast", "gone"}, Targets: []storage.ModelTarget{
				{ProviderID: "own", Model: "m", Weight: 2, Timeouts: storage.ModelTimeouts{Connect: 5 * time.Second}},
				{ProviderID: b.house(), Model: "s2"}, {ProviderID: "gone", Model: "g"},
			}},
			{Alias: "fast", Targets: []storage.ModelTarget{{ProviderID: "odd", Model: "o"}}},
		},
		Smart: []storage.SmartModel{{Alias: "clever", Enabled: true}, {Alias: "large"}},
	}
	m := b.models(t, "acme")
	if got, want := aliases(m), []string{"clever", "fast", "small"}; !slices.Equal(got, want) {
		t.Errorf("models %v, want %v: a smart model that is off takes its name from the configuration's", got, want)
	}
	small, ok := m.Find("small")
	if !ok || small.Description != "ours" || len(small.Targets) != 2 {
		t.Fatalf("%+v", small)
	}
	if got, want := small.Targets[0].Timeouts, (storage.ModelTimeouts{Connect: 5 * time.Second, Response: time.Minute}); got != want {
		t.Errorf("timeouts %+v, want %+v", got, want)
	}
	if got, want := small.Targets[1].Timeouts, (storage.ModelTimeouts{Connect: time.Second, Idle: 2 * time.Second}); got != want {
		t.Errorf("timeouts %+v, want %+v", got, want)
	}
	if u := small.Targets[0].Account.URL(limit.ChatCompletions); u == nil || u.String() != "https://models.acme/x/chat" {
		t.Errorf("%v", u)
	}
	if u := small.Targets[0].Account.URL(limit.Messages); u != nil {
		t.Errorf("an endpoint that its provider does not serve: %v", u)
	}
	// Fallbacks are looked up before smart models take their names: the configuration's model answers.
	if len(small.Fallbacks) != 2 || small.Fallbacks[0].Alias != "large" || small.MostOutput() != limit.MostOutput {
		t.Errorf("%+v, most output %d", small.Fallbacks, small.MostOutput())
	}
	fast, _ := m.Find("fast")
	if fast.Targets[0].Account.Protocol != nil || fast.Targets[0].Account.URL(limit.ChatCompletions) != nil {
		t.Errorf("a kind that is not known has an address: %+v", fast.Targets[0].Account)
	}
	clever, _ := m.Find("clever")
	if clever.Smart == nil || len(clever.Targets) > 0 {
		t.Errorf("%+v", clever)
	}
	rival := b.models(t, "rival")
	if got := aliases(rival); !slices.Equal(got, []string{"large", "small"}) {
		t.Errorf("another organization has %v", got)
	}
	if theirs, _ := rival.Find("small"); theirs.Description != "the house's" || theirs.Targets[0].Model != "s" || theirs.Fallbacks[0].Alias != "large" {
		t.Errorf("%+v", theirs)
	}
}

// TestMemory checks that models are read again after a write in their organization only, that a failure is not kept,
// and that a new configuration does not see the models of the old one.
func TestMemory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.store.err = storage.ErrUnavailable
	if _, err := b.Models(t.Context(), "acme"); !errors.Is(err, storage.ErrUnavailable) {
		t.Fatal(err)
	}
	b.store.err = nil
	read := b.kept(t, "acme")
	b.epochs.Bump("rival")
	if b.models(t, "acme"); b.store.n.Load() != read {
		t.Error("a write in another organization ends them")
	}
	b.epochs.Bump("acme")
	if b.models(t, "acme"); b.store.n.Load() == read {
		t.Error("a write in the organization does not end them")
	}
	next := b.catalog(t, accounts.Settings{})
	if m, err := next.Models(t.Context(), "acme"); err != nil || len(aliases(m)) > 0 {
		t.Errorf("the next configuration has %v, %v", aliases(m), err)
	}
	b.NoStreamOptions().Add(route.RefusalKey{})
	if !next.NoStreamOptions().Has(route.RefusalKey{}) || next.Breakers() != b.Breakers() {
		t.Error("the next configuration forgets the failures of providers")
	}
}

// TestCredential checks that the secret of an account is opened when it is put on a request, and only for the place that
// it was given for.
func TestCredential(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	own := storage.LLMProvider{ID: "own", OrganizationID: "acme", Kind: "inhouse", BaseURL: "https://models.acme"}
	if err := accounts.SealSecret(b.vault, &own, seal.NewSecret("sk-own")); err != nil {
		t.Fatal(err)
	}
	moved, none := own, own
	moved.ID, moved.BaseURL, none.ID = "moved", "https://models.rival", "none"
	if err := accounts.SealSecret(b.vault, &none, seal.Secret{}); err != nil || none.SealedSecret != nil {
		t.Fatalf("%q, %v", none.SealedSecret, err)
	}
	mapping := storage.ModelMapping{Alias: "all"}
	for _, id := range []string{own.ID, moved.ID, none.ID, b.house()} {
		mapping.Targets = append(mapping.Targets, storage.ModelTarget{ProviderID: id, Model: "m"})
	}
	b.store.of["acme"] = storage.ModelSet{Providers: []storage.LLMProvider{own, moved, none}, Mappings: []storage.ModelMapping{mapping}}
	all, _ := b.models(t, "acme").Find("all")
	for i, want := range []string{"sk-own", "error", "", "sk-house"} {
		credential := b.Credential(all.Targets[i].Account)
		r := &http1.Request{Fields: []http1.Field{{Name: "Accept", Value: "a"}, {Name: "Accept", Value: "b"}}}
		before := b.vault.opened
		err := credential.Apply(r)
		if want == "error" {
			if err == nil || len(r.Fields) != 2 {
				t.Errorf("%d: %v %v", i, err, r.Fields)
			}
			continue
		}
		if err != nil || !slices.Contains(r.Fields, http1.Field{Name: "X-Key", Value: want}) || len(r.Fields) != 3 {
			t.Errorf("%d: %v %v", i, err, r.Fields)
		}
		if _ = credential.Apply(r); want == "sk-own" && b.vault.opened != before+2 {
			t.Error("the secret is kept between requests")
		}
	}
}

// TestSettings checks which settings of a configuration are refused, and that none of the reasons has the secret.
func TestSettings(t *testing.T) {
	t.Parallel()
	account := func(change func(*accounts.AccountSettings)) accounts.Settings {
		s := accounts.AccountSettings{Kind: "openai", Name: "a", Secret: seal.NewSecret("sk-secret")}
		change(&s)
		return accounts.Settings{Accounts: []accounts.AccountSettings{s}}
	}
	model := func(change func(*accounts.ModelSettings)) accounts.Settings {
		s := accounts.ModelSettings{Alias: "m", Targets: []accounts.TargetSettings{{Account: "house", Model: "x"}}}
		change(&s)
		return accounts.Settings{Accounts: configured.Accounts, Models: []accounts.ModelSettings{s}}
	}
	for want, s := range map[string]accounts.Settings{
		`unrecognized kind "x"; known are inhouse, openai`: account(func(s *accounts.AccountSettings) { s.Kind = "x" }),
		"a name has no blanks around it":                   account(func(s *accounts.AccountSettings) { s.Name = " a" }),
		"base_url is required":                             account(func(s *accounts.AccountSettings) { s.Kind = "inhouse" }),
		"base_url: this is no URL":                         account(func(s *accounts.AccountSettings) { s.BaseURL = "https://a b" }),
		"base_url: a base URL has no query":                account(func(s *accounts.AccountSettings) { s.BaseURL = "https://a?" }),
		"base_url: not here":                               account(func(s *accounts.AccountSettings) { s.BaseURL = "https://inner" }),
		"is not a time between":                            account(func(s *accounts.AccountSettings) { s.Timeouts.Idle = accounts.MaxTimeout + 1 }),
		"that name is given twice":                         {Accounts: append(configured.Accounts[:1:1], accounts.AccountSettings{Kind: "openai", Name: "House"})},
		"that is no name of an alias":                      model(func(s *accounts.ModelSettings) { s.Alias = "-" }),
		"it is given twice":                                {Accounts: configured.Accounts, Models: append(configured.Models[1:2:2], configured.Models[1])},
		"it needs a target":                                model(func(s *accounts.ModelSettings) { s.Targets = nil }),
		"max_output_tokens -1":                             model(func(s *accounts.ModelSettings) { s.MaxOutput = -1 }),
		`there is no provider "b"`:                         model(func(s *accounts.ModelSettings) { s.Targets[0].Account = "b" }),
		"a target needs a model":                           model(func(s *accounts.ModelSettings) { s.Targets[0].Model = "" }),
		"weight -1":                                        model(func(s *accounts.ModelSettings) { s.Targets[0].Weight = -1 }),
		`fallback "m" is not another alias`:                model(func(s *accounts.ModelSettings) { s.Fallbacks = []string{"m"} }),
		`fallback "n" is not another alias`:                model(func(s *accounts.ModelSettings) { s.Fallbacks = []string{"n"} }),
	} {
		_, err := accounts.NewBase(kinds, func(u *url.URL) string {
			if u.Host == "inner" {
				return "not here"
			}
			return ""
		}, s)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sk-") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestConfiguredAccounts checks that administrators of organizations see neither the address nor the secret of the
// configuration's accounts, whose ids stay the same.
func TestConfiguredAccounts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	want := accounts.Summary{ID: b.catalog(t, configured).ConfiguredAccounts()[0].ID, Name: "house", Kind: "openai", HasSecret: true, Timeouts: configured.Accounts[0].Timeouts}
	if got, ok := b.ConfiguredAccount(b.house()); !ok || got != want {
		t.Errorf("%+v", got)
	}
	if _, ok := b.ConfiguredAccount("own"); ok {
		t.Error("an account that the configuration has not")
	}
	if names := b.ConfiguredModels(); names.Providers[want.ID] != "house" || len(names.Aliases) != 2 {
		t.Errorf("%+v", names)
	}
}
