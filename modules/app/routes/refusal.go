package routes

import (
	"errors"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/storage"
)

// Refusal is a service error as a Go error.
type Refusal struct{ gateway.ServiceError }

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

// Refused makes a refusal without details.
func Refused(name gateway.ErrorName, message string) *Refusal {
	return &Refusal{gateway.ServiceError{Name: name, Message: message}}
}

// Missing replaces a store's ErrNotFound by the answer for the client.
func Missing(err, answer error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return answer
	}
	return err
}

// Conflict returns a 409 with the field whose value is taken.
func Conflict(field, message string) *Refusal {
	return &Refusal{gateway.ServiceError{Name: gateway.Conflict, Message: message, Details: map[string]any{"field": field}}}
}
