package oauth

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// Classes of failure, for errors.Is. A refusal by the server itself is a *ProtocolError.
var (
	// ErrUnavailable says that the network failed or timed out, or that the status was 5xx, 408 or 429. The same
	// request may succeed later; nothing is known to be wrong with the request.
	ErrUnavailable = errors.New("the server cannot be reached")
	// ErrMalformed says that an answer breaks the protocol.
	ErrMalformed = errors.New("the answer breaks the protocol")
	// ErrUnsupported says that the server lacks a necessary feature: PKCE with S256, a way to get a client, or a
	// client authentication method that this package supports.
	ErrUnsupported = errors.New("the authorization server does not support what is needed")
	// ErrMismatch says that a document or response is about another resource, or comes from another issuer, than
	// expected (attacks S07, A04).
	ErrMismatch = errors.New("the answer is about something else than what was asked for")
)

// Error codes of RFC 6749 sections 4.1.2.1 and 5.2 that callers distinguish.
const (
	CodeInvalidGrant       = "invalid_grant"
	CodeInvalidClient      = "invalid_client"
	CodeUnauthorizedClient = "unauthorized_client"
	CodeAccessDenied       = "access_denied"
	CodeUnsupportedToken   = "unsupported_token_type"
)

// clientCodes lists the error codes for a refused client or secret: those of RFC 6749, and those that GitHub and
// Slack use instead.
var clientCodes = []string{
	CodeInvalidClient, CodeUnauthorizedClient, "incorrect_client_credentials", "bad_client_secret", "invalid_client_id", "invalid_client_secret",
}

// unknownClient is a text in place of a code: Supabase's API answers all errors with texts of its own.
const unknownClient = "Unrecognized client_id"

// ClientRefused reports whether err is a refusal of the client, not of its request.
func ClientRefused(err error) bool {
	e, ok := errors.AsType[*ProtocolError](err)
	return ok && (slices.Contains(clientCodes, e.Code) || e.Code == "" && e.Description == unknownClient)
}

// ProvesClient reports whether an answer shows that the client was accepted. Such an answer gives tokens, or refuses
// the code or refresh token, which a server checks after the client (RFC 6749 section 5.2).
func ProvesClient(err error) bool {
	return err == nil || Code(err) == CodeInvalidGrant || !HandedOut(err).Empty()
}

// ResourceRefused reports whether err is a refusal of the parameter resource. Such a refusal is a code of RFC 8707,
// or a text about it, as Entra ID has (AADSTS901002, AADSTS9010010), or invalid_request without a description.
func ResourceRefused(err error) bool {
	e, ok := errors.AsType[*ProtocolError](err)
	if !ok || ClientRefused(err) {
		return false
	}
	switch e.Code {
	case "invalid_target", "invalid_resource":
		return true
	case "invalid_request":
		return e.Description == "" || e.Description == e.Code || strings.Contains(strings.ToLower(e.Description), "resource")
	}
	return false
}

// ProtocolError describes an authorization server's refusal.
type ProtocolError struct {
	Endpoint    string // token, registration, revocation or authorization
	Status      int    // HTTP status; 0 for the authorization endpoint, which answers through the browser
	Code        string // "" when the server gives none
	Description string // for the log, never for a user: cleaned and shortened, but still untrusted text
}

// Is makes a refusal without a code an ErrMalformed.
func (e *ProtocolError) Is(target error) bool { return target == ErrMalformed && e.Code == "" }

func (e *ProtocolError) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("%s endpoint: no error code (status %d)", e.Endpoint, e.Status)
	}
	if e.Status == 0 {
		return fmt.Sprintf("%s endpoint: %s", e.Endpoint, e.Code)
	}
	return fmt.Sprintf("%s endpoint: %s (status %d)", e.Endpoint, e.Code, e.Status)
}

// Code returns the code of the ProtocolError in err's chain, "" when there is none.
func Code(err error) string {
	if e, ok := errors.AsType[*ProtocolError](err); ok {
		return e.Code
	}
	return ""
}

// Description returns the description of the ProtocolError in err's chain, "" when there is none. It is for logs: its
// text is untrusted.
func Description(err error) string {
	if e, ok := errors.AsType[*ProtocolError](err); ok {
		return e.Description
	}
	return ""
}

// errorObject reads the error object of RFC 6749 section 5.2, or a server's replacement for it: texts that are no
// codes, or other members, are kept for the log. The secrets are removed, because some servers repeat what they were
// sent (attack A10).
func errorObject(endpoint string, status int, v strictjson.Value, secrets ...string) error {
	code, _ := text(v, "error")
	said := code
	if !isErrorCode(code) || repeats(code, secrets...) {
		code = ""
	}
	if code == "server_error" || code == "temporarily_unavailable" {
		return fmt.Errorf("%s endpoint: %w: %s", endpoint, ErrUnavailable, code)
	}
	for _, name := range []string{"message", "error_description"} {
		if words, _ := text(v, name); words != "" {
			said = words
		}
	}
	return &ProtocolError{Endpoint: endpoint, Status: status, Code: code, Description: clean(said, secrets...)}
}

// isErrorCode reports whether s can be shown and logged as it is. It is stricter than the grammar of RFC 6749
// appendix A.7.
func isErrorCode(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '.', c == ':', c == '/':
		default:
			return false
		}
	}
	return true
}

// repeats reports whether a word of the server holds one of the secrets. Authorization codes and base64url look like
// error codes.
func repeats(word string, secrets ...string) bool {
	const guessable = 8 // a shorter secret may well be part of a real code
	return slices.ContainsFunc(secrets, func(secret string) bool { return len(secret) > guessable && strings.Contains(word, secret) })
}

// maxDescription is the length to which an error description is cut, in characters.
const maxDescription = 200

// clean makes an untrusted text fit for a log line.
func clean(s string, secrets ...string) string {
	for _, secret := range secrets {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, "REDACTED")
		}
	}
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n++; n > maxDescription {
			b.WriteString("...")
			break
		}
		if !unicode.IsPrint(r) {
			r = ' '
		}
		b.WriteRune(r)
	}
	return b.String()
}
