package auth

import (
	"net/http"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/identity/apikey"
	"github.com/durward-gateway/durward/modules/app/paths"
)

// credential is the token or API key of a request.
type credential struct {
	raw  string // "": none that is valid
	sent bool   // the client tried to send one
	key  bool   // it is an API key, or looks like one
}

// kind returns the word for the credential in traces.
func (c credential) kind() string {
	switch {
	case c.raw == "":
		return "none"
	case c.key:
		return "api_key"
	}
	return "token"
}

// presented returns the credential of a request. On addresses that accept API keys, a key may also come in the header
// of Anthropic's clients; a value there that does not begin like a key is ignored. A request with several different
// credentials counts as one without a valid credential: it is not clear whose it is.
func presented(h http.Header, at surface) credential {
	raw, sent := bearer(h)
	c := credential{raw, sent, strings.HasPrefix(raw, apikey.Begin)}
	values := h["X-Api-Key"]
	if at == elsewhere || !slices.ContainsFunc(values, func(v string) bool { return strings.HasPrefix(v, apikey.Begin) }) {
		return c
	}
	if len(values) > 1 || len(h["Authorization"]) > 0 && raw != values[0] {
		return credential{sent: true}
	}
	return credential{values[0], true, true}
}

// surface is a part of the gateway's addresses with its own rule for API keys.
type surface int

const (
	elsewhere    surface = iota // keys are not accepted
	proxies                     // keys with the scope mcp, as their users
	models                      // keys with the scope llm, or of models
	provisioning                // keys with the scope scim, and no tokens
)

func surfaceOf(path string) surface {
	if strings.HasPrefix(path, paths.ModelsPrefix) {
		return models
	}
	if _, _, ok := paths.ProxiedName(path); ok {
		return proxies
	}
	if path == paths.SCIM || strings.HasPrefix(path, paths.SCIM+"/") {
		return provisioning
	}
	return elsewhere
}

// bearer returns the token of a request, and whether the client tried to send one: without a try the challenge names no
// error (RFC 6750 section 3.1). A request with several Authorization headers or an odd number of blanks counts as one
// without a valid token (section 2.1). Tokens in the query or in a form are never read: they end up in logs.
func bearer(h http.Header) (token string, sent bool) {
	values := h.Values("Authorization")
	for _, value := range values {
		scheme, rest, found := strings.Cut(value, " ")
		if found && strings.EqualFold(scheme, "Bearer") {
			token, sent = rest, true
		}
	}
	if len(values) != 1 || odd(token) {
		token = ""
	}
	return token, sent
}

// odd reports whether a token contains a blank, a tab or a comma. One search for each of them is ten times as fast as
// one search for all.
func odd(token string) bool {
	return strings.IndexByte(token, ' ') >= 0 || strings.IndexByte(token, '\t') >= 0 || strings.IndexByte(token, ',') >= 0
}
