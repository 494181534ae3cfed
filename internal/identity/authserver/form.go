package authserver

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// ReadForm reads the parameters of a POST. Parameters of the query are not read: RFC 6749 section 3.2 wants them in the
// body, and a secret has no place in an address.
func ReadForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/x-www-form-urlencoded" {
		return nil, Invalid("invalid_request", "the body must be application/x-www-form-urlencoded")
	}
	b, err := ReadBody(w, r)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(b))
	if err != nil {
		return nil, Invalid("invalid_request", "the body cannot be read")
	}
	return form, CheckForm(form)
}

// ReadBody reads a body of MaxBody bytes at most.
func ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &Error{Code: "invalid_request", Description: "the body is too large", Status: http.StatusRequestEntityTooLarge}
	case err != nil:
		return nil, Invalid("invalid_request", "the body cannot be read")
	}
	return b, nil
}

// repeatable lists the parameters that may come more than once (RFC 8707 section 2).
var repeatable = []string{"resource", "audience"}

// CheckForm refuses parameters that are sent twice (RFC 6749 section 3.1) or are too long.
func CheckForm(form url.Values) error {
	for name, values := range form {
		if len(values) > 1 && !slices.Contains(repeatable, name) {
			return Invalid("invalid_request", "a parameter was sent more than once")
		}
		for _, v := range values {
			if len(v) > longest(name) {
				return Invalid("invalid_request", "a parameter is too long")
			}
		}
	}
	return nil
}

// longest returns the longest value of a parameter.
func longest(name string) int {
	switch name {
	case "assertion", "client_assertion":
		return maxAssertion
	}
	return maxText
}

// Scopes splits a scope parameter (RFC 6749 section 3.3): sorted, each once.
func Scopes(scope string) ([]string, error) {
	list := strings.Fields(scope)
	if len(list) > maxScopes {
		return nil, Invalid("invalid_scope", "too many scopes")
	}
	for _, s := range list {
		for i := range len(s) {
			if c := s[i]; c < 0x21 || c > 0x7e || c == '"' || c == '\\' {
				return nil, Invalid("invalid_scope", "a scope has characters that scopes do not have")
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// Targets reads resource and audience, in the order in which they came, each once. allowed reports whether tokens for a
// target are issued; nil: for any.
func Targets(form url.Values, allowed func(target string) bool) ([]string, error) {
	var list []string
	for _, resource := range form["resource"] {
		u, err := url.Parse(resource)
		if err != nil || !u.IsAbs() || strings.Contains(resource, "#") {
			return nil, Invalid("invalid_target", "a resource must be an absolute URI without a fragment")
		}
		list = append(list, resource)
	}
	list = append(list, form["audience"]...)
	var unique []string
	for _, t := range list {
		if t == "" || allowed != nil && !allowed(t) {
			return nil, Invalid("invalid_target", "no tokens are issued for that resource")
		}
		if !slices.Contains(unique, t) {
			unique = append(unique, t)
		}
	}
	if len(unique) > maxTargets {
		return nil, Invalid("invalid_target", "too many resources")
	}
	return unique, nil
}
