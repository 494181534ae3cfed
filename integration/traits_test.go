package integration

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// traits describes how a third party's provider differs from the standards, as real providers do. The zero value does
// not differ.
type traits struct {
	style      string            // of good answers: "form", "slack", "bare" (no type, no label), "" is JSON
	resource   string            // where the parameter resource is refused: "refresh", "token" (both grants), "authorize" (everywhere)
	secret     string            // where the client's secret is taken: "body", "header"; "" is both
	needs      map[string]string // the parameters that an authorization request must have
	knows      bool              // only clients that are registered and not forgotten are known
	refuseOnly string            // a refresh token for which the client is refused
	short      bool              // access tokens live for a second
}

// authorize answers an authorization request with an error; nil is none.
func (t traits) authorize(query url.Values) url.Values {
	if t.resource == "authorize" && query.Has("resource") {
		return url.Values{"error": {"invalid_request"}, "error_description": {"AADSTS901002: The 'resource' request parameter is not supported."}}
	}
	for name, want := range t.needs {
		if query.Get(name) != want {
			return url.Values{"error": {"invalid_request"}, "error_description": {name + " is missing"}}
		}
	}
	return nil
}

// refuses returns the code with which a token request is refused; "" is none.
func (t traits) refuses(form url.Values, inHeader bool, clients map[string]bool) string {
	refreshing := form.Get("grant_type") == "refresh_token"
	switch {
	case t.secret == "body" && inHeader, t.secret == "header" && !inHeader:
		return "invalid_client"
	case t.knows && !clients[form.Get("client_id")]:
		return "invalid_client"
	case t.refuseOnly != "" && form.Get("refresh_token") == t.refuseOnly:
		return "invalid_client"
	case form.Has("resource") && (t.resource == "authorize" || t.resource == "token" || t.resource == "refresh" && refreshing):
		return "invalid_target"
	}
	return ""
}

// write sends good tokens in the provider's style.
func (t traits) write(w http.ResponseWriter, tokens map[string]any) {
	if t.short {
		tokens["expires_in"] = 1
	}
	switch t.style {
	case "form":
		form := url.Values{}
		for name, value := range tokens {
			form.Set(name, fmt.Sprint(value))
		}
		w.Header().Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		_, _ = io.WriteString(w, form.Encode())
		return
	case "slack":
		tokens["ok"], tokens["token_type"], tokens["scope"] = true, "user", "a,b"
	case "bare":
		delete(tokens, "token_type")
	}
	writeJSON(w, http.StatusOK, tokens)
}
