package authserver

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/proxy/loopback"
)

// Error is an OAuth error response (RFC 6749 section 5.2, RFC 7591 section 3.2.2).
type Error struct {
	Code        string `json:"error"`
	Description string `json:"error_description,omitempty"`
	status      int
}

func (e *Error) Error() string { return e.Code + ": " + e.Description }

func invalid(code, description string) *Error {
	return &Error{Code: code, Description: description, status: http.StatusBadRequest}
}

// writeError answers with err; the text of an error that is not an *Error is not shown.
func writeError(w http.ResponseWriter, err error) {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Code: "server_error", Description: "the request could not be completed", status: http.StatusInternalServerError}
	}
	WriteJSON(w, e.status, e)
}

// WriteJSON answers with a value that no cache keeps.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Pragma", "no-cache") // RFC 6749 section 5.1
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// Public returns the handler of a document that any web page may read.
func Public(h http.HandlerFunc) http.Handler {
	return endpoint(h, func(http.ResponseWriter, *http.Request) (string, bool) { return "*", true }, http.MethodGet, http.MethodHead)
}

// Restricted returns the handler of an endpoint that browsers may call from pages of this machine only; a request with
// any other Origin, or with two, is refused before h gets it (attack row H15).
func Restricted(h http.HandlerFunc, methods ...string) http.Handler {
	return endpoint(h, func(w http.ResponseWriter, r *http.Request) (string, bool) {
		w.Header().Add("Vary", "Origin")
		origins := r.Header.Values("Origin")
		if len(origins) == 0 {
			return "", true
		}
		return origins[0], len(origins) == 1 && loopback.IsOrigin(origins[0])
	}, methods...)
}

func endpoint(h http.HandlerFunc, origin func(http.ResponseWriter, *http.Request) (string, bool), methods ...string) http.Handler {
	allow := strings.Join(append(slices.Clone(methods), http.MethodOptions), ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		allowed, ok := origin(w, r)
		if !ok {
			WriteJSON(w, http.StatusForbidden, map[string]string{"error": "Forbidden", "message": "requests from this origin are refused"})
			return
		}
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		if allowed != "" {
			header.Set("Access-Control-Allow-Origin", allowed)
			header.Set("Access-Control-Expose-Headers", "WWW-Authenticate")
		}
		switch {
		case r.Method == http.MethodOptions:
			header.Set("Allow", allow)
			header.Set("Access-Control-Allow-Methods", allow)
			header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, MCP-Protocol-Version")
			header.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
		case !slices.Contains(methods, r.Method):
			header.Set("Allow", allow)
			WriteJSON(w, http.StatusMethodNotAllowed, map[string]string{"error": "MethodNotAllowed", "message": "this endpoint does not know the method"})
		default:
			h(w, r)
		}
	})
}

// readForm reads the parameters of a POST. Parameters of the query are not read: RFC 6749 section 3.2 wants them in the
// body, and a secret has no place in an address.
func readForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/x-www-form-urlencoded" {
		return nil, invalid("invalid_request", "the body must be application/x-www-form-urlencoded")
	}
	b, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(b))
	if err != nil {
		return nil, invalid("invalid_request", "the body cannot be read")
	}
	return form, nil
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &Error{Code: "invalid_request", Description: "the body is too large", status: http.StatusRequestEntityTooLarge}
	case err != nil:
		return nil, invalid("invalid_request", "the body cannot be read")
	}
	return b, nil
}

// repeatable lists the parameters that may come more than once (RFC 8707 section 2).
var repeatable = []string{"resource", "audience"}

// checkForm refuses parameters that are sent twice (RFC 6749 section 3.1) or are too long.
func checkForm(form url.Values) error {
	for name, values := range form {
		if len(values) > 1 && !slices.Contains(repeatable, name) {
			return invalid("invalid_request", "a parameter was sent more than once")
		}
		for _, v := range values {
			if len(v) > maxText {
				return invalid("invalid_request", "a parameter is too long")
			}
		}
	}
	return nil
}

// scopeList splits a scope parameter (RFC 6749 section 3.3).
func scopeList(scope string) ([]string, error) {
	list := strings.Fields(scope)
	if len(list) > maxScopes {
		return nil, invalid("invalid_scope", "too many scopes")
	}
	for _, s := range list {
		for i := range len(s) {
			if c := s[i]; c < 0x21 || c > 0x7e || c == '"' || c == '\\' {
				return nil, invalid("invalid_scope", "a scope has characters that scopes do not have")
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// targets reads resource and audience, in the order in which they came, each once.
func (s *Server) targets(form url.Values) ([]string, error) {
	var list []string
	for _, resource := range form["resource"] {
		u, err := url.Parse(resource)
		if err != nil || !u.IsAbs() || strings.Contains(resource, "#") {
			return nil, invalid("invalid_target", "a resource must be an absolute URI without a fragment")
		}
		list = append(list, resource)
	}
	list = append(list, form["audience"]...)
	var unique []string
	for _, t := range list {
		if t == "" || s.config.Target != nil && !s.config.Target(t) {
			return nil, invalid("invalid_target", "no tokens are issued for that resource")
		}
		if !slices.Contains(unique, t) {
			unique = append(unique, t)
		}
	}
	if len(unique) > maxTargets {
		return nil, invalid("invalid_target", "too many resources")
	}
	return unique, nil
}
