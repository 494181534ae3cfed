package platformapi

import (
	"encoding/json"
	"errors"
	"slices"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// These are the bounds of a question.
const (
	maxAction   = len("resources/read:") + engine.MaxPattern*4 // bytes at the most, which are no fewer than characters
	maxNames    = 1_000                                        // roles or groups
	maxNameText = 255
	maxCalls    = 500 // in one request
)

// question holds the fields of a question about a call, as a client asks it.
type question struct {
	server    serverRef
	policyID  string // a policy to be judged by as though it were active; "" for the active ones
	agentID   validate.Field[string]
	userID    string
	roles     validate.Field[[]string]
	groups    validate.Field[[]string]
	action    string
	kind      engine.Kind // of action
	name      string      // of action
	arguments []byte
}

// explainedCaller holds the caller of the call in question, and notes the unknown facts about them.
type explainedCaller struct {
	principal *engine.Principal
	machine   bool
	confirms  bool // the agent needs a confirmation for tools that do not only read
	lacking   engine.Lacking
}

// explainPolicies shows the decision of the policies on a call and its reason, without making the call. It answers several
// questions in their order.
func explainPolicies(q *request) (any, error) {
	asked, several, err := q.questions()
	if err != nil {
		return nil, err
	}
	x := explainer{request: q, servers: make(map[serverRef]storage.Server), policies: make(map[string][]storage.Policy)}
	answers := make([]explanation, len(asked))
	for i := range asked {
		if answers[i], err = x.explain(&asked[i]); err == nil {
			err = q.Context().Err() // the other questions would take time for nobody
		}
		switch {
		case err != nil && several:
			return nil, inCall(i, err)
		case err != nil:
			return nil, err
		}
	}
	if several {
		return explanations{answers}, nil
	}
	return answers[0], nil
}

// explainer answers the questions of one request. It reads what several of them are about once.
type explainer struct {
	*request
	servers  map[serverRef]storage.Server
	policies map[string][]storage.Policy // by the id of their server
	set      *engine.Set                 // of the question before, and what it was made of
	of       setOf
}

// setOf names the policies that a set was compiled from.
type setOf struct{ serverID, draftID string }

func (x *explainer) explain(asked *question) (explanation, error) {
	v := explanation{Notes: []string{}, Approvers: [][]string{}, Conditions: []conditionView{}, Shadow: []shadowView{}, Displaced: []string{}}
	other := asked.userID != "" && asked.userID != x.Call.Caller.UserID
	if (other || asked.roles.Set() || asked.groups.Set()) && !x.May(routes.PolicyEditor) {
		return v, routes.Refused(gateway.Forbidden, "Only administrators, auditors and policy editors may ask for another user, or with other roles and groups")
	}
	draft, err := x.draft(asked)
	if err != nil {
		return v, err
	}
	server, err := x.server(asked.server)
	if err != nil {
		return v, err
	}
	if draft != nil && draft.ServerID != server.ID {
		return v, validate.Problems{{Loc: []any{"body", "policy_id"}, Type: validate.ValueError, Msg: "Value error, the policy is one of another server"}}
	}
	who, err := x.explainedCaller(asked, other, &v)
	if err != nil {
		return v, err
	}
	v.ServerID, v.Server, v.Action = server.ID, server.Slug, asked.action
	set, err := x.compile(&server, draft, &v)
	if err != nil || set == nil {
		return v, err
	}
	return v, x.judge(&v, &server, set, asked, &who)
}

func (x *explainer) server(ref serverRef) (storage.Server, error) {
	if s, ok := x.servers[ref]; ok {
		return s, nil
	}
	s, err := x.readServer(ref)
	if err == nil {
		x.servers[ref] = s
	}
	return s, err
}

// compile returns the policies of a server, with the draft as though it were active. There is no set when they cannot be
// used together; v says so then.
func (x *explainer) compile(server *storage.Server, draft *storage.PolicyView, v *explanation) (*engine.Set, error) {
	policies, known := x.policies[server.ID]
	if !known {
		var err error
		if policies, err = x.Core.Store.ServerPolicies(x.Context(), x.Organization(), server.ID); err != nil {
			return nil, err
		}
		x.policies[server.ID] = policies
	}
	of := setOf{serverID: server.ID}
	if draft != nil {
		of.draftID = draft.ID
		policies, v.Displaced = asThoughActive(draft.Policy, policies)
	}
	if x.set != nil && x.of == of {
		return x.set, nil
	}
	set, err := x.Core.Evaluator.Compile(x.Context(), server, policies)
	if x.Context().Err() != nil {
		return nil, err
	}
	if err != nil {
		x.handler.logger.Error("compiling policies", zap.String("server", server.Slug), zap.Error(err))
		v.Decision, v.Reason = engine.Deny.String(), "The policies of this server cannot be used together; every call is denied until they are changed"
		return nil, nil
	}
	x.set, x.of = set, of
	return set, nil
}

// inCall adds to a refusal which of the calls it is about.
func inCall(i int, err error) error {
	var refused *routes.Refusal
	var problems validate.Problems
	switch {
	case errors.As(err, &problems):
		placed := slices.Clone(problems)
		for n := range placed {
			placed[n].Loc = slices.Concat([]any{"body", "calls", i}, placed[n].Loc[1:])
		}
		return placed
	case errors.As(err, &refused):
		placed := *refused
		placed.Details = map[string]any{"call": i}
		return &placed
	}
	return err
}

// draft returns the policy that the question names, nil when it names none. A question without a server is about the
// policy's.
func (q *request) draft(asked *question) (*storage.PolicyView, error) {
	if asked.policyID == "" {
		return nil, nil
	}
	p, err := q.Core.Store.Policy(q.Context(), q.Organization(), asked.policyID)
	if err != nil {
		return nil, routes.Missing(err, errNoPolicy)
	}
	if asked.server == (serverRef{}) {
		asked.server.id = p.ServerID
	}
	return &p, nil
}

// judge notes the decision of the policies, and a refusal of the gateway in spite of it.
func (q *request) judge(v *explanation, server *storage.Server, set *engine.Set, asked *question, who *explainedCaller) error {
	call := engine.Call{
		Principal: who.principal, Kind: asked.kind, Name: asked.name, Arguments: asked.arguments,
		Open: asked.kind == engine.SSEStream && q.handler.streamsOpen,
	}
	said := set.Explain(q.Context(), call)
	if who.confirms && asked.kind == engine.ToolsCall {
		reads, err := q.Core.Pins.Of(server).ReadOnly(q.Context(), asked.name)
		if err != nil {
			return err
		}
		if !reads {
			said = said.Confirmed()
		}
	}
	v.decide(said)
	v.Certain = set.Foresee(q.Context(), call, who.lacking).Certain
	switch {
	case v.AgentID == nil && q.Call.Core.AgentRules.RequireRegistered:
		v.refuse(gateway.TextUnregistered)
	case v.Decision == engine.Ask.String() && who.machine:
		v.refuse(v.Reason + " Nobody can be asked behind the token of a machine.")
	}
	return nil
}

// refuse notes that the gateway refuses the call, whatever the policies would decide.
func (v *explanation) refuse(reason string) {
	v.Decision, v.Reason, v.Hidden, v.OutOfBand, v.Approvers, v.Certain = engine.Deny.String(), reason, false, false, [][]string{}, true
}

// questions reads the body: one question, or several below calls.
func (q *request) questions() (asked []question, several bool, err error) {
	err = q.Read(false, func(o *validate.Object) {
		calls := o.Objects("calls", validate.List{Min: 1, Max: maxCalls})
		for _, call := range calls.Value {
			asked = append(asked, q.question(call, validate.Required))
		}
		alone := !o.Has("action")
		if several = o.Has("calls"); several && alone {
			o.Only()
			return
		}
		if several {
			o.Report(validate.ExtraForbidden, "Give one call, or several as calls", "calls")
		}
		asked = append(asked, q.question(o, 0))
		if alone {
			o.Report(validate.Missing, "Field required: action, or calls", "action")
		}
	})
	return asked, several, err
}

// question reads one question. action are the flags of that member.
func (q *request) question(o *validate.Object, action validate.Flags) (asked question) {
	asked.policyID = o.UUID("policy_id", validate.Nullable).Value
	named := either(o, "server", "mcp_server_id")
	server := o.Text(named, validate.Text{Flags: validate.Nullable, Max: maxNameText})
	asked.server = serverRef{slug: server.Value}
	if id, ok := validate.UUID(server.Value); ok {
		asked.server = serverRef{id: id}
	} else if server.Value != "" && !slug.Valid(server.Value) {
		o.Report(validate.UUIDParsing, "Input should be a valid UUID or slug", named)
	}
	if !server.Set() && asked.policyID == "" && !o.Wrong("policy_id") {
		o.Report(validate.Missing, "Field required: server, or policy_id", named)
	}
	asked.agentID = o.UUID(either(o, "agent", "agent_id"), validate.Nullable)
	asked.userID = o.UUID(either(o, "user", "user_id"), validate.Nullable).Value
	name := validate.Text{Min: 1, Max: maxNameText}
	asked.roles = o.Texts("roles", validate.List{Flags: validate.Nullable, Max: maxNames}, name)
	asked.groups = o.Texts("groups", validate.List{Flags: validate.Nullable, Max: maxNames}, name)
	asked.readAction(o, action)
	asked.arguments = o.Document("arguments", validate.Nullable, int(q.Core.Sizes.API)).Value
	o.Only() // an answer to a wrong question is worse than none
	return asked
}

// either returns the name under which a member was sent. Other API bodies have another name for it; both together are
// refused.
func either(o *validate.Object, name, alias string) string {
	if o.Has(alias) && !o.Has(name) {
		return alias
	}
	return name
}

// readAction reads an action that is one call, not a pattern of many.
func (asked *question) readAction(o *validate.Object, flags validate.Flags) {
	asked.action = o.Text("action", validate.Text{Flags: flags, Min: 1, Max: maxAction}).Value
	if asked.action == "" {
		return
	}
	var err error
	if asked.kind, asked.name, err = engine.ParseCall(asked.action); err != nil {
		o.Report(validate.ValueError, "Value error, "+err.Error(), "action")
	}
}

func (q *request) explainedCaller(asked *question, other bool, v *explanation) (explainedCaller, error) {
	agent := q.Call.Agent
	switch {
	case asked.agentID.Null:
		agent = nil
	case asked.agentID.Set():
		named, err := q.Core.Store.Agent(q.Context(), q.Organization(), asked.agentID.Value)
		if err != nil {
			return explainedCaller{}, routes.Missing(err, errNoAgent)
		}
		agent = &named
	case other:
		agent = nil
		v.Notes = append(v.Notes, "No agent was named: the call is judged as one of a client that is not registered")
	}
	if agent != nil {
		v.AgentID = &agent.ID
	}
	who := explainedCaller{machine: q.Call.Caller.Machine, confirms: agent != nil && agent.WriteConfirmationsRequired}
	v.UserID, v.Roles, v.Groups, v.RolesKnown = q.Call.Caller.UserID, q.Call.Caller.Roles, q.Call.Caller.Groups, true
	if other {
		u, err := q.Core.Store.User(q.Context(), q.Organization(), asked.userID)
		if err != nil {
			return explainedCaller{}, routes.Missing(err, errNoUser)
		}
		who.machine = u.Kind == storage.UserMachine
		v.UserID, v.Roles, v.Groups, v.RolesKnown = u.ID, nil, nil, asked.roles.Set() && asked.groups.Set()
		v.Notes = append(v.Notes, "The claims of this user's token are not known here: conditions see none")
		if !v.RolesKnown {
			v.Notes = append(v.Notes, "Roles and groups come with a user's token and are not known here: those that the request does not give count as none")
		}
	}
	if !other && !asked.roles.Set() && !asked.groups.Set() {
		v.Roles, v.Groups = routes.List(v.Roles), routes.List(v.Groups)
		who.principal = q.Call.Party().PrincipalAs(agent)
		return who, nil
	}
	if !other {
		v.Notes = append(v.Notes, "With other roles or groups than the token's, the token's claims are left out: conditions see none")
	}
	v.Roles, v.Groups = routes.List(asked.roles.Or(v.Roles)), routes.List(asked.groups.Or(v.Groups))
	id := ""
	if agent != nil {
		id = agent.ID
	}
	who.principal = engine.NewPrincipal(v.UserID, v.Roles, v.Groups, id, nil)
	who.lacking = engine.Lacking{Claims: true, Roles: !v.RolesKnown}
	return who, nil
}

// asThoughActive returns the policies that would decide about a server if p were active, and the names of the active
// policies that p would replace.
func asThoughActive(p storage.Policy, present []storage.Policy) (all []storage.Policy, displaced []string) {
	displaced = []string{}
	for _, other := range present {
		switch {
		case other.ID == p.ID:
		case other.Status == storage.PolicyActive && overlap(p.ApplicationIDs, other.ApplicationIDs):
			displaced = append(displaced, other.Name)
		default:
			all = append(all, other)
		}
	}
	p.Status, p.Shadow = storage.PolicyActive, false
	return append(all, p), displaced
}

// overlap reports whether two policies of a server cannot both be active: both are for all agents, or both name the same one.
func overlap(a, b []string) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	return slices.ContainsFunc(a, func(id string) bool { return slices.Contains(b, id) })
}

// explanation is the decision with its reasons.
type explanation struct {
	Decision   string          `json:"decision"` // allow, deny or ask
	Certain    bool            `json:"certain"`  // false while facts are unknown: see roles_known and notes
	Reason     string          `json:"reason"`
	Hidden     bool            `json:"hidden"` // no arguments could change the denial: lists do not show it
	OutOfBand  bool            `json:"out_of_band"`
	Approvers  [][]string      `json:"approvers"` // who decides in place of the caller: somebody in each of the lists; empty: the caller does
	Policy     *decidingPolicy `json:"policy"`
	Rule       *string         `json:"rule"`
	Conditions []conditionView `json:"conditions"`
	Displaced  []string        `json:"displaced_policy_names"` // by the policy in the question, if it were active
	Shadow     []shadowView    `json:"shadow"`                 // drafts that would decide otherwise
	ServerID   string          `json:"mcp_server_id"`
	Server     string          `json:"mcp_server_slug"`
	Action     string          `json:"action"`
	UserID     string          `json:"user_id"`
	AgentID    *string         `json:"agent_id"`
	Roles      []string        `json:"roles"`
	Groups     []string        `json:"groups"`
	RolesKnown bool            `json:"roles_known"`
	Notes      []string        `json:"notes"`
}

// explanations are the answers to several questions, in their order.
type explanations struct {
	Data []explanation `json:"data"`
}

// explained is the answer to one question or to several.
type explained struct{}

// Choices implements schema.Choice.
func (explained) Choices() []any { return []any{explanation{}, explanations{}} }

type decidingPolicy struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Revision int    `json:"revision"`
}

// conditionView is the result of an expression that was evaluated, in any rule. It has no value when the expression
// could not be evaluated.
type conditionView struct {
	Rule  string          `json:"rule"`
	Expr  string          `json:"expr"`
	Value json.RawMessage `json:"value"`
	Error *string         `json:"error"`
}

type shadowView struct {
	Policy   decidingPolicy `json:"policy"`
	Decision string         `json:"decision"`
	Rule     *string        `json:"rule"`
	Reason   string         `json:"reason"`
}

func (v *explanation) decide(d engine.Decision) {
	v.Decision, v.Reason, v.Hidden, v.OutOfBand, v.Rule = d.Effect.String(), d.Reason.String(), d.Hidden, d.OutOfBand, routes.Optional(d.Rule)
	v.Approvers = routes.List(d.Approvers)
	if d.PolicyID != "" {
		v.Policy = &decidingPolicy{d.PolicyID, d.PolicyName, d.Revision}
	}
	for _, c := range d.Values {
		v.Conditions = append(v.Conditions, conditionView{Rule: c.Rule, Expr: c.Expr, Value: orNull(json.RawMessage(c.Value)), Error: routes.Optional(c.Error)})
	}
	for _, s := range d.Shadow {
		v.Shadow = append(v.Shadow, shadowView{
			Policy: decidingPolicy{s.PolicyID, s.PolicyName, s.Revision}, Decision: s.Effect.String(), Rule: routes.Optional(s.Rule), Reason: s.Reason.String(),
		})
	}
}
