package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// ErrorName is the `error` member of a service error body.
type ErrorName string

// These are the names of service errors, with the statuses of their answers.
const (
	Unauthorized            ErrorName = "Unauthorized"            // 401
	Forbidden               ErrorName = "Forbidden"               // 403
	ServerNotConnected      ErrorName = "ServerNotConnected"      // 403
	ServerNotFound          ErrorName = "ServerNotFound"          // 404
	ConnectionNotFound      ErrorName = "ConnectionNotFound"      // 404
	DirectoryNotFound       ErrorName = "DirectoryNotFound"       // 404
	AgentNotFound           ErrorName = "AgentNotFound"           // 404
	PolicyNotFound          ErrorName = "PolicyNotFound"          // 404
	ApprovalNotFound        ErrorName = "ApprovalNotFound"        // 404
	NotFound                ErrorName = "NotFound"                // 404
	MethodNotAllowed        ErrorName = "MethodNotAllowed"        // 405
	RequestTimeout          ErrorName = "RequestTimeout"          // 408
	Conflict                ErrorName = "Conflict"                // 409
	PayloadTooLarge         ErrorName = "PayloadTooLarge"         // 413
	UnsupportedMediaType    ErrorName = "UnsupportedMediaType"    // 415
	RateLimitExceeded       ErrorName = "RateLimitExceeded"       // 429
	BadRequest              ErrorName = "BadRequest"              // 400
	InternalServerError     ErrorName = "InternalServerError"     // 500
	OAuthConfigurationError ErrorName = "OAuthConfigurationError" // 500
	UpstreamError           ErrorName = "UpstreamError"           // 502
	Unavailable             ErrorName = "Unavailable"             // 503
	LoopDetected            ErrorName = "LoopDetected"            // 508
)

var statuses = map[ErrorName]int{
	Unauthorized: http.StatusUnauthorized, Forbidden: http.StatusForbidden, ServerNotConnected: http.StatusForbidden,
	ServerNotFound: http.StatusNotFound, ConnectionNotFound: http.StatusNotFound, DirectoryNotFound: http.StatusNotFound,
	AgentNotFound: http.StatusNotFound, PolicyNotFound: http.StatusNotFound, ApprovalNotFound: http.StatusNotFound,
	NotFound: http.StatusNotFound, MethodNotAllowed: http.StatusMethodNotAllowed, Conflict: http.StatusConflict,
	PayloadTooLarge: http.StatusRequestEntityTooLarge, UnsupportedMediaType: http.StatusUnsupportedMediaType,
	RequestTimeout: http.StatusRequestTimeout, RateLimitExceeded: http.StatusTooManyRequests,
	BadRequest: http.StatusBadRequest, InternalServerError: http.StatusInternalServerError,
	OAuthConfigurationError: http.StatusInternalServerError, UpstreamError: http.StatusBadGateway,
	Unavailable: http.StatusServiceUnavailable, LoopDetected: http.StatusLoopDetected,
}

// retryAfter is the time that a client is told to wait when a resource of the gateway cannot be reached for a moment.
const retryAfter = 5 * time.Second

// ServiceError is the body of every error that is not about the shape of a request.
type ServiceError struct {
	Name    ErrorName      `json:"error"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

// Status is the HTTP status of the error.
func (e *ServiceError) Status() int { return e.Name.status() }

func (n ErrorName) status() int {
	if status, ok := statuses[n]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// WriteError answers with a service error.
func WriteError(w http.ResponseWriter, name ErrorName, message string) {
	(&ServiceError{Name: name, Message: message}).Write(w)
}

// Write answers with the error.
func (e *ServiceError) Write(w http.ResponseWriter) {
	e.Name.setRetryAfter(w)
	WriteJSON(w, e.Status(), e)
}

func (n ErrorName) setRetryAfter(w http.ResponseWriter) {
	if n == Unavailable || n == RateLimitExceeded {
		SetRetryAfter(w)
	}
}

// SetRetryAfter tells a client when to try again, unless the answer tells it already.
func SetRetryAfter(w http.ResponseWriter) {
	if w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	}
}

// WriteJSON answers with body as JSON.
func WriteJSON(w http.ResponseWriter, status int, body any) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false) // the type is not HTML and browsers may not guess another: addresses stay readable
	if encoder.Encode(body) != nil {
		buffer.Reset()
		status = http.StatusInternalServerError
		buffer.WriteString(`{"error":"InternalServerError","message":"` + textInternalError + `"}`)
	}
	WriteBody(w, status, bytes.TrimSuffix(buffer.Bytes(), []byte("\n")))
}

// WriteMethodNotAllowed answers 405 with the allowed methods (RFC 9110 section 15.5.6).
func WriteMethodNotAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	WriteError(w, MethodNotAllowed, "This address does not take that method; see Allow")
}

// WriteNotFound answers 404 for an address that nothing serves.
func WriteNotFound(w http.ResponseWriter) {
	WriteError(w, NotFound, "There is nothing at this address")
}

// WriteInternalError answers 500 for a fault of the gateway. The cause goes to the log, never to the client.
func WriteInternalError(w http.ResponseWriter) { WriteError(w, InternalServerError, textInternalError) }

const textInternalError = "Something went wrong in the gateway"
