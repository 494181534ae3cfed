package accounts_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
)

// describe returns a model's targets, each with the timeouts for connecting, for the answer's begin and for silence,
// and its fallbacks with their targets.
func describe(m *accounts.Model) string {
	text := m.Alias
	if m.Smart != nil {
		text += " smart"
	}
	for _, target := range m.Targets {
		text += fmt.Sprintf(" %s/%s %v,%v,%v", target.Account.Name, target.Model, target.Timeouts.Connect, target.Timeouts.Response, target.Timeouts.Idle)
	}
	for _, f := range m.Fallbacks {
		text += " > " + f.Alias
		for _, target := range f.Targets {
			text += "=" + target.Account.Name + "/" + target.Model
		}
	}
	return text
}

// TestMerge checks what an organization's models replace and refer to, one case at a time.
func TestMerge(t *testing.T) {
	t.Parallel()
	const (
		large = "large house/l 1s,0s,2s"
		small = "small house/s 1s,0s,2s > large=house/l"
	)
	own := storage.LLMProvider{
		ID: "own", OrganizationID: "acme", Name: "own", Kind: "openai", Timeouts: storage.ModelTimeouts{Connect: 10 * time.Second, Response: 20 * time.Second},
	}
	mapping := func(alias, model string, fallbacks ...string) storage.ModelMapping {
		return storage.ModelMapping{Alias: alias, Targets: []storage.ModelTarget{{ProviderID: "own", Model: model}}, Fallbacks: fallbacks}
	}
	for name, tc := range map[string]struct {
		mappings []storage.ModelMapping
		smart    []storage.SmartModel
		want     []string
	}{
		"nothing of its own": {want: []string{large, small}},
		"an alias of its own": {
			mappings: []storage.ModelMapping{mapping("tiny", "t")},
			want:     []string{large, small, "tiny own/t 10s,20s,0s"},
		},
		// The configuration's alias goes on to the model that the configuration meant.
		"a fallback of the configuration is replaced": {
			mappings: []storage.ModelMapping{mapping("large", "mine")},
			want:     []string{"large own/mine 10s,20s,0s", small},
		},
		"a fallback to a replaced alias": {
			mappings: []storage.ModelMapping{mapping("a", "m", "large"), mapping("large", "mine")},
			want:     []string{"a own/m 10s,20s,0s > large=own/mine", "large own/mine 10s,20s,0s", small},
		},
		"fallbacks to each other": {
			mappings: []storage.ModelMapping{mapping("a", "m", "b", "small", "gone"), mapping("b", "n", "a")},
			want:     []string{"a own/m 10s,20s,0s > b=own/n > small=house/s", "b own/n 10s,20s,0s > a=own/m", large, small},
		},
		"smart models": {
			smart: []storage.SmartModel{{Alias: "clever", Enabled: true}, {Alias: "small", Enabled: true}},
			want:  []string{"clever smart", large, "small smart"},
		},
		"disabled smart models": {
			smart: []storage.SmartModel{{Alias: "clever"}, {Alias: "small"}},
			want:  []string{large},
		},
		"no account is left": {
			mappings: []storage.ModelMapping{{Alias: "a", Targets: []storage.ModelTarget{{ProviderID: "gone", Model: "m"}}}},
			want:     []string{"a", large, small},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.store.of["acme"] = storage.ModelSet{Providers: []storage.LLMProvider{own}, Mappings: tc.mappings, Smart: tc.smart}
			var got []string
			for m := range b.models(t, "acme").All {
				got = append(got, describe(m))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFacts checks that models have the facts of their records.
func TestFacts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	b.store.of["acme"] = storage.ModelSet{
		Providers: []storage.LLMProvider{{ID: "own", Name: "Own", Kind: "openai", NoStreamOptions: true}},
		Mappings: []storage.ModelMapping{
			{
				Alias: "a", Description: "d", CreatedAt: made, MaxOutputTokens: 100, Fallbacks: []string{"b"},
				Targets: []storage.ModelTarget{{ProviderID: "own", Model: "m", Weight: 3}},
			},
			{Alias: "b", MaxOutputTokens: 200}, {Alias: "c"},
		},
	}
	known := b.models(t, "acme")
	a, _ := known.Find("a")
	if a.Description != "d" || !a.CreatedAt.Equal(made) || a.MaxOutput != 100 || a.Targets[0].Weight != 3 {
		t.Errorf("%+v", a)
	}
	if of := a.Targets[0].Account; of.ID != "own" || of.Name != "Own" || of.Kind != "openai" || !of.NoStreamOptions {
		t.Errorf("%+v", of)
	}
	for alias, want := range map[string]int64{"a": 200, "b": 200, "c": limit.MostOutput} {
		if m, _ := known.Find(alias); m.MostOutput() != want {
			t.Errorf("%s makes %d tokens, want %d", alias, m.MostOutput(), want)
		}
	}
}

// TestURLs checks the addresses of endpoints. An account whose URL cannot be read is told about, and has none.
func TestURLs(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"":                                 "https://api.example/v1/chat",
		"https://models.example":           "https://models.example/chat",
		"https://models.example/v1//":      "https://models.example/v1/chat",
		"https://models.example/a%2Fb/":    "https://models.example/a%2Fb/chat",
		"https://models.example/%zz":       "",
		"https://models.example:port/chat": "",
	} {
		b := newBench(t)
		b.store.of["acme"] = storage.ModelSet{
			Providers: []storage.LLMProvider{{ID: "own", Kind: "openai", BaseURL: base}},
			Mappings:  []storage.ModelMapping{{Alias: "a", Targets: []storage.ModelTarget{{ProviderID: "own", Model: "m"}}}},
		}
		var log bytes.Buffer
		b.Catalog = accounts.New(accounts.Options{Base: b.Base, Memory: b.memory, Store: b.store, Vault: b.vault, Log: slog.New(slog.NewTextHandler(&log, nil))})
		a, _ := b.models(t, "acme").Find("a")
		got := ""
		if u := a.Targets[0].Account.URL(limit.ChatCompletions); u != nil {
			got = u.String()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", base, got, want)
		}
		if told := strings.Contains(log.String(), `level=WARN msg="a provider cannot be used" provider=own error=`); told != (want == "") {
			t.Errorf("%q: told %q", base, &log)
		}
	}
}
