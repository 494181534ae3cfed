package authserver

import (
	"net/url"
	"slices"
	"strings"
)

// Authorization is an authorization request (RFC 6749 section 4.1.1) that has been read, but for its client and its
// redirect URI, which must be checked before anything is sent there.
type Authorization struct {
	ClientID    string   `json:"client_id"`
	RedirectURI string   `json:"redirect_uri"`
	State       string   `json:"state,omitempty"`
	Challenge   string   `json:"code_challenge"`
	Nonce       string   `json:"nonce,omitempty"`
	Scopes      []string `json:"scopes,omitempty"`
	Targets     []string `json:"targets,omitempty"`
}

// ReadAuthorization reads the parameters of an authorization request. target is that of Targets.
func ReadAuthorization(form url.Values, target func(string) bool) (Authorization, error) {
	if err := CheckForm(form); err != nil {
		return Authorization{}, err
	}
	if form.Has("request") {
		return Authorization{}, Invalid("request_not_supported", "request objects are not supported")
	}
	if form.Has("request_uri") {
		return Authorization{}, Invalid("request_uri_not_supported", "request objects are not supported")
	}
	if form.Get("response_type") != "code" {
		return Authorization{}, Invalid("unsupported_response_type", "response_type must be code")
	}
	if mode := form.Get("response_mode"); mode != "" && mode != "query" {
		return Authorization{}, Invalid("invalid_request", "response_mode must be query")
	}
	// Absent means plain (RFC 7636 section 4.3), and plain protects nobody who can see the request.
	if form.Get("code_challenge_method") != "S256" || !IsChallenge(form.Get("code_challenge")) {
		return Authorization{}, Invalid("invalid_request", "PKCE with code_challenge_method S256 is required")
	}
	if slices.Contains(strings.Fields(form.Get("prompt")), "none") {
		return Authorization{}, Invalid("login_required", "somebody must be asked")
	}
	scopes, err := Scopes(form.Get("scope"))
	if err != nil {
		return Authorization{}, err
	}
	targets, err := Targets(form, target)
	if err != nil {
		return Authorization{}, err
	}
	return Authorization{
		ClientID: form.Get("client_id"), RedirectURI: form.Get("redirect_uri"), State: form.Get("state"), Challenge: form.Get("code_challenge"),
		Nonce: form.Get("nonce"), Scopes: scopes, Targets: targets,
	}, nil
}

// ErrorAnswer returns the members of an answer that refuses an authorization request (RFC 6749 section 4.1.2.1).
func ErrorAnswer(err error) url.Values {
	e := ErrorOf(err)
	return url.Values{"error": {e.Code}, "error_description": {e.Description}}
}
