package providers

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app"
)

func TestPaths(t *testing.T) {
	endpoints := []limit.Endpoint{limit.ChatCompletions, limit.Responses, limit.Embeddings, limit.Messages, limit.CountTokens}
	for _, tc := range []struct {
		name string
		kind app.ModelProvider
		want []string
	}{
		{"openai", OpenAI{}, []string{"/chat/completions", "/responses", "/embeddings", "", ""}},
		{"anthropic", Anthropic{}, []string{"", "", "", "/v1/messages", "/v1/messages/count_tokens"}},
	} {
		for i, endpoint := range endpoints {
			path, ok := tc.kind.Path(endpoint)
			if ok != (tc.want[i] != "") || ok && path != tc.want[i] {
				t.Errorf("%s %d: %q %v", tc.name, endpoint, path, ok)
			}
		}
	}
}

func TestAuthorize(t *testing.T) {
	for _, tc := range []struct {
		name   string
		kind   app.ModelProvider
		has    http.Header
		secret string
		want   http.Header
	}{
		{"openai", OpenAI{}, http.Header{}, "sk-1", http.Header{"Authorization": {"Bearer sk-1"}}},
		{"openai without a key", OpenAI{}, http.Header{}, "", http.Header{}},
		{"anthropic", Anthropic{}, http.Header{}, "sk-2", http.Header{"X-Api-Key": {"sk-2"}, "Anthropic-Version": {"2023-06-01"}}},
		{"anthropic, the client's version", Anthropic{}, http.Header{"Anthropic-Version": {"2024-01-01"}}, "", http.Header{"Anthropic-Version": {"2024-01-01"}}},
	} {
		tc.kind.Authorize(tc.has, seal.NewSecret(tc.secret))
		if diff := cmp.Diff(tc.want, tc.has); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

// TestNothingOfAccounts checks that no header passes that is a credential, or that tells whose account the gateway
// uses.
func TestNothingOfAccounts(t *testing.T) {
	for _, kind := range []app.ModelProvider{OpenAI{}, Anthropic{}} {
		rules := kind.Headers()
		for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "Cookie", "Openai-Organization", "Openai-Project", "Host", "Content-Length", "Connection"} {
			if _, ok := rules.Request[http.CanonicalHeaderKey(name)]; ok {
				t.Errorf("%T: %s leaves", kind, name)
			}
		}
		for _, name := range []string{"Set-Cookie", "Openai-Organization", "X-Ratelimit-Limit-Requests", "Anthropic-Organization-Id", "Anthropic-Ratelimit-Tokens-Limit", "Www-Authenticate", "Content-Length"} {
			if _, ok := rules.Response[http.CanonicalHeaderKey(name)]; ok {
				t.Errorf("%T: %s passes", kind, name)
			}
		}
		for _, names := range []map[string]bool{rules.Request, rules.Response} {
			for name := range names {
				if http.CanonicalHeaderKey(name) != name {
					t.Errorf("%T: %s is not canonical", kind, name)
				}
			}
		}
	}
}
