package devidp

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/modules/devidp/models"
	"github.com/durward-gateway/durward/storage"
)

const (
	// modelsPath is the path of the demo provider of models at the demo third party's address.
	modelsPath = "/models"
	// streamPause makes streams take long enough to be watched.
	streamPause = 15 * time.Millisecond
	// smartAlias names the smart model that organization acme gets at its first start.
	smartAlias = "auto"

	openAIName    = "demo-openai"
	anthropicName = "demo-anthropic"
)

//go:embed prices.json
var prices []byte

// Models implements app.DevelopmentIdentity: each alias is served in the words of both providers, but for embeddings. Before
// Bind the providers have no address.
func (i *Identity) Models() app.DevelopmentModels {
	openAI, anthropic := "", ""
	if i.surroundings != nil {
		openAI, anthropic = i.surroundings.demoURL+modelsPath+"/v1", i.surroundings.demoURL+modelsPath
	}
	both := func(alias, model, description string) settings.Alias {
		return settings.Alias{Name: alias, Description: description, Targets: []settings.Target{
			{Provider: openAIName, Model: model}, {Provider: anthropicName, Model: model},
		}}
	}
	return app.DevelopmentModels{
		Providers: []settings.Provider{
			{Kind: "openai", Name: openAIName, BaseURL: openAI}, {Kind: "anthropic", Name: anthropicName, BaseURL: anthropic},
		},
		Aliases: []settings.Alias{
			both("small", models.Small, "A demo model of few words"),
			both("medium", models.Medium, "A demo model of some words"),
			both("large", models.Large, "A demo model of many words"),
			{Name: "embed", Description: "A demo model for embeddings", Targets: []settings.Target{{Provider: openAIName, Model: models.Embed}}},
		},
		Prices: prices,
	}
}

// seedSmartModel makes the organization's smart model, unless the alias is in use.
func seedSmartModel(ctx context.Context, store storage.Store, configured storage.ConfiguredModels, organization string, now time.Time) error {
	set, err := store.ModelSet(ctx, organization)
	if err != nil {
		return err
	}
	for _, m := range set.Smart {
		if m.Alias == smartAlias {
			return nil
		}
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	err = store.CreateSmartModel(ctx, configured, storage.SmartModel{
		ID: id.String(), OrganizationID: organization, Alias: smartAlias, Description: "The demo model that can do it", Enabled: true,
		DeterminerAlias: "small", Slots: []storage.ModelSlot{
			{Alias: "small", Label: "small talk, spelling, translations of a few sentences"},
			{Alias: "medium", Label: "explanations, summaries, questions about a text or some code"},
			{Alias: "large", Label: "proofs, planning, changes to code in several places"},
		},
		Breakpoints: []int{8_000, 100_000}, DeterminerInputMaxChars: determinerInput, DefaultSlot: 1, CreatedAt: now, UpdatedAt: now,
	})
	if err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("making the smart model %s: %w", smartAlias, err)
	}
	return nil
}

// determinerInput is the number of characters of a request that the determiner sees.
const determinerInput = 4_000
