package accounts_test

import (
	"testing"

	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/seal/sealtest"
	"github.com/durward-gateway/durward/storage"
)

// TestSilent checks that no type shows the secret that it holds.
func TestSilent(t *testing.T) {
	t.Parallel()
	settings := accounts.Settings{
		Accounts: []accounts.AccountSettings{{Kind: "openai", Name: "house", Secret: seal.NewSecret(sealtest.Canary)}},
		Models:   []accounts.ModelSettings{{Alias: "small", Targets: []accounts.TargetSettings{{Account: "house", Model: "s"}}}},
	}
	b := newBench(t)
	b.Catalog = b.catalog(t, settings)
	small, _ := b.models(t, "acme").Find("small")
	account := small.Targets[0].Account
	sealtest.Silent(t, settings, &settings, settings.Accounts[0], account, *account, small, small.Targets[0], b.ConfiguredAccounts())
}

// TestPlaces checks that the secret of an account opens at its own place only.
func TestPlaces(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := storage.LLMProvider{ID: "own", OrganizationID: "acme", Kind: "openai", BaseURL: "https://models.acme"}
	if err := accounts.SealSecret(b.vault, &p, seal.NewSecret("sk-own")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		at    seal.AD
		opens bool
	}{
		{seal.ProviderPlace("acme", "own", "openai", "https://models.acme"), true},
		{seal.ProviderPlace("rival", "own", "openai", "https://models.acme"), false},
		{seal.ProviderPlace("acme", "other", "openai", "https://models.acme"), false},
		{seal.ProviderPlace("acme", "own", "inhouse", "https://models.acme"), false},
		{seal.ProviderPlace("acme", "own", "openai", "https://models.rival"), false},
	} {
		if plain, err := b.vault.Open(p.SealedSecret, tc.at); (err == nil) != tc.opens || tc.opens && string(plain) != "sk-own" {
			t.Errorf("%v: %q, %v", tc.at, plain, err)
		}
	}
}
