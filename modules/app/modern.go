package app

import "context"

// SpeaksModern notes that the call's server answers requests of 2026-07-28. The first node that sees such an answer
// stores the fact.
func (c *Call) SpeaksModern() {
	if c.known == nil || !c.known.sight.modern.CompareAndSwap(false, true) {
		return
	}
	server := &c.known.server
	c.Core.beside(func(ctx context.Context) {
		if err := c.Core.Store.NoteModern(ctx, server.OrganizationID, server.ID, true); err != nil {
			c.known.sight.modern.Store(false) // the next answer is noted again
			c.Core.Log.Debug("noting which revision a server speaks", "server", server.Slug, "error", err.Error())
		}
	})
}

// KnownModern reports whether any node, or a test of the server, has seen the call's server speak 2026-07-28.
func (c *Call) KnownModern(ctx context.Context) (bool, error) {
	if c.known != nil && c.known.sight.modern.Load() {
		return true, nil
	}
	server, err := c.Core.Store.Server(ctx, c.Server.OrganizationID, c.Server.ID)
	return server.Modern, err
}
