package admission

import (
	"context"
	"sync/atomic"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
)

// State holds the limits and the charge of one call. The call owns it, and uses it in one goroutine at a time.
type State struct {
	seen    bool // by durward_limit
	on      bool // durward_limit set that the call counts
	charged bool
	matched *limit.Matched
	at      cache.Epoch // the organization's epoch, read before matched was looked up
	permit  *limit.Permit
	results int64 // results of tools that the call's answer will have
	used    int64 // tokens of the results that came
}

// Count marks the call as one that counts, and Exempt as one that does not. A call without either mark must be refused:
// without durward_limit nothing would be counted, and nobody would know.
func (s *State) Count() { s.seen, s.on = true, true }

// Exempt marks the call for `durward_limit off`. See Count.
func (s *State) Exempt() { s.seen = true }

// Seen reports whether the call has one of the marks.
func (s *State) Seen() bool { return s.seen }

// Counts reports whether the call is marked as one that counts.
func (s *State) Counts() bool { return s.on }

// Settle ends the call's reservation, whatever its outcome: the tokens are those that reached the caller.
func (s *State) Settle() {
	if s.permit != nil {
		s.permit.Settle(s.used)
	}
}

// Call describes a call to the Admitter.
type Call struct {
	State        *State
	Organization string
	Server       *storage.Server // nil for a call to a model
	Agent        *storage.Agent  // nil for none
	// Recent and RecentModels remember the limits of the caller's last calls; nil: nothing does.
	Recent       *Recent
	RecentModels *RecentModels
	// Subject is asked when the limits of the call are looked up. Most calls to a server have those of the last one.
	Subject Describer
}

// Describer returns all properties of a call that limits may be for.
type Describer interface {
	LimitSubject(traffic storage.TrafficType) limit.Subject
}

// Recent remembers the limits that counted a caller's last call to a server.
type Recent struct{ last atomic.Pointer[recentMatch] }

// recentMatch holds limits, with all properties that can differ between calls of one caller.
type recentMatch struct {
	at            cache.Epoch
	server, agent string
	matched       *limit.Matched
}

// matched returns the present counters of a call to a server.
func (a *Admitter) matched(ctx context.Context, c *Call) (*limit.Matched, error) {
	now, s := a.book.epochs.Current(c.Organization), c.State
	if s.matched != nil && s.at == now {
		return s.matched, nil
	}
	// Most calls have the same properties as the last call with their token.
	agent := ""
	if c.Agent != nil {
		agent = c.Agent.ID
	}
	if c.Recent != nil {
		if last := c.Recent.last.Load(); last != nil && last.at == now && last.server == c.Server.ID && last.agent == agent {
			s.matched, s.at = last.matched, now
			return last.matched, nil
		}
	}
	subject := c.Subject.LimitSubject(storage.TrafficMCP)
	m, err := a.book.Matched(ctx, c.Organization, &subject)
	if err != nil {
		return nil, err
	}
	s.matched, s.at = m, now
	if c.Recent != nil {
		// The agent of a long stream may have changed since the stream was described: the limits are those of the subject.
		c.Recent.last.Store(&recentMatch{at: now, server: c.Server.ID, agent: subject.AgentID, matched: m})
	}
	return m, nil
}
