package oauth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// Class sorts the answers of a token endpoint. docs/providers.md has the table for readers.
type Class int

// Classes of answers.
const (
	// Good means usable tokens.
	Good Class = iota
	// Refused means that the server has decided: the same request gets the same answer. The code or refresh token
	// that was sent must not be sent again. The server may have used it up, and a second use ends the grant (RFC 9700
	// section 4.14).
	Refused
	// Later means that there was no answer, or that the server asked to wait. The same request may succeed.
	Later
)

// ClassOf returns the class of an error of Exchange and Refresh. An error without any answer is Later.
func ClassOf(err error) Class {
	if err == nil {
		return Good
	}
	if errors.Is(err, ErrUnavailable) {
		return Later
	}
	if _, ok := errors.AsType[*ProtocolError](err); ok {
		return Refused
	}
	if _, ok := errors.AsType[*UnusableError](err); ok {
		return Refused
	}
	return Later
}

// UnusableError reports an answer of a token endpoint that neither holds usable tokens nor is a refusal.
type UnusableError struct {
	Refresh seal.Secret // the refresh token that the answer holds nevertheless: the one that was sent is spent then
	Cause   error       // ErrMalformed
}

func (e *UnusableError) Error() string { return "token endpoint: " + e.Cause.Error() }
func (e *UnusableError) Unwrap() error { return e.Cause }

// HandedOut returns the refresh token of an unusable answer in err's chain, empty when there is none.
func HandedOut(err error) seal.Secret {
	if e, ok := errors.AsType[*UnusableError](err); ok {
		return e.Refresh
	}
	return seal.Secret{}
}

// judgeTokens classifies an answer of a token endpoint. It goes by the answer's members, never by its Content-Type:
//
//	status 408, 429, 5xx                                  Later
//	error server_error, temporarily_unavailable           Later
//	any other error, in words or not, with 2xx or 4xx     Refused: *ProtocolError
//	2xx with a usable access token                        Good
//	2xx without one                                       Refused: *UnusableError, with the refresh token that it holds
//
// Redirects, which are never followed, and bodies beyond the bounds are *UnusableError too (see Client.token). The
// secrets are removed from the server's words, because some servers repeat what they were sent (attack A10).
func judgeTokens(status int, body []byte, start time.Time, secrets ...string) (Tokens, error) {
	if busy(status) {
		return Tokens{}, fmt.Errorf("token endpoint: %w: status %d", ErrUnavailable, status)
	}
	v, err := members(body)
	success := status >= 200 && status < 300
	switch {
	case !success && err != nil:
		return Tokens{}, &ProtocolError{Endpoint: "token", Status: status}
	case err != nil:
		return Tokens{}, &UnusableError{Cause: err}
	case !success || saysNo(v):
		return Tokens{}, errorObject("token", status, v, secrets...)
	}
	t, err := parseTokens(v, start)
	if err != nil {
		return Tokens{}, &UnusableError{Refresh: handedOut(v), Cause: err}
	}
	return t, nil
}

// handedOut reads the refresh token of an answer whose access token cannot be used. It looks where the access token
// is, and then in the answer itself.
func handedOut(v strictjson.Value) seal.Secret {
	for _, v := range []strictjson.Value{granting(v), v} {
		if refresh, _ := text(v, "refresh_token"); isToken(refresh) {
			return seal.NewSecret(refresh)
		}
	}
	return seal.Secret{}
}

// granting returns the object that holds the tokens of an answer. This is the answer itself, or its member about the
// user (Slack's oauth.v2.access, when only scopes of a user were asked for).
func granting(v strictjson.Value) strictjson.Value {
	access, err := text(v, "access_token")
	if nested, ok := v.Get("authed_user"); ok && err == nil && access == "" && nested.Kind() == strictjson.Object {
		return nested
	}
	return v
}

// members reads the members of an answer: of a JSON object, else of a form. GitHub and the first drafts of OAuth
// answer with forms.
func members(body []byte) (strictjson.Value, error) {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))) // a byte order mark
	if len(body) == 0 || body[0] == '{' || body[0] == '[' || body[0] == '"' || body[0] == '<' {
		return parseObject(body)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil || len(form) > jsonLimits.MaxMembers {
		return strictjson.Value{}, fmt.Errorf("%w: neither JSON nor a form", ErrMalformed)
	}
	fields := make(map[string]string, len(form))
	for name, values := range form {
		if len(values) != 1 { // a repeated member: two readers could choose differently
			return strictjson.Value{}, fmt.Errorf("%w: a parameter is repeated", ErrMalformed)
		}
		fields[name] = values[0]
	}
	object, err := json.Marshal(fields)
	if err != nil {
		return strictjson.Value{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return parseObject(object)
}

// saysNo reports whether an answer is an error, whatever its status is: Slack and GitHub answer 200 to errors. An
// empty error member counts as absent.
func saysNo(v strictjson.Value) bool {
	if ok, given := v.Get("ok"); given && ok.Kind() == strictjson.Bool && !ok.Bool() {
		return true
	}
	m, given := v.Get("error")
	if !given {
		return false
	}
	switch m.Kind() {
	case strictjson.Null:
		return false
	case strictjson.String:
		return m.Str() != ""
	case strictjson.Bool:
		return m.Bool()
	}
	return true
}

// maxToken caps access and refresh tokens, in bytes: they must fit into a header field.
const maxToken = 16 << 10

// isToken reports whether s can be sent as a token. A space or a line break would end the header field that holds it.
func isToken(s string) bool { return s != "" && !strings.Contains(s, " ") && printable(s, maxToken) }

// bearers lists the token types that go into `Authorization: Bearer`, in lower case. Shopify and LinkedIn name none,
// Slack names the owner's kind (user or bot), Apigee writes a class name. Any other type may need another scheme
// (DPoP, mac), and a client must not use a token whose type it does not know (RFC 6749 section 7.1).
var bearers = []string{"", "bearer", "bearertoken", "user", "bot"}

// parseTokens reads a token response (attack A09). It ignores optional members that are unknown or malformed: an
// unreadable lifetime or list of scopes must not cost a refresh token.
func parseTokens(v strictjson.Value, start time.Time) (Tokens, error) {
	v = granting(v)
	access, err := text(v, "access_token")
	if err != nil {
		return Tokens{}, err
	}
	kind, err := text(v, "token_type")
	if err != nil {
		return Tokens{}, err
	}
	refresh, err := text(v, "refresh_token")
	if err != nil {
		return Tokens{}, err
	}
	switch {
	case !isToken(access):
		return Tokens{}, fmt.Errorf("%w: access_token", ErrMalformed)
	case refresh != "" && !isToken(refresh):
		return Tokens{}, fmt.Errorf("%w: refresh_token", ErrMalformed)
	case !slices.Contains(bearers, strings.ToLower(strings.TrimSpace(kind))):
		return Tokens{}, fmt.Errorf("%w: token_type is not Bearer", ErrMalformed)
	}
	t := Tokens{Access: seal.NewSecret(access), Refresh: seal.NewSecret(refresh), Scope: grantedScope(v)}
	if left := lifetime(v, start); left > 0 {
		t.ExpiresAt = start.Add(left)
	}
	if m, ok := v.Get("id_token"); ok && m.Kind() == strictjson.String {
		t.IDToken = seal.NewSecret(m.Str())
	}
	return t, nil
}

// grantedScope reads the granted scopes: scope, or scopes as Bitbucket writes it. The value is a string with spaces
// or commas, or a list.
func grantedScope(v strictjson.Value) string {
	for _, name := range []string{"scope", "scopes"} {
		m, ok := v.Get(name)
		if !ok {
			continue
		}
		var scopes []string
		switch m.Kind() {
		case strictjson.String:
			scopes = strings.FieldsFunc(m.Str(), func(r rune) bool { return r == ' ' || r == ',' })
		case strictjson.Array:
			scopes, _, _ = texts(v, name)
		}
		if len(scopes) > 0 && checkScopes(scopes) == nil {
			return strings.Join(scopes, " ")
		}
	}
	return ""
}

// refusal reads the error object of RFC 6749 section 5.2 from the answer of another endpoint.
func refusal(endpoint string, a answer, secrets ...string) error {
	if busy(a.status) {
		return fmt.Errorf("%s endpoint: %w: status %d", endpoint, ErrUnavailable, a.status)
	}
	v, err := parseObject(a.body)
	if err != nil {
		return &ProtocolError{Endpoint: endpoint, Status: a.status}
	}
	return errorObject(endpoint, a.status, v, secrets...)
}

// busy reports whether a status means "later" rather than "no".
func busy(status int) bool {
	return status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
}
