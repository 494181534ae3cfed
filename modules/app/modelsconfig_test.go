package app_test

import (
	"strings"
	"testing"

	"github.com/durward-gateway/durward/modules/caddytest"
	_ "github.com/durward-gateway/durward/modules/providers"
)

// TestConfiguredModels checks that the models of the configuration are checked when it is loaded.
func TestConfiguredModels(t *testing.T) {
	t.Setenv("DURWARD_TEST_SECRET", "sk-1")
	t.Setenv("DURWARD_TEST_LINES", "sk-1\nX: y")
	key := keyFile(t)
	up := object{"kind": "openai", "name": "up", "key": "{env.DURWARD_TEST_SECRET}"}
	alias := func(change object) []any {
		return []any{with(object{"name": "small", "targets": []any{object{"provider": "up", "model": "m"}}}, change)}
	}
	for _, tc := range []struct {
		name      string
		providers []any
		aliases   []any
		want      string // "": it loads
	}{
		{"what is right", []any{up, object{"kind": "anthropic"}}, alias(nil), ""},
		{"a name in other letters", []any{up}, alias(object{"targets": []any{object{"provider": "UP", "model": "m", "weight": 3}}}), ""},
		{"an unknown kind", []any{object{"kind": "gemini"}}, nil, `unrecognized kind "gemini"; known are anthropic, openai`},
		{"a name twice", []any{up, object{"kind": "anthropic", "name": "Up"}}, nil, "that name is given twice"},
		{"a secret in the open", []any{object{"kind": "openai", "key": "sk-1"}}, nil, "key takes a reference"},
		{"a secret that is not there", []any{object{"kind": "openai", "key": "{env.DURWARD_TEST_NOTHING}"}}, nil, "does not resolve to anything"},
		{"a secret with another header in it", []any{object{"kind": "openai", "key": "{env.DURWARD_TEST_LINES}"}}, nil, "characters that no header may have"},
		{"an inner address", []any{object{"kind": "openai", "base_url": "https://10.0.0.1/v1"}}, nil, "base_url"},
		{"a query", []any{object{"kind": "openai", "base_url": "https://api.example.com/v1?key=1"}}, nil, "a base URL has no query"},
		{"a time that is none", []any{object{"kind": "openai", "idle_timeout": "-1s"}}, nil, "is not a time between"},
		{"an alias of no form", []any{up}, alias(object{"name": "-"}), "that is no name of an alias"},
		{"an alias twice", []any{up}, append(alias(nil), alias(nil)...), "it is given twice"},
		{"an alias without targets", []any{up}, alias(object{"targets": []any{}}), "it needs a target"},
		{"a provider that is not there", nil, alias(nil), `there is no provider "up"`},
		{"a target without a model", []any{up}, alias(object{"targets": []any{object{"provider": "up"}}}), "a target needs a model"},
		{"a weight below 0", []any{up}, alias(object{"targets": []any{object{"provider": "up", "model": "m", "weight": -1}}}), "weight -1"},
		{"itself as a fallback", []any{up}, alias(object{"fallbacks": []string{"small"}}), `fallback "small"`},
		{"a fallback that is not there", []any{up}, alias(object{"fallbacks": []string{"large"}}), `fallback "large"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			config := with(production(t.TempDir(), key, "https://id.example.com"), object{"provider": tc.providers, "alias": tc.aliases})
			err := caddytest.Validate(caddytest.Config(config, caddytest.Address(t), auth))
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "sk-1") {
				t.Errorf("the secret is told: %v", err)
			}
		})
	}
}
