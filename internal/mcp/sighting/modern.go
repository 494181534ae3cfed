package sighting

import (
	"context"

	"github.com/durward-gateway/durward/storage"
)

// SpeaksModern notes that a server answers requests of 2026-07-28. The first node that sees such an answer stores the
// fact.
func (o *Observer) SpeaksModern(server *storage.Server, s *Sight) {
	if s == nil || !s.modern.CompareAndSwap(false, true) {
		return
	}
	o.options.Beside(func(ctx context.Context) {
		if err := o.options.Store.NoteModern(ctx, server.OrganizationID, server.ID, true); err != nil {
			s.modern.Store(false) // the next answer is noted again
			o.options.Log.Debug("noting which revision a server speaks", "server", server.Slug, "error", err.Error())
		}
	})
}

// KnownModern reports whether any node, or a test of the server, has seen a server speak 2026-07-28. Errors are the
// store's.
func (o *Observer) KnownModern(ctx context.Context, server *storage.Server, s *Sight) (bool, error) {
	if s != nil && s.modern.Load() {
		return true, nil
	}
	present, err := o.options.Store.Server(ctx, server.OrganizationID, server.ID)
	return present.Modern, err
}
