package app

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/method"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
)

// callLimits holds the facts of a call for its rate limits.
type callLimits struct {
	seen    bool // by durward_limit
	on      bool // durward_limit set that the call counts
	charged bool
	matched *limit.Matched
	at      cache.Epoch // the organization's epoch, read before matched was looked up
	permit  *limit.Permit
	results int64 // results of tools that the call's answer will have
	used    int64 // tokens of the results that came
}

// lastMatched holds the limits that counted the last call of a token.
type lastMatched struct {
	at            cache.Epoch
	server, agent string
	matched       *limit.Matched
}

// LimitSubject returns all properties of the call that limits may be for.
func (c *Call) LimitSubject(traffic storage.TrafficType) limit.Subject {
	s := limit.Subject{
		Traffic: traffic, UserID: c.Caller.UserID, UserSub: c.Caller.Subject, UserEmail: c.Caller.Email,
		Roles: c.Caller.Roles, Groups: c.Caller.Groups, Teams: c.Caller.Teams, Projects: c.Caller.Projects,
	}
	if c.Agent != nil {
		s.AgentID = c.Agent.ID
	}
	if c.Caller.Key != nil {
		s.APIKeyID = c.Caller.Key.ID
	}
	if c.Server != nil && traffic == storage.TrafficMCP {
		s.ServerID, s.ServerSlug = c.Server.ID, c.Server.Slug
	}
	return s
}

// Limited marks the call as one that counts, and Unlimited as one that does not. A call without either mark is refused:
// without durward_limit nothing would be counted, and nobody would know.
func (c *Call) Limited() { c.limits.seen, c.limits.on = true, true }

// Unlimited marks the call for `durward_limit off`. See Limited.
func (c *Call) Unlimited() { c.limits.seen = true }

// LimitsSeen reports whether durward_limit has seen the call.
func (c *Call) LimitsSeen() bool { return c.limits.seen }

// Look returns a refusal when a limit on the call to a server is full already, before anything of the call is read.
// Nothing is charged. On an error the call must not pass.
func (c *Call) Look(ctx context.Context) (*limit.Refusal, error) {
	m, err := c.matched(ctx)
	if err != nil {
		return nil, err
	}
	return c.Core.Admitter.Engine().Look(ctx, m)
}

// matched returns the present counters of a call to a server.
func (c *Call) matched(ctx context.Context) (*limit.Matched, error) {
	now := c.Core.Admitter.Epoch(c.Caller.OrganizationID)
	if c.limits.matched != nil && c.limits.at == now {
		return c.limits.matched, nil
	}
	// Most calls have the same properties as the last call with their token.
	agent := ""
	if c.Agent != nil {
		agent = c.Agent.ID
	}
	if c.token != nil {
		if last := c.token.limits.Load(); last != nil && last.at == now && last.server == c.Server.ID && last.agent == agent {
			c.limits.matched, c.limits.at = last.matched, now
			return last.matched, nil
		}
	}
	subject := c.LimitSubject(storage.TrafficMCP)
	m, err := c.Core.Admitter.Matched(ctx, c.Caller.OrganizationID, &subject)
	if err != nil {
		return nil, err
	}
	c.limits.matched, c.limits.at = m, now
	if c.token != nil {
		c.token.limits.Store(&lastMatched{at: now, server: c.Server.ID, agent: agent, matched: m})
	}
	return m, nil
}

// Charge counts a call to a server, once, after the decision about it. These count: every request of a batch, the
// opening of a stream of /sse, and notifications. These do not: notifications that begin a session or cancel a request,
// answers, and GET and DELETE of /mcp. For tools/call it reserves the average tokens of the server's results. On an
// error the call must not pass.
func (c *Call) Charge(ctx context.Context) (*limit.Refusal, error) {
	if !c.limits.on || c.limits.charged {
		return nil, nil
	}
	requests, results := c.counts()
	if requests == 0 {
		return nil, nil
	}
	m, err := c.matched(ctx)
	if err != nil {
		return nil, err
	}
	c.limits.charged = true
	if m.Len() == 0 {
		return nil, nil
	}
	cost := limit.Cost{Requests: requests}
	if most, ok := m.SmallestTokens(); ok && results > 0 {
		mean := c.Core.Admitter.Results().Of(c.Caller.OrganizationID, c.Server.ID)
		cost.Tokens = limit.Estimate{Choices: results, Output: true}.Reserve(mean, 0, most, true)
	}
	var refused *limit.Refusal
	c.limits.permit, refused, err = c.Core.Admitter.Engine().Charge(ctx, m, cost)
	c.limits.results = results
	return refused, err
}

// counts returns the number of requests of a call, and the number of those that are answered with the result of a tool.
func (c *Call) counts() (requests, results int64) {
	if c.Events != nil {
		return 1, 0
	}
	if c.Inbound == nil {
		return 0, 0
	}
	for i := range c.Inbound.Message.Messages {
		switch m := &c.Inbound.Message.Messages[i]; m.Kind {
		case jsonrpc.Request:
			requests++
			if m.Method == "tools/call" {
				results++
			}
		case jsonrpc.Notification:
			if !method.FreeNotification(m.Method) {
				requests++
			}
		case jsonrpc.Response:
			if c.Inbound.Unasked {
				requests++
			}
		}
	}
	// Servers ignore a second answer. A client sends one when it does not know whether the first arrived. The second
	// answer is charged too.
	requests += c.Inbound.repeated
	return requests, results
}

// Admit charges a call to a server, or answers its refusal and reports false. A handler that carries the call must call
// [Call.EndLimits] afterwards.
func (c *Call) Admit(w http.ResponseWriter, r *http.Request) bool {
	if !c.limits.seen {
		WriteError(w, InternalServerError, TextNoLimit)
		return false
	}
	if !c.limits.on {
		return true
	}
	// durward_policy has read the request, unless it is off.
	if _, events := c.proxied(r); events {
		if _, ok := c.ReadEvents(w, r); !ok {
			return false
		}
	} else if _, ok := c.ReadInbound(w, r); !ok {
		return false
	}
	refused, err := c.Charge(r.Context())
	return c.Pass(w, r, LimitedAtCharge, refused, err)
}

// These are the places at which a limit refuses a call, for the metrics.
const (
	LimitedAtLook   = "look"
	LimitedAtCharge = "charge"
	limitedInStream = "stream"
)

// TextLimited is the message for a caller who has reached a rate limit. It does not tell which limit it was, nor how
// much others have used (attack T08).
const TextLimited = "Rate limit exceeded"

// TextUncounted is the message for a caller whose call cannot be counted.
const TextUncounted = "The rate limits cannot be read at the moment"

// Pass reports whether the limits let a call to a server go on. When they do not, it answers in the way of the call's
// protocol.
func (c *Call) Pass(w http.ResponseWriter, r *http.Request, where string, refused *limit.Refusal, err error) bool {
	if refused == nil && err == nil {
		return true
	}
	family, events := c.proxied(r)
	if err != nil {
		c.AuditOutcome("unavailable", 0)
		c.Core.Metrics.Calls.WithLabelValues(family, "unavailable").Inc()
		if !c.Core.storeRefuses(err) {
			c.Core.Log.Error("counting a call", slog.Any("error", err))
		}
		WriteError(w, Unavailable, TextUncounted)
		return false
	}
	c.AuditOutcome("limited", 0)
	c.Core.Metrics.Calls.WithLabelValues(family, "limited").Inc()
	countLimited(storage.TrafficMCP, where, refused.Measure)
	refused.SetHeader(w.Header())
	switch {
	case events:
		WriteError(w, RateLimitExceeded, TextLimited)
	case c.Inbound != nil:
		c.Inbound.WriteRPC(w, http.StatusTooManyRequests, jsonrpc.CodeRateLimited, TextLimited, RateLimitExceeded)
	default: // nothing was read yet, not even its id
		WriteRPCBody(w, http.StatusTooManyRequests, jsonrpc.ErrorResponse(nil, jsonrpc.CodeRateLimited, TextLimited,
			&ServiceError{Name: RateLimitExceeded, Message: TextLimited}))
	}
	return false
}

// proxied returns the family of a call to a server.
func (c *Call) proxied(r *http.Request) (family string, events bool) {
	if strings.HasPrefix(r.URL.Path, SSEPrefix) {
		return "sse", true
	}
	return "mcp", false
}
