package secretname_test

import (
	"testing"

	"github.com/durward-gateway/durward/internal/api/secretname"
)

func TestLike(t *testing.T) {
	for name, want := range map[string]bool{
		"token": true, "tokens": true, "github_token": true, "accessToken": true, "Access-Token": true, "X-Api-Keys": true, "api key": true,
		"CLIENT_SECRET": true, "passwords": true, "code": true, "code_verifier": true, "openai_key": true, "credentials": true, "Set-Cookie": true,
		"max_tokens": false, "input_tokens": false, "token_endpoint": false, "name": false, "s": false, "": false, "status": false,
	} {
		if got := secretname.Like(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func TestWithin(t *testing.T) {
	for text, want := range map[string]bool{
		`{"client_secret":"x"}`: true, "grant_type=password": true, "Authorization: x": true, "Api Key is x": true, "": false, "a name": false,
	} {
		if got := secretname.Within(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
