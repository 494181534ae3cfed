package platformapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/audit/query"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// Bounds of a suggestion.
const (
	maxSuggested = 500 // calls
	maxSearched  = 20  // steps of a search of the audit log, each of which is bounded too
	maxLeftOut   = 100 // calls that are listed with the reason why they are left out
)

// suggestion is a policy that allows exactly some recorded calls, as a body for POST /api/v2/policies.
type suggestion struct {
	Policy  *suggestedPolicy `json:"policy"` // null: there is no call that a policy could allow
	Calls   int              `json:"calls"`  // that the policy allows
	LeftOut []leftOutView    `json:"left_out"`
	Notes   []string         `json:"notes"`
}

type suggestedPolicy struct {
	Name           string          `json:"name"`
	Description    string          `json:"description"`
	ServerID       string          `json:"mcp_server_id"`
	Status         string          `json:"status"`
	ApplicationIDs []string        `json:"application_ids"`
	Rules          []suggestedRule `json:"rules"`
}

type suggestedRule struct {
	Name       string             `json:"name"`
	Authorized bool               `json:"authorized"`
	Actions    []string           `json:"actions"`
	Condition  suggestedCondition `json:"condition"`
}

type suggestedCondition struct {
	Match struct {
		Expr string `json:"expr"`
	} `json:"match"`
}

// leftOutView is a call that the policy does not allow, and why.
type leftOutView struct {
	ID     string `json:"id"` // of the audit record
	Reason string `json:"reason"`
}

// suggestPolicy makes the narrowest policy that allows exactly the calls of audit records: by the same users through the same
// agents, of the same tools, prompts and resources. Nothing is stored.
func suggestPolicy(q *request) (any, error) {
	f := query.Filter{OrganizationID: q.Organization(), Kinds: []storage.AuditKind{storage.AuditCall}}
	now := q.handler.now().UTC()
	var ids []string
	var name string
	if err := q.Read(false, func(o *validate.Object) {
		name = o.Text("name", validate.Text{Min: 1, Max: maxNameText}).Or("From recorded calls")
		ids = o.UUIDs("audit_ids", validate.List{Min: 1, Max: maxSuggested}).Value
		filter := o.Object("filter", 0)
		if o.Has("audit_ids") == o.Has("filter") {
			o.Report(validate.ValueError, "Value error, give one of audit_ids and filter", "audit_ids")
		}
		if filter.Value != nil {
			readSuggestFilter(filter.Value, &f, now)
		}
		o.Only()
	}); err != nil {
		return nil, err
	}
	if len(ids) > 0 {
		if err := spanOf(ids, &f); err != nil {
			return nil, err
		}
		slices.Sort(ids)
		ids = slices.Compact(ids) // one that is named twice is not missing
	}
	calls, partial, err := q.recordedCalls(f, ids)
	if err != nil {
		return nil, err
	}
	s := suggester{actions: make(map[party]map[string]struct{}), counts: make(map[party]int)}
	for i := range calls {
		s.add(&calls[i])
	}
	return q.suggest(&s, name, partial, len(ids)-len(calls))
}

// readSuggestFilter reads which recorded calls are meant. The server is required: a policy is for one.
func readSuggestFilter(o *validate.Object, f *query.Filter, now time.Time) {
	f.ServerID = o.UUID("mcp_server_id", validate.Required).Value
	f.UserID = o.UUID("user_id", 0).Value
	f.AgentID = o.UUID("agent_id", 0).Value
	f.Tool = o.Text("tool", validate.Text{Max: maxAuditText}).Value
	f.Decision = o.Text("decision", validate.Text{Enum: auditDecisions}).Value
	f.Session = o.Text("session", validate.Text{Max: maxAuditText}).Value
	f.To = o.Time("to", 0).Or(now.Add(time.Second))
	f.From = o.Time("from", 0).Or(f.To.AddDate(0, 0, -auditDays))
	o.Only()
}

// spanOf sets the time in which records with these ids were made, which the ids tell.
func spanOf(ids []string, f *query.Filter) error {
	for i, id := range ids {
		parsed, err := uuid.Parse(id)
		if err != nil || parsed.Version() != 7 {
			return validate.Problems{{Loc: []any{"body", "audit_ids", i}, Type: validate.ValueError, Msg: "Value error, this is no id of an audit record"}}
		}
		sec, nsec := parsed.Time().UnixTime()
		at := time.Unix(sec, nsec).UTC()
		if from := at.Add(-aroundID); f.From.IsZero() || from.Before(f.From) {
			f.From = from
		}
		if to := at.Add(aroundID); to.After(f.To) {
			f.To = to
		}
	}
	return nil
}

// aroundID is more than the time between the making of a record's id and the record's time.
const aroundID = time.Minute

// recordedCalls reads the calls of a filter, and of ids when there are any, newest first: at most as many as a suggestion
// takes. partial reports that there may be more.
func (q *request) recordedCalls(f query.Filter, ids []string) (calls []storage.AuditEntry, partial bool, err error) {
	var after *query.Position
	for range maxSearched {
		found, err := q.Core.Audit.Search(q.Context(), f, after, maxSuggested)
		if err != nil {
			return nil, false, unread(err)
		}
		for i := range found.Rows {
			e := &found.Rows[i].AuditEntry
			if e.Event != "decision" || len(ids) > 0 && !slices.Contains(ids, e.ID) {
				continue
			}
			if len(calls) == maxSuggested {
				return calls, true, nil
			}
			calls = append(calls, *e)
		}
		if after = found.Next; after == nil || len(ids) > 0 && len(calls) == len(ids) {
			return calls, false, nil
		}
	}
	return calls, true, nil
}

// suggester collects calls by what a rule can tell apart.
type suggester struct {
	server  string
	others  bool                          // there are calls of several servers
	actions map[party]map[string]struct{} // that each party used
	counts  map[party]int                 // of their calls
	calls   int
	gone    int // calls of agents that are not there any more
	denied  int
	asked   int
	leftOut []leftOutView
	more    int // that were left out and are not listed
}

// party is a user through an agent; "" for a client that was not registered.
type party struct{ agent, user string }

func (s *suggester) add(e *storage.AuditEntry) {
	action, reason := suggestedAction(e)
	if reason == "" && e.UserID == "" {
		reason = "It has no user whom a rule could name."
	}
	if reason != "" {
		s.leave(e.ID, reason)
		return
	}
	s.others = s.others || s.server != "" && s.server != e.ServerID
	s.server = e.ServerID
	who := party{e.AgentID, e.UserID}
	if s.actions[who] == nil {
		s.actions[who] = make(map[string]struct{})
	}
	s.actions[who][action] = struct{}{}
	s.counts[who]++
	s.calls++
	switch e.Decision {
	case engine.Deny.String():
		s.denied++
	case engine.Ask.String():
		s.asked++
	}
}

func (s *suggester) leave(id, reason string) {
	if len(s.leftOut) == maxLeftOut {
		s.more++
		return
	}
	s.leftOut = append(s.leftOut, leftOutView{id, reason})
}

// suggestedAction returns the action of a rule that means the object of a call and no other, or the reason why there is none.
func suggestedAction(e *storage.AuditEntry) (action, reason string) {
	method := e.Method
	switch method {
	case "resources/subscribe", "resources/unsubscribe", "subscriptions/listen":
		method = "resources/read"
	}
	action = method
	if method != "sse/stream" {
		action += ":" + e.Tool
	}
	read, err := engine.ParseAction(action)
	kind, _, notCall := engine.ParseCall(action)
	switch {
	case e.Call != "" || e.ServerID == "":
		return "", "It is no call that policies decide about."
	case e.Detail["name_bytes"] != nil:
		return "", "Only the beginning of its name was recorded."
	case notCall != nil && (kind != 0 || err != nil):
		return "", "No rule can name its object: " + notCall.Error() + "."
	case err != nil:
		return "", "No rule can name its object: " + err.Error() + "."
	case read.Prefix || read.Approve || read.Kind != kind:
		return "", "In a rule its name would mean others too."
	}
	return action, ""
}

// suggest makes the policy from the calls.
func (q *request) suggest(s *suggester, name string, partial bool, missing int) (any, error) {
	if s.others {
		return nil, validate.Problems{{Loc: []any{"body", "audit_ids"}, Type: validate.ValueError, Msg: "Value error, the calls are of several servers, and a policy is for one"}}
	}
	if err := q.leaveDeletedAgents(s); err != nil {
		return nil, err
	}
	v := suggestion{Calls: s.calls, LeftOut: routes.List(s.leftOut), Notes: []string{}}
	note := func(n int, text string) {
		if n > 0 {
			v.Notes = append(v.Notes, fmt.Sprintf(text, n))
		}
	}
	note(missing, "%d of the ids are those of no recorded call of this organization.")
	note(s.more, "%d more calls are left out.")
	note(s.gone, "%d calls are left out: their agents are not there any more.")
	note(s.denied, "%d of the calls were denied, and this policy would allow them.")
	note(s.asked, "%d of the calls had to be approved, and this policy would allow them without. Add :approve to their actions to keep that.")
	if partial {
		v.Notes = append(v.Notes, fmt.Sprintf("There may be more such calls: the search ended after %d. Narrow the filter.", s.calls))
	}
	if len(s.actions) == 0 {
		return v, nil
	}
	server, err := q.Core.Store.Server(q.Context(), q.Organization(), s.server)
	if err != nil {
		return nil, routes.Missing(err, errNoServer)
	}
	v.Notes = append(v.Notes, "Rules allow every arguments for these tools: those of the recorded calls are not part of them.")
	v.Policy = &suggestedPolicy{
		Name: name, Description: fmt.Sprintf("Allows what %d recorded calls to %s did.", s.calls, server.Name), ServerID: server.ID, Status: string(storage.PolicyDraft),
		ApplicationIDs: s.agents(), Rules: s.rules(),
	}
	if len(v.Policy.Rules) > maxSuggestedRules {
		return nil, validate.Problems{{Loc: []any{"body", "filter"}, Type: validate.ValueError, Msg: "Value error, the calls need more rules than a policy can have; narrow the filter"}}
	}
	if len(v.Policy.ApplicationIDs) == 0 {
		v.Notes = append(v.Notes, "Some of the clients are no registered agents: the policy is for all agents, and its rules name those that are meant. No rule can tell one unregistered client from another: P.agent == \"\" means every one that the user has.")
	}
	return v, nil
}

// leaveDeletedAgents leaves out the calls of agents that are not there any more, which no policy can name.
func (q *request) leaveDeletedAgents(s *suggester) error {
	for who := range s.actions {
		if who.agent == "" {
			continue
		}
		switch _, err := q.Core.Store.Agent(q.Context(), q.Organization(), who.agent); {
		case errors.Is(err, storage.ErrNotFound):
			delete(s.actions, who)
			s.gone, s.calls = s.gone+s.counts[who], s.calls-s.counts[who]
		case err != nil:
			return err
		}
	}
	return nil
}

// agents lists the agents that the policy is for; none when some of the clients are not registered.
func (s *suggester) agents() []string {
	ids := make(map[string]bool)
	for who := range s.actions {
		if who.agent == "" {
			return []string{}
		}
		ids[who.agent] = true
	}
	return slices.Sorted(maps.Keys(ids))
}

// These bound rules: a condition is a text of limited length.
const (
	maxUsersOfRule    = 80
	maxSuggestedRules = 1000
)

// rules makes a rule for the users of each agent who used the same.
func (s *suggester) rules() []suggestedRule {
	type same struct{ agent, actions string }
	users := make(map[same][]string)
	for who, actions := range s.actions {
		key := same{who.agent, strings.Join(slices.Sorted(maps.Keys(actions)), "\n")}
		users[key] = append(users[key], who.user)
	}
	keys := slices.SortedFunc(maps.Keys(users), func(a, b same) int { return cmp.Or(cmp.Compare(a.agent, b.agent), cmp.Compare(a.actions, b.actions)) })
	var rules []suggestedRule
	for _, key := range keys {
		slices.Sort(users[key])
		for some := range slices.Chunk(users[key], maxUsersOfRule) {
			r := suggestedRule{Name: fmt.Sprintf("Recorded calls %d", len(rules)+1), Authorized: true, Actions: strings.Split(key.actions, "\n")}
			r.Condition.Match.Expr = fmt.Sprintf("P.agent == %s && P.id in %s", quotedText(key.agent), quotedText(some))
			rules = append(rules, r)
		}
	}
	return rules
}

// quotedText writes ids as literals of an expression, which are those of JSON.
func quotedText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return `""` // not reached: texts and lists of them
	}
	return string(text)
}
