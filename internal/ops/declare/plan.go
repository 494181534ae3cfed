package declare

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.yaml.in/yaml/v3"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/credential/entryedit"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// maxObjects is the largest number of objects of a kind in a document.
const maxObjects = 100_000

// These are the members of a document.
const (
	organizationMember = "organization"
	directoryMember    = "directory"
	serversMember      = "servers"
	agentsMember       = "agents"
	policiesMember     = "policies"
	providersMember    = "providers"
	mappingsMember     = "model_mappings"
	smartMember        = "smart_models"
	limitsMember       = "rate_limits"
	budgetsMember      = "budgets"
)

// These are the kinds of changes of the directory, and of what policies are about.
const (
	KindEntry  = "directory_entry"
	KindServer = "server"
	KindAgent  = "agent"
	KindPolicy = "policy"
)

// Action is the kind of a change.
type Action string

// Kinds of changes.
const (
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete" // of policies: they become archived
)

// Change is one change of a plan.
type Change struct {
	Action Action        `json:"action"`
	Kind   string        `json:"kind"` // directory_entry, server, agent, llm_provider, model_mapping, smart_model, policy, rate_limit, budget
	Name   string        `json:"name"`
	Was    string        `json:"was,omitempty"` // the former name of an object that is renamed
	Fields []FieldChange `json:"fields,omitempty"`
	Ends   *Ended        `json:"ends,omitempty"`

	id    string // of the object
	first bool   // it has to come before others of its kind
	do    func(ctx context.Context) error
	// finish completes the change after all others; nil: it is complete.
	finish func(ctx context.Context) error
}

// Plan lists the changes to an organization, in the order in which they are made.
type Plan struct {
	Organization string   `json:"organization"`
	Changes      []Change `json:"changes"`
	// Taken counts the objects that are, from now on, managed by files and were made otherwise.
	Taken int `json:"taken_over"`

	add, remove []storage.DeclaredObject // marks
	made        *planner
}

// idle reports whether nothing is to be written.
func (p *Plan) idle() bool { return len(p.Changes)+len(p.add)+len(p.remove) == 0 }

// Options are the surroundings in which files are applied.
type Options struct {
	Store   storage.Store
	Keyring *seal.Keyring
	Now     func() time.Time
	By      string // id of the user who applies; "" for a command line
	MaxMeta int    // bytes of a server's meta
	Prune   bool   // end what former files declared and these do not
	Entries entryedit.Rules
	Models  *accounts.Base // the configuration's models and the kinds of providers
	// Secret returns the value of a reference.
	Secret func(reference string) (seal.Secret, error)
	// Ending returns a context in which servers are deleted, and what is called when that is done. nil: nobody could tell
	// third parties that tokens end, so that the store deletes no server with such tokens.
	Ending func(ctx context.Context) (context.Context, func(ctx context.Context, deleted []storage.DeletedServer))
	// Issuer returns the issuer that stands for the named one in the store; "" names the default.
	Issuer func(named string) (issuer string, known bool)
	// Organization finds the organization of a document by its id or slug; "" stands for the only one.
	Organization func(ctx context.Context, named string) (id string, err error)
	// Audit returns a context in which the next write of an organization is recorded.
	Audit func(ctx context.Context, organization string) (context.Context, error)
}

// group holds the documents of one organization.
type group struct {
	id, named string
	documents []*document
}

// Run plans the changes that the files ask for, and unless dry carries them out, in one transaction for each organization.
// Its error is of type Problems when a file is wrong: then nothing is changed.
func Run(ctx context.Context, o Options, files []File, dry bool) ([]Plan, error) {
	groups, err := o.groups(ctx, files)
	if err != nil {
		return nil, err
	}
	// Every organization's files are judged before anything is written for one of them.
	plans := make([]Plan, len(groups))
	var problems Problems
	for i, g := range groups {
		plan, wrong, err := o.plan(ctx, g)
		if err != nil {
			return nil, err
		}
		plans[i], problems = plan, append(problems, wrong...)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	var done []string
	for i, g := range groups {
		if dry || plans[i].idle() {
			continue
		}
		if plans[i], err = o.apply(ctx, g); err != nil {
			return nil, stopped(err, done)
		}
		done = append(done, strconv.Quote(g.named))
	}
	return plans, nil
}

// stopped says which organizations were changed before one was not. Problems would say that nothing was changed.
func stopped(err error, done []string) error {
	if len(done) == 0 {
		return err
	}
	if wrong := new(Problems); errors.As(err, wrong) {
		err = errors.New(err.Error())
	}
	return fmt.Errorf("changed: %s; %w", strings.Join(done, ", "), err)
}

func (o *Options) groups(ctx context.Context, files []File) (groups []*group, err error) {
	documents, problems := read(files)
	for _, d := range documents {
		named := textOf(d.root, organizationMember)
		id, err := o.Organization(ctx, named)
		if err != nil {
			if storageFailed(err) {
				return nil, err
			}
			at := d.root
			if n := member(d.root, "organization"); n != nil {
				at = n
			}
			problems = append(problems, d.problem(at, "organization", err.Error()))
			continue
		}
		i := slices.IndexFunc(groups, func(g *group) bool { return g.id == id })
		if i < 0 {
			i, groups = len(groups), append(groups, &group{id: id, named: named})
		}
		groups[i].documents = append(groups[i].documents, d)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return groups, nil
}

func storageFailed(err error) bool { return errors.Is(err, storage.ErrUnavailable) }

// apply plans once more, in the transaction that carries the plan out: what it was made from cannot change meanwhile.
func (o *Options) apply(ctx context.Context, g *group) (plan Plan, err error) {
	ctx, err = o.Audit(ctx, g.id)
	if err != nil {
		return Plan{}, err
	}
	told := func(context.Context, []storage.DeletedServer) {}
	if o.Ending != nil {
		ctx, told = o.Ending(ctx)
	}
	var at *Change
	err = o.Store.Together(ctx, g.id, func(ctx context.Context) error {
		at = nil
		var problems Problems
		if plan, problems, err = o.plan(ctx, g); err != nil {
			return err
		}
		if len(problems) > 0 {
			return problems
		}
		if err := o.carryOut(ctx, plan, &at); err != nil {
			return err
		}
		at = nil // nobody knows what a commit that fails has stored
		if len(plan.add)+len(plan.remove) == 0 {
			return nil
		}
		return o.Store.SetDeclared(ctx, g.id, plan.add, plan.remove)
	})
	if err == nil {
		told(ctx, plan.made.ended)
	}
	if errors.Is(err, storage.ErrNoEnding) {
		err = errors.New("users are connected to it, and only a running gateway can tell the third party that their tokens end: apply the files with --url")
	}
	if taken := new(storage.ConflictError); errors.As(err, &taken) && taken.Field == "in_use" {
		err = fmt.Errorf("models that stay refer to it: %w", err)
	}
	if err != nil && at != nil {
		err = fmt.Errorf("nothing%s was changed: %s %q: %w", of(g), at.Kind, at.Name, err)
	}
	return plan, err
}

func of(g *group) string {
	if g.named == "" {
		return ""
	}
	return fmt.Sprintf(" of the organization %q", g.named)
}

// carryOut makes the changes of a plan. While each is made its own audit entry is the first one, which the store
// completes as it does for a request about that object; in the end they follow that of the whole.
func (o *Options) carryOut(ctx context.Context, plan Plan, at **Change) error {
	a := storage.AuditOf(ctx)
	if a == nil || len(a.Entries) == 0 {
		a = &storage.Audited{Entries: make([]storage.AuditEntry, 1)}
	}
	whole, entries := a.Entries[0], make([]storage.AuditEntry, 0, len(plan.Changes))
	a.Entries = a.Entries[:1]
	if o.Prune {
		whole.Detail = maps.Clone(whole.Detail)
		if whole.Detail == nil {
			whole.Detail = make(map[string]any)
		}
		whole.Detail["prune"] = true
	}
	defer func() { a.Entries[0] = whole }()
	for i := range plan.Changes {
		*at = &plan.Changes[i]
		e, err := entryOf(**at, whole)
		if err != nil {
			return err
		}
		a.Entries[0] = e
		if err := (*at).do(ctx); err != nil {
			return err
		}
		entries = append(entries, a.Entries[0])
	}
	for i := range plan.Changes {
		if *at = &plan.Changes[i]; (*at).finish == nil {
			continue
		}
		a.Entries[0] = entries[i] // it has its record
		if err := (*at).finish(ctx); err != nil {
			return err
		}
	}
	a.Entries = append(a.Entries, entries...)
	return nil
}

// entryOf returns the audit entry of a change by whoever changes the whole.
func entryOf(c Change, e storage.AuditEntry) (storage.AuditEntry, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return e, err
	}
	e.ID, e.Event = id.String(), c.Kind+"."+string(c.Action)
	e.Detail = map[string]any{"id": c.id, "name": c.Name, "declared": true}
	if c.Was != "" {
		e.Detail["was"] = c.Was
	}
	var fields []string
	for _, f := range c.Fields {
		fields = append(fields, f.Field)
	}
	if c.Kind == KindPolicy && c.Action == Delete { // it becomes archived
		e.Event, fields = KindPolicy+"."+string(Update), []string{"status"}
	}
	if fields != nil {
		e.Detail["fields"] = fields
	}
	if c.Kind == KindServer {
		e.ServerID = c.id
	}
	return e, nil
}

// planner makes the plan of one organization.
type planner struct {
	*Options
	*state
	now         time.Time
	names       *names            // as they will be
	former      *names            // as they are
	external    map[string]string // the ids of agents' clients
	policyNames map[string]bool   // that are declared

	entriesDeclared map[string]bool // slugs
	scopes          scopesDeclared
	managed         map[storage.DeclaredObject]bool // by these files
	used            map[storage.DeclaredObject]bool // by these files
	ended           []storage.DeletedServer
	loose           bool // aliases that end have lost their fallbacks
	changes         []Change
	problems        Problems
}

func (o *Options) plan(ctx context.Context, g *group) (Plan, Problems, error) {
	present, err := readState(ctx, o.Store, o.Models.ConfiguredModels(), g.id, o.Now())
	if err != nil {
		return Plan{}, nil, err
	}
	p := &planner{
		Options: o, state: present, now: o.Now().UTC(), names: present.names(), former: present.names(),
		external: make(map[string]string), policyNames: make(map[string]bool), entriesDeclared: make(map[string]bool),
		managed: make(map[storage.DeclaredObject]bool), used: make(map[storage.DeclaredObject]bool), scopes: scopesDeclared{make(map[limitKey]bool), make(map[storage.BudgetTarget]bool)},
	}
	var documents []*document
	for _, d := range g.documents {
		documents = append(documents, &document{d.file, copied(d.root)}) // references and names in it are replaced
	}
	all := declared{p.findServers(documents), p.findAgents(documents), p.findProviders(documents), p.findModels(documents)}
	for _, d := range documents {
		p.resolvePolicies(d)
		p.resolveTargets(d)
		if err := p.resolveSubjects(ctx, d); err != nil {
			return Plan{}, nil, err
		}
	}
	read := make(map[*document]*validate.Object)
	for _, d := range documents {
		p.resolveSecrets(d)
		whole, err := d.object()
		if err != nil {
			p.problems = append(p.problems, d.placed(err)...)
			continue
		}
		read[d] = whole
		p.planEntries(d, whole)
	}
	for _, d := range documents {
		whole := read[d]
		if whole == nil {
			continue
		}
		p.planDocument(d, whole, all)
		if err := whole.Err(); err != nil {
			p.problems = append(p.problems, d.placed(err)...)
		}
	}
	if o.Prune && len(p.problems) == 0 {
		if err := p.planEnds(ctx, g); err != nil {
			return Plan{}, nil, fmt.Errorf("counting what would end: %w", err)
		}
	}
	slices.SortStableFunc(p.changes, func(a, b Change) int { return rank(a) - rank(b) })
	plan := Plan{Organization: g.named, Changes: p.changes, made: p}
	plan.add, plan.remove = p.marks()
	plan.Taken = p.takenOver(plan.add)
	if plan.Changes == nil {
		plan.Changes = []Change{}
	}
	return plan, p.problems, nil
}

// declared holds the objects of all documents that others name.
type declared struct {
	servers   map[*yaml.Node]found[storage.Server]
	agents    map[*yaml.Node]foundAgent
	providers map[*yaml.Node]found[storage.LLMProvider]
	models    foundModels
}

// planDocument plans everything of a document but its entries of the directory.
func (p *planner) planDocument(d *document, whole *validate.Object, all declared) {
	whole.Text(organizationMember, validate.Text{Min: 1})
	p.planServers(d, whole, all.servers)
	p.planAgents(d, whole, all.agents)
	p.planPolicies(d, whole)
	p.planProviders(d, whole, all.providers)
	p.planMappings(d, whole, all.models)
	p.planSmart(d, whole, all.models)
	p.planLimits(d, whole)
	p.planBudgets(d, whole)
	whole.Only()
}

// rank orders changes: what others name comes first, and a policy that lets agents go before those that take them. What ends comes last,
// in the opposite order.
func rank(c Change) int {
	kinds := []string{KindEntry, KindServer, KindAgent, KindPolicy, KindProvider, KindMapping, KindSmart, KindLimit, KindBudget}
	n := 2 * slices.Index(kinds, c.Kind)
	switch {
	case c.Action == Delete && c.Kind == KindPolicy:
		return -1 // a new one may take its place
	case c.Action == Delete:
		return 4*len(kinds) - n
	case !c.first:
		n++
	}
	return n
}

func (p *planner) wrong(d *document, n *yaml.Node, path, message string) {
	p.problems = append(p.problems, d.problem(n, path, message))
}

// objects reads a list of the document: the readers of each element, beside its node.
func objects(d *document, whole *validate.Object, list string) ([]*validate.Object, []*yaml.Node) {
	read := whole.Objects(list, validate.List{Max: maxObjects, Hold: true}).Value
	nodes := d.each(list)
	if len(read) != len(nodes) {
		return nil, nil // it is no list, which is reported
	}
	return read, nodes
}

func copied(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, inner := range n.Content {
		c.Content[i] = copied(inner)
	}
	return &c
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }
