package app

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/ops/probe"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/storage"
)

const (
	// noteEvery is the interval at which an answer of a server is noted. Requests in between write nothing.
	noteEvery = time.Minute
	// noteChange is the least time between two notes when the state has changed: a server that answers only now and then
	// must not cause a write with each request.
	noteChange = 5 * time.Second
)

// sight holds this node's notes about a server, beside its other facts.
type sight struct {
	noted   atomic.Int64 // Unix seconds of the last note
	problem atomic.Pointer[string]
	noting  atomic.Bool
	modern  atomic.Bool
}

// load takes over the notes in the store.
func (s *sight) load(server *storage.Server) {
	s.noted.Store(server.LastSeenAt.Unix())
	s.modern.Store(server.Modern)
	if server.LastError != "" {
		s.problem.Store(&server.LastError)
	}
}

// due reports whether an observation is to be noted now. A caller that gets true must call noted.
func (s *sight) due(now time.Time, problem string) bool {
	was := ""
	if p := s.problem.Load(); p != nil {
		was = *p
	}
	every := noteEvery
	if was != problem {
		every = noteChange
	} else if problem != "" {
		return false // nothing new
	}
	return now.Unix()-s.noted.Load() >= int64(every/time.Second) && s.noting.CompareAndSwap(false, true)
}

func (s *sight) done(now time.Time, problem string) {
	s.noted.Store(now.Unix())
	if s.problem.Store(nil); problem != "" {
		s.problem.Store(&problem)
	}
	s.noting.Store(false)
}

// NoteAnswer notes that the call's server answered with a status.
func (c *Call) NoteAnswer(status int) {
	if status < 500 {
		c.note(true, "")
		return
	}
	c.note(true, fmt.Sprintf("The server, or a proxy before it, fails (status %d). Its own log says why.", status))
}

// NoteFailure notes that the call's server did not answer, or that its answer could not be used.
func (c *Call) NoteFailure(err error) {
	if c.known == nil || c.known.url == nil {
		return
	}
	switch {
	case errors.Is(err, forward.ErrConnect):
		_, problem := probe.Words(c.known.url, netguard.Cause(err))
		c.note(false, problem)
	case errors.Is(err, forward.ErrTimeout), errors.Is(err, forward.ErrIdle):
		c.note(false, "The server did not answer a call in time.")
	default:
		c.note(false, "The server's answer to a call could not be used, see the gateway's log. A test of the server may say more.")
	}
}

// WantsCredential notes, for the administrator, that the call's server asks for a credential although its directory entry names
// none.
func (c *Call) WantsCredential(logger *zap.Logger) {
	logger.Warn("forwarding", zap.String("server", c.Server.Slug), zap.Error(connection.ErrCredentialWanted),
		zap.String("advice", "set `provider` of the server's directory entry: oauth2, bearer_token, api_key or basic_auth"))
	c.note(true, "The server asks for a credential (401), and its directory entry says that it needs none. Test the server to see which provider to set.")
}

// note writes the observation of a server, in the background and seldom: a request on a warm node touches no database.
func (c *Call) note(answered bool, problem string) {
	if c.known == nil {
		return
	}
	sight, now := &c.known.sight, time.Now()
	if !sight.due(now, problem) {
		return
	}
	server := &c.known.server
	noting := c.Core.beside(func(ctx context.Context) {
		defer sight.done(now, problem) // also when the store could not be reached: the next note is a minute later
		var seen time.Time
		if answered {
			seen = now
		}
		if err := c.Core.Store.NoteServer(ctx, server.OrganizationID, server.ID, seen, problem); err != nil {
			c.Core.Log.Debug("noting when a server was seen", "server", server.Slug, "error", err.Error())
		}
	})
	if !noting {
		sight.noting.Store(false)
	}
}

// beside writes a note in the background. It reports false when the configuration is about to close.
func (c *Core) beside(write func(ctx context.Context)) bool {
	if !c.pin() {
		return false
	}
	go func() {
		defer c.unpin()
		ctx, cancel := context.WithTimeout(context.Background(), noteTimeout)
		defer cancel()
		write(ctx)
	}()
	return true
}
