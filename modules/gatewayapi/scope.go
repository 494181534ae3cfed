package gatewayapi

import (
	"errors"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/storage"
)

// scopeExists notes a problem when a scope_id names no object of the organization.
func (q *request) scopeExists(o *validate.Object, s storage.Scope) {
	store, ctx, organization := q.Core.Store, q.Context(), q.Organization()
	look := map[storage.ScopeType]struct {
		what string
		find func() error
	}{
		storage.ScopeUser:        {"user", func() error { _, err := store.User(ctx, organization, s.ID); return err }},
		storage.ScopeAgent:       {"agent", func() error { _, err := store.Agent(ctx, organization, s.ID); return err }},
		storage.ScopeAPIKey:      {"API key", func() error { _, err := store.APIKey(ctx, organization, s.ID); return err }},
		storage.ScopeMCPServer:   {"server", func() error { _, err := store.Server(ctx, organization, s.ID); return err }},
		storage.ScopeLLMProvider: {"provider", func() error { return q.providerExists(s.ID) }},
	}[s.Type]
	if look.find != nil {
		q.exists(o, "scope_id", look.what, s.ID, look.find)
	}
}

// exists notes a problem when a field names no object of the organization; another organization's object is answered
// like an unknown one (attack O02).
func (q *request) exists(o *validate.Object, field, what, id string, find func() error) {
	if id == "" {
		return
	}
	switch err := find(); {
	case errors.Is(err, storage.ErrNotFound):
		o.Report(validate.ValueError, noSuch(what), field)
	default:
		q.Note(err)
	}
}

func noSuch(what string) string { return "Value error, there is no such " + what }
