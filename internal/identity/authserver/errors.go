package authserver

import (
	"encoding/json"
	"errors"
	"net/http"
)

// Error is an OAuth error response (RFC 6749 section 5.2, RFC 7591 section 3.2.2).
type Error struct {
	Code        string `json:"error"`
	Description string `json:"error_description,omitempty"`
	Status      int    `json:"-"` // of the HTTP answer
}

func (e *Error) Error() string { return e.Code + ": " + e.Description }

// Invalid returns an error with status 400.
func Invalid(code, description string) *Error {
	return &Error{Code: code, Description: description, Status: http.StatusBadRequest}
}

// ErrorOf returns the error response for err. The text of an error that is not an *Error is not shown.
func ErrorOf(err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Code: "server_error", Description: "the request could not be completed", Status: http.StatusInternalServerError}
	}
	return e
}

// WriteError answers with the error response for err.
func WriteError(w http.ResponseWriter, err error) {
	e := ErrorOf(err)
	WriteJSON(w, e.Status, e)
}

// WriteJSON answers with a value that no cache keeps.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Pragma", "no-cache") // RFC 6749 section 5.1
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
