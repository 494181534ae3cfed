package sighting

import (
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	// noteEvery is the interval at which an answer of a server is noted. Requests in between write nothing.
	noteEvery = time.Minute
	// noteChange is the least time between two notes when the state has changed: a server that answers only now and then
	// must not cause a write with each request.
	noteChange = 5 * time.Second
)

// Sight holds this node's notes about a server. It is kept beside the server's other facts, and safe for concurrent use.
type Sight struct {
	noted   atomic.Int64 // Unix seconds of the last note
	problem atomic.Pointer[string]
	noting  atomic.Bool
	modern  atomic.Bool
}

// Load takes over the notes in the store.
func (s *Sight) Load(server *storage.Server) {
	s.noted.Store(server.LastSeenAt.Unix())
	s.modern.Store(server.Modern)
	if server.LastError != "" {
		s.problem.Store(&server.LastError)
	}
}

// due reports whether an observation is to be noted now. A caller that gets true must call done.
func (s *Sight) due(now time.Time, problem string) bool {
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

func (s *Sight) done(now time.Time, problem string) {
	s.noted.Store(now.Unix())
	if s.problem.Store(nil); problem != "" {
		s.problem.Store(&problem)
	}
	s.noting.Store(false)
}
