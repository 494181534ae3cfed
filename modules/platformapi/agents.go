package platformapi

import (
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/identity/agentedit"
	"github.com/durward-gateway/durward/internal/ops/declare"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

func listAgents(q *request) (any, error) {
	filter := storage.AgentFilter{OrganizationID: q.Organization(), Search: q.Search(), Page: q.Page()}
	for _, word := range q.Query.Enums("agent_type", string(storage.AgentInternal), string(storage.AgentExternal)) {
		filter.Types = append(filter.Types, storage.AgentType(word))
	}
	if err := q.Shape(); err != nil {
		return nil, err
	}
	page, err := q.Core.Store.Agents(q.Context(), filter)
	if err != nil {
		return nil, err
	}
	return viewPage(filter.Page, page, q.viewAgent), nil
}

func getAgent(q *request) (any, error) {
	id := q.ID("agent_id")
	if err := q.Shape(); err != nil {
		return nil, err
	}
	a, err := q.Core.Store.Agent(q.Context(), q.Organization(), id)
	if err != nil {
		return nil, routes.Missing(err, errNoAgent)
	}
	return q.viewAgent(a), nil
}

type agentCountsView struct {
	All      int `json:"all"`
	Internal int `json:"internal"`
	External int `json:"external"`
}

func countAgents(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	counts, err := q.Core.Store.AgentCounts(q.Context(), q.Organization())
	if err != nil {
		return nil, err
	}
	return agentCountsView(counts), nil
}

// createAgent registers an existing application, or a new one: of the issuer that the request names, else of that of the
// administrator's token.
func createAgent(q *request) (any, error) {
	now := q.handler.now().UTC()
	a := storage.Agent{OrganizationID: q.Organization(), CreatedAt: now, UpdatedAt: now}
	var adopted string
	if err := q.Read(false, func(o *validate.Object) {
		adopted = o.UUID("application_directory_id", validate.Nullable).Value
		described := o.Object("application_directory", validate.Nullable)
		switch given := o.Has("application_directory_id") && adopted != ""; {
		case given && described.Set():
			o.Report(validate.ValueError, "Value error, give application_directory_id or application_directory, not both", "application_directory")
		case described.Set() && described.Value != nil:
			a.Application = agentedit.Application(described.Value)
			a.Application.Issuer = q.issuer(described.Value)
		case !given && !described.Set() && !o.Wrong("application_directory_id") && !o.Wrong("application_directory"):
			o.Report(validate.Missing, "Field required: application_directory_id or application_directory", "application_directory_id")
		}
		agentedit.Settings(o, &a)
	}); err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	a.ID = id.String()
	if adopted != "" {
		a.Application.ID = adopted
		a, err = q.Core.Store.AdoptApplication(q.Context(), a)
		return q.agentAnswer(a, routes.Missing(err, errNoApplication))
	}
	if id, err = uuid.NewV7(); err != nil {
		return nil, err
	}
	a.Application.ID, a.Application.OrganizationID = id.String(), a.OrganizationID
	a.Application.CreatedAt, a.Application.UpdatedAt = now, now
	return q.agentAnswer(a, q.Core.Store.CreateAgent(q.Context(), a))
}

// issuer reads the issuer of a client's tokens: the gateway where it logs users in, or an identity provider.
func (q *request) issuer(o *validate.Object) string {
	named := o.Text("issuer", validate.Text{Flags: validate.Nullable, Enum: q.issuers()}).Value
	if named == "" {
		return q.Call.Caller.Issuer
	}
	return q.Core.AgentIssuer(named)
}

// issuers lists the issuers whose clients can be agents.
func (q *request) issuers() []string {
	known := q.Core.Issuers.Names()
	if q.Core.Authorization != nil {
		known = append(slices.Clone(known), q.Core.PublicURL)
	}
	return known
}

// knownIssuer returns the stored form of an issuer that a file names: as issuer does, or by that form.
func (q *request) knownIssuer(named string) (issuer string, known bool) {
	if named == "" {
		return q.Call.Caller.Issuer, true
	}
	for _, name := range q.issuers() {
		if stored := q.Core.AgentIssuer(name); named == name || named == stored {
			return stored, true
		}
	}
	return "", false
}

func (q *request) agentAnswer(a storage.Agent, err error) (any, error) {
	switch {
	case errors.Is(err, storage.ErrConflict):
		return nil, routes.Conflict("external_id", "This application is an agent already")
	case err != nil:
		return nil, err
	}
	return q.viewAgent(a), nil
}

// updateAgent changes what administrators say about an agent. The client whose tokens it stands for stays the same: policies
// that name the agent would otherwise come to govern another one.
func updateAgent(q *request) (any, error) {
	id := q.ID("agent_id")
	var name, description, channel validate.Field[string]
	var confirmed validate.Field[bool]
	if err := q.Read(false, func(o *validate.Object) {
		name = o.Text("name", validate.Text{Min: 1, Max: 255})
		description = o.Text("description", validate.Text{Flags: validate.Nullable})
		channel = o.Text("approval_channel", agentedit.Channel)
		confirmed = o.Bool("write_confirmations_required", 0)
	}); err != nil {
		return nil, err
	}
	a, err := q.Core.Store.UpdateAgent(q.Context(), q.Organization(), id, q.handler.now().UTC(), func(a *storage.Agent) error {
		a.Application.Name = name.Or(a.Application.Name)
		if description.Present {
			a.Application.Description = description.Value
		}
		if channel.Present { // null: that of the agent's type
			a.ApprovalChannel = storage.ApprovalChannel(channel.Value)
		}
		a.WriteConfirmationsRequired = confirmed.Or(a.WriteConfirmationsRequired)
		return nil
	})
	if err != nil {
		return nil, routes.Missing(err, errNoAgent)
	}
	return q.viewAgent(a), nil
}

// deleteAgent deletes an agent, removes it from the policies that name it, and archives those that named no other
// agent.
func deleteAgent(q *request) (any, error) {
	id := q.ID("agent_id")
	if err := q.Shape(); err != nil {
		return nil, err
	}
	err := q.Core.Store.DeleteAgent(q.Context(), q.Organization(), id, q.Call.Caller.UserID, q.handler.now().UTC())
	return nil, routes.Missing(err, errNoAgent)
}

// applicationView is the API's view of an application.
type applicationView struct {
	ID               string         `json:"id"`
	CreatedAt        routes.Instant `json:"created_at"`
	UpdatedAt        routes.Instant `json:"updated_at"`
	Name             string         `json:"name"`
	Description      string         `json:"description"`
	OrganizationID   string         `json:"organization_id"`
	Issuer           string         `json:"issuer"` // of the client's tokens
	ExternalID       string         `json:"external_id"`
	Public           bool           `json:"public"`
	DCR              bool           `json:"dcr"`
	PostLoginSuccess bool           `json:"post_login_success"`
	Callbacks        []string       `json:"callbacks"`
}

// agentView is the API's view of an agent.
type agentView struct {
	ID             string            `json:"id"`
	CreatedAt      routes.Instant    `json:"created_at"`
	UpdatedAt      routes.Instant    `json:"updated_at"`
	OrganizationID string            `json:"organization_id"`
	ApplicationID  string            `json:"application_directory_id"`
	Application    applicationView   `json:"application_directory"`
	Type           storage.AgentType `json:"agent_type"`

	WriteConfirmationsRequired bool                    `json:"write_confirmations_required"`
	LLMGatewayEnabled          bool                    `json:"llm_gateway_enabled"`
	ApprovalChannel            storage.ApprovalChannel `json:"approval_channel"`
	ManagedByFile              bool                    `json:"managed_by_file,omitempty"` // an applied file declares it
}

func (q *request) viewAgent(a storage.Agent) agentView {
	of := a.Application
	return agentView{
		ManagedByFile: q.ManagedByFile(declare.KindAgent, a.ID),
		ID:            a.ID, CreatedAt: routes.Instant(a.CreatedAt), UpdatedAt: routes.Instant(a.UpdatedAt), OrganizationID: a.OrganizationID,
		ApplicationID: of.ID, Type: a.Type(),
		Application: applicationView{
			ID: of.ID, CreatedAt: routes.Instant(of.CreatedAt), UpdatedAt: routes.Instant(of.UpdatedAt), Name: of.Name, Description: of.Description,
			OrganizationID: of.OrganizationID, Issuer: of.Issuer, ExternalID: of.ExternalID, Public: of.Public, DCR: of.DCR,
			PostLoginSuccess: of.PostLoginSuccess, Callbacks: routes.List(of.Callbacks),
		},
		WriteConfirmationsRequired: a.WriteConfirmationsRequired, LLMGatewayEnabled: a.LLMGatewayEnabled, ApprovalChannel: a.Channel(),
	}
}
