package gateway

import (
	"net/http"
	"strings"
)

// These are the refusals of callers, before anything else of their requests is judged.

// Challenge tells a client how to log in.
type Challenge struct {
	// Sent reports whether the request carried a token; the token was then wrong.
	Sent bool
	// Metadata is the address of the server's protected resource metadata (RFC 9728); "" for none.
	Metadata string
	// Scopes are those that the client should ask for.
	Scopes []string
}

// Refuse answers 401 with the challenge.
func (c Challenge) Refuse(w http.ResponseWriter) {
	message := "A bearer token is needed"
	if c.Sent {
		message = "The token is not valid here; log in again"
	}
	c.SetHeader(w.Header())
	WriteError(w, Unauthorized, message)
}

// SetHeader sets the header of a 401 (RFC 6750 section 3, RFC 9728 section 5.1).
func (c Challenge) SetHeader(h http.Header) {
	var parameters []string
	if c.Sent {
		parameters = append(parameters, `error="invalid_token"`)
	}
	if c.Metadata != "" {
		parameters = append(parameters, `resource_metadata="`+c.Metadata+`"`)
	}
	if len(c.Scopes) > 0 {
		parameters = append(parameters, `scope="`+strings.Join(c.Scopes, " ")+`"`)
	}
	h.Set("WWW-Authenticate", strings.TrimSuffix("Bearer "+strings.Join(parameters, ", "), " "))
}

// RefuseHost answers 403: the Host header does not name the gateway.
func RefuseHost(w http.ResponseWriter) {
	WriteError(w, Forbidden, "This gateway does not answer under that host name")
}

// RefuseOrigin answers 403: the request comes from a web page of an origin that is not allowed.
func RefuseOrigin(w http.ResponseWriter) {
	WriteError(w, Forbidden, "Pages of this origin may not call the gateway; the operator can allow it with `origins`")
}

// RefuseLoop answers 508: the request is one of the gateway's own.
func RefuseLoop(w http.ResponseWriter) {
	WriteError(w, LoopDetected, "This request went out from this gateway and came back: the server's address leads to the gateway itself")
}

// TextUnregistered is the message for a client that is no registered agent, where only those may use servers.
const TextUnregistered = "This client is not registered as an agent; an administrator must register it"

// RefuseUnregistered answers 403: the client is no registered agent.
func RefuseUnregistered(w http.ResponseWriter) { WriteError(w, Forbidden, TextUnregistered) }

// The refusals of credentials are values: clients of models get the same in another form.

// TooManyFailures returns a 429: the peer has sent too many wrong credentials. The answer says before how long to wait.
func TooManyFailures() *ServiceError {
	return &ServiceError{Name: RateLimitExceeded, Message: "Too many credentials were wrong; try again later"}
}

// NoOrganization returns a 403: the token names no organization.
func NoOrganization() *ServiceError {
	return &ServiceError{Name: Forbidden, Message: "The token names no organization that it may act for. An administrator of the gateway can configure where tokens name it (`claim org`), " +
		"or one organization for all of them (`organization`)"}
}

// OtherOrganization returns a 403: the token names another organization than the configured one.
func OtherOrganization() *ServiceError {
	return &ServiceError{Name: Forbidden, Message: "The token names another organization than the one that this gateway is for. Log in with an account of that organization, or without choosing another one; " +
		"an administrator of the gateway can see in its log which claim it is"}
}

// ScopesElsewhere returns a 403: the API key is for other addresses.
func ScopesElsewhere() *ServiceError {
	return &ServiceError{Name: Forbidden, Message: "The scopes of this API key do not cover this address"}
}

// OnlyProvisions returns a 403: the address is for provisioning, and the credential is not.
func OnlyProvisions() *ServiceError {
	return &ServiceError{Name: Forbidden, Message: "This address takes only API keys with the scope scim, which administrators make"}
}

// ShutOut returns a 403: the user of a good credential may not come in.
func ShutOut() *ServiceError {
	return &ServiceError{Name: Forbidden, Message: "Your organization's identity provider has deactivated your account for this gateway, or has not provisioned it; ask whoever assigns applications there"}
}

// CredentialUnread returns a 503: whether the credential is valid cannot be found out.
func CredentialUnread() *ServiceError {
	return &ServiceError{Name: Unavailable, Message: "Credentials cannot be verified at the moment"}
}
