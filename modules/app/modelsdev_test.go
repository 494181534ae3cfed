package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/modules/app/settings"
)

type broughtModels struct{ DevelopmentIdentity }

func (broughtModels) Models() DevelopmentModels {
	return DevelopmentModels{
		Providers: []settings.Provider{{Kind: "openai", Name: "demo"}, {Kind: "openai", Name: "demo-two"}},
		Aliases:   []settings.Alias{{Name: "small"}, {Name: "large"}},
	}
}

// TestConfigurationGoesBeforeDevelopment checks that models that are configured in development mode take precedence.
func TestConfigurationGoesBeforeDevelopment(t *testing.T) {
	a := &App{
		Providers: []settings.Provider{{Kind: "openai", Name: "Demo", BaseURL: "http://127.0.0.1:1/v1"}, {Kind: "anthropic"}},
		Aliases:   []settings.Alias{{Name: "small", Description: "mine"}},
	}
	providers, aliases := modelsToBind(a.Providers, a.Aliases, a.Development())
	if len(providers) != 2 || len(aliases) != 1 {
		t.Errorf("outside of development mode: %v %v", providers, aliases)
	}
	a.identities = []Identity{broughtModels{}}
	providers, aliases = modelsToBind(a.Providers, a.Aliases, a.Development())
	if diff := cmp.Diff(append(a.Providers[:2:2], settings.Provider{Kind: "openai", Name: "demo-two"}), providers); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]settings.Alias{{Name: "small", Description: "mine"}, {Name: "large"}}, aliases); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
