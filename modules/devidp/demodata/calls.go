package demodata

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

// heldFor is the time that people have for the held calls that wait at the end of the month.
const heldFor = 7 * 24 * time.Hour

// patient is a store that keeps held calls longer than real ones are, so that somebody can look at them.
type patient struct{ approval.Store }

// CreateApproval implements approval.Store.
func (p patient) CreateApproval(ctx context.Context, a storage.Approval, limits storage.AskLimits) (storage.Approval, error) {
	a.ExpiresAt = a.CreatedAt.Add(heldFor)
	return p.Store.CreateApproval(ctx, a, limits)
}

// made is a call of somebody's agent, as it was decided.
type made struct {
	habit
	by        user
	server    *madeServer
	arguments []byte
	decision  engine.Decision
}

// decide makes a call of a habit, and lets the policies decide on it. ok is false when its server is gone.
func (f *filler) decide(ctx context.Context, h habit) (c made, ok bool, err error) {
	c = made{habit: h, by: f.users[h.email], server: f.servers[h.server]}
	if c.server == nil {
		return c, false, nil
	}
	if c.arguments, err = json.Marshal(f.arguments(h.tool)); err != nil {
		return c, false, err
	}
	c.decision = c.server.set.Decide(ctx, engine.Call{
		Principal: engine.NewPrincipal(c.by.id, c.by.roles, c.by.groups, f.agents[h.agent], nil), Kind: engine.ToolsCall, Name: h.tool, Arguments: c.arguments,
	})
	return c, true, nil
}

var (
	words  = []string{"invoice", "login", "refund", "delivery", "password", "export", "address", "discount", "outage", "onboarding"}
	titles = []string{"Export is slow", "Wrong address on invoices", "Login loops on phones", "Add a dark theme", "Report for the board", "Search finds nothing"}
)

// arguments returns the arguments of a call.
func (f *filler) arguments(name string) map[string]any {
	id := 100 + f.random.IntN(900)
	switch name {
	case "search_tickets", "search_pages", "list_invoices":
		return map[string]any{"query": words[f.random.IntN(len(words))]}
	case "reply_to_ticket", "edit_page":
		return map[string]any{"id": id, "text": "About the " + words[f.random.IntN(len(words))] + ": done."}
	case "create_refund":
		return map[string]any{"invoice": id, "amount": 5 * (1 + f.random.IntN(45))}
	case "list_issues":
		return map[string]any{"team": "engineering"}
	case "create_issue":
		return map[string]any{"title": titles[f.random.IntN(len(titles))], "priority": 1 + f.random.IntN(4)}
	}
	return map[string]any{"id": id}
}

// call lets somebody call a tool, and records what became of it.
func (f *filler) call(ctx context.Context, h habit) error {
	c, ok, err := f.decide(ctx, h)
	if !ok || err != nil {
		return err
	}
	var approvalID string
	if c.decision.Effect == engine.Ask {
		if approvalID, ok, err = f.asked(ctx, &c); err != nil || !ok {
			return err
		}
	}
	e := f.entry(&c)
	e.ApprovalID = approvalID
	if c.decision.Effect == engine.Deny {
		e.Outcome = "denied"
		return f.trail.Append(f.Organization, &e)
	}
	if err := f.trail.Append(f.Organization, &e); err != nil {
		return err
	}
	o := storage.AuditOutcome{Call: e.ID, Outcome: "ok", Duration: f.took(180 * time.Millisecond), UpstreamStatus: http.StatusOK}
	if f.random.IntN(60) == 0 {
		o.Outcome, o.UpstreamStatus = "upstream_error", http.StatusBadGateway
	}
	o.At = f.clock.Add(o.Duration)
	f.trail.Outcome(f.Organization, &o)
	return nil
}

// entry returns the record of a call.
func (f *filler) entry(c *made) storage.AuditEntry {
	e := storage.AuditEntry{
		At: f.clock, Kind: storage.AuditCall, Event: "decision", UserID: c.by.id, AgentID: f.agents[c.agent], Client: c.agent, ServerID: c.server.ID, Server: c.server.Slug,
		Method: "tools/call", Tool: c.tool, Decision: c.decision.Effect.String(), Rule: c.decision.Rule, PolicyID: c.decision.PolicyID, PolicyRevision: c.decision.Revision,
		Roles: known(c.by.roles), Groups: known(c.by.groups), TraceID: f.hex(16),
	}
	for _, s := range c.decision.Shadow {
		e.Shadow = append(e.Shadow, storage.AuditShadow{PolicyID: s.PolicyID, Revision: s.Revision, Decision: s.Effect.String(), Rule: s.Rule})
	}
	record.Add(&e, mark, true)
	format.Name(&e, c.arguments)
	f.records.AddArguments(&e, c.arguments)
	return e
}

// known returns a list that is written even when it is empty.
func known(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

func (f *filler) hex(size int) string {
	text := make([]byte, size)
	for i := range text {
		text[i] = byte(f.random.Uint32())
	}
	return hex.EncodeToString(text)
}

// question returns the call in the form in which approvals are bound to it.
func (f *filler) question(c *made) (approval.Call, error) {
	arguments, err := approval.CanonicalArguments(c.arguments)
	return approval.Call{
		OrganizationID: f.Organization, UserID: c.by.id, AgentID: f.agents[c.agent], Client: c.agent, ServerID: c.server.ID, Upstream: f.URL, Tool: c.tool,
		PolicyID: c.decision.PolicyID, PolicyRevision: c.decision.Revision, Rule: c.decision.Rule, Approvers: c.decision.Approvers, Arguments: arguments,
		Channel: storage.ChannelOutOfBand,
	}, err
}

// request has an engine ask for a decision on a call, and records that the call is held.
func (f *filler) request(ctx context.Context, engine *approval.Engine, c *made, q *approval.Call) (storage.Approval, error) {
	held, err := engine.Request(ctx, q)
	if err != nil {
		return storage.Approval{}, err
	}
	e := f.entry(c)
	e.ApprovalID, e.Outcome = held.ID, "held"
	return held, f.trail.Append(f.Organization, &e)
}

// asked holds a call until somebody decided. Some calls are denied, and some forgotten: ok is false then.
func (f *filler) asked(ctx context.Context, c *made) (id string, ok bool, err error) {
	q, err := f.question(c)
	if err != nil {
		return "", false, err
	}
	held, err := f.request(ctx, f.engine, c, &q)
	if err != nil {
		return "", false, err
	}
	luck := f.random.IntN(10)
	if luck == 0 {
		return "", false, nil
	}
	f.clock = f.clock.Add(f.took(2*time.Minute) % (approval.DecideFor / 2))
	decider := approval.Decider{OrganizationID: f.Organization, UserID: c.by.id, Browser: true}
	if len(q.Approvers) > 0 {
		decider.UserID = f.users[people[0].email].id
	}
	if _, err := f.engine.Decide(ctx, decider, held.ID, luck > 2); err != nil || luck <= 2 {
		return "", false, err
	}
	f.clock = f.clock.Add(time.Second)
	_, err = f.engine.Take(ctx, &q, held.ID)
	return held.ID, true, err
}

// hold makes a call that waits for a decision.
func (f *filler) hold(ctx context.Context, h habit) error {
	waiting := approval.New(approval.Options{Store: patient{f.store}, Vault: f.Keyring, Bell: new(approval.Bell), Now: func() time.Time { return f.clock }})
	for range 100 { // not each call of a tool asks
		c, ok, err := f.decide(ctx, h)
		if !ok || err != nil {
			return err
		}
		if c.decision.Effect != engine.Ask {
			continue
		}
		q, err := f.question(&c)
		if err != nil {
			return err
		}
		_, err = f.request(ctx, waiting, &c, &q)
		return err
	}
	return nil
}
