package accounts_test

import (
	"net/url"
	"slices"
	"testing"

	"github.com/durward-gateway/durward/internal/llm/accounts"
)

// TestConfiguredIDs checks that the id of a configured account depends on its name alone, in the way in which it always
// did: the store has these ids in mappings, limits and budgets.
func TestConfiguredIDs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Catalog = b.catalog(t, accounts.Settings{Accounts: []accounts.AccountSettings{
		{Kind: "openai", Name: "house"}, {Kind: "openai", Name: "Anthropic", BaseURL: "https://models.example"},
	}})
	all := b.ConfiguredAccounts()
	if len(all) != 2 || all[0].Name != "Anthropic" || all[0].ID != "76faee54-1c74-5ae3-9da1-6ce249768411" || all[1].ID != "6fb6bea0-7bf8-5e70-944a-4a19cc6a1dc9" {
		t.Errorf("%+v", all)
	}
	if all[0].HasSecret {
		t.Error("an account without a secret has one")
	}
}

// TestKinds checks which kinds of providers there are, and which need a base URL.
func TestKinds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if got := b.Kinds(); !slices.Equal(got, []string{"inhouse", "openai"}) {
		t.Errorf("%v", got)
	}
	for kind, needs := range map[string]bool{"openai": false, "inhouse": true, "unknown": false} {
		if b.NeedsBaseURL(kind) != needs {
			t.Errorf("%s needs a base URL: %v", kind, !needs)
		}
	}
}

// TestCheckBaseURL checks which base URLs are refused.
func TestCheckBaseURL(t *testing.T) {
	t.Parallel()
	b, err := accounts.NewBase(kinds, func(u *url.URL) (reason string) {
		if u.Host == "inner" {
			return "not here"
		}
		return ""
	}, accounts.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"https://models.example/v1": "", "::": "this is no URL", "https://models.example/?q": "a base URL has no query",
		"https://models.example/?": "a base URL has no query", "https://inner/v1": "not here", "https://inner/?q": "a base URL has no query",
	} {
		if got := b.CheckBaseURL(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestSecretText checks that no secret ends the header field that it is put into.
func TestSecretText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"sk-1": true, "": false, "sk 1": false, "sk-1\n": false, "sk-1\r\nX: y": false, "sk-ü": false} {
		if got := accounts.SecretText.MatchString(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
