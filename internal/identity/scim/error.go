package scim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// Error is a refusal in the form of RFC 7644 section 3.12.
type Error struct {
	Status int
	// Type is the scimType; "" for none.
	Type   string
	Detail string
}

// Types of errors.
const (
	TypeUniqueness    = "uniqueness"
	TypeInvalidFilter = "invalidFilter"
	TypeInvalidPath   = "invalidPath"
	TypeInvalidValue  = "invalidValue"
	TypeInvalidSyntax = "invalidSyntax"
	TypeMutability    = "mutability"
	TypeNoTarget      = "noTarget"
	TypeTooMany       = "tooMany"
)

func (e *Error) Error() string { return e.Detail }

// Body returns the message.
func (e *Error) Body() []byte {
	body, err := json.Marshal(struct {
		Schemas []string `json:"schemas"`
		Status  string   `json:"status"`
		Type    string   `json:"scimType,omitempty"`
		Detail  string   `json:"detail"`
	}{[]string{schemaError}, strconv.Itoa(e.Status), e.Type, e.Detail})
	if err != nil {
		panic(err) // it is made of texts
	}
	return body
}

// Write answers the refusal.
func (e *Error) Write(w http.ResponseWriter) { Answer(w, e.Status, e.Body()) }

// Answer writes a message.
func Answer(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", MediaType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have left
}

// Refused returns an error without a type.
func Refused(status int, detail string) *Error { return &Error{Status: status, Detail: detail} }

func wrong(kind, format string, args ...any) *Error {
	return &Error{http.StatusBadRequest, kind, fmt.Sprintf(format, args...)}
}
