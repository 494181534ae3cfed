// Package sighting notes for administrators when a server answered last, its last failure, and whether it speaks MCP
// 2026-07-28. Requests cause few writes, and wait for none.
package sighting

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/storage"
)

// Store is the store's part with the notes about servers.
type Store interface {
	Server(ctx context.Context, organization, id string) (storage.Server, error)
	NoteServer(ctx context.Context, organization, id string, seen time.Time, problem string) error
	NoteModern(ctx context.Context, organization, id string, modern bool) error
}

// Options holds the dependencies of an Observer. All but Log are required.
type Options struct {
	Store Store
	// Beside runs a write in the background. It reports false when it does not, because the store is about to close.
	Beside func(write func(ctx context.Context)) bool
	// Unreachable describes, for administrators, why no connection to an address could be made.
	Unreachable func(address *url.URL, err error) string
	// Log tells about notes that were lost; nil: nothing does.
	Log *slog.Logger
	Now func() time.Time
}

// Observer notes what requests see of servers. Sights may be nil: then it notes nothing. It is safe for concurrent use.
type Observer struct{ options Options }

// New makes an observer.
func New(o Options) *Observer {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Observer{o}
}

// Answered notes that a server answered with a status.
func (o *Observer) Answered(server *storage.Server, s *Sight, status int) {
	if status < 500 {
		o.note(server, s, true, "")
		return
	}
	o.note(server, s, true, fmt.Sprintf("The server, or a proxy before it, fails (status %d). Its own log says why.", status))
}

// Failed notes that a server did not answer, or that its answer could not be used.
func (o *Observer) Failed(server *storage.Server, s *Sight, err error) {
	if s == nil {
		return
	}
	address, bad := url.Parse(server.Entry.URL)
	if bad != nil {
		return // nothing was asked
	}
	switch {
	case errors.Is(err, forward.ErrConnect):
		o.note(server, s, false, o.options.Unreachable(address, err))
	case errors.Is(err, forward.ErrTimeout), errors.Is(err, forward.ErrIdle):
		o.note(server, s, false, "The server did not answer a call in time.")
	default:
		o.note(server, s, false, "The server's answer to a call could not be used, see the gateway's log. A test of the server may say more.")
	}
}

// WantsCredential notes that a server asks for a credential although its directory entry names none.
func (o *Observer) WantsCredential(server *storage.Server, s *Sight) {
	o.note(server, s, true, "The server asks for a credential (401), and its directory entry says that it needs none. Test the server to see which provider to set.")
}

// note writes an observation, in the background and seldom: a request on a warm node touches no database.
func (o *Observer) note(server *storage.Server, s *Sight, answered bool, problem string) {
	if s == nil {
		return
	}
	now := o.options.Now()
	if !s.due(now, problem) {
		return
	}
	noting := o.options.Beside(func(ctx context.Context) {
		defer s.done(now, problem) // also when the store could not be reached: the next note is a minute later
		var seen time.Time
		if answered {
			seen = now
		}
		if err := o.options.Store.NoteServer(ctx, server.OrganizationID, server.ID, seen, problem); err != nil {
			o.options.Log.Debug("noting when a server was seen", "server", server.Slug, "error", err.Error())
		}
	})
	if !noting {
		s.noting.Store(false)
	}
}
