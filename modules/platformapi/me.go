package platformapi

import (
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/modules/app/routes"
)

// These are the things that a caller may do beside what every user may. They never change their meaning: clients choose by
// them what they show.
const (
	mayRead       = "read_everything"  // reads what administrators read
	mayEdit       = "edit_policies"    // edits policies, accepts tools
	mayOperate    = "operate_servers"  // manages servers, the directory, connections, agents
	mayAdminister = "administer"       // everything else
	mayDecide     = "decide_approvals" // decides on their own held calls with this token
)

// meView is the API's view of its caller.
type meView struct {
	User         meUserView         `json:"user"`
	Organization meOrganizationView `json:"organization"`
	Roles        []string           `json:"roles"` // as the token names them
	Groups       []string           `json:"groups"`
	Teams        []string           `json:"teams"`
	Projects     []string           `json:"projects"`
	Agent        *meAgentView       `json:"agent"`  // null: the client is not registered
	Client       *string            `json:"client"` // the OAuth client that holds the token
	Login        *string            `json:"login"`  // the login with the gateway of which the token came
	May          []string           `json:"may"`
	ExpiresAt    *routes.Instant    `json:"expires_at"` // of the token, with the tolerance for clocks
}

type meUserView struct {
	ID      string  `json:"id"`
	Name    *string `json:"name"`
	Email   *string `json:"email"`
	Issuer  string  `json:"issuer"`
	Subject string  `json:"subject"`
	Machine bool    `json:"machine"` // no person is behind the token
}

type meOrganizationView struct {
	ID   string  `json:"id"`
	Slug *string `json:"slug"` // null until a token names one
}

type meAgentView struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// showMe shows the caller what the gateway takes them for.
func showMe(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	who := q.Call.Caller
	organization, err := q.Core.Store.Organization(q.Context(), who.OrganizationID)
	if err != nil {
		return nil, err
	}
	v := meView{
		User: meUserView{
			ID: who.UserID, Name: routes.Optional(who.Name), Email: routes.Optional(who.Email), Issuer: who.Issuer, Subject: who.Subject, Machine: who.Machine,
		},
		Organization: meOrganizationView{ID: organization.ID, Slug: routes.Optional(organization.Slug)},
		Roles:        routes.List(who.Roles), Groups: routes.List(who.Groups), Teams: routes.List(who.Teams), Projects: routes.List(who.Projects),
		Client: routes.Optional(who.Agent), Login: routes.Optional(who.Login), ExpiresAt: routes.OptionalInstant(who.ExpiresAt),
		May: may(who, q.Core.Approvals.MayDecide(q.Call.Party().Decider()) == nil),
	}
	if a := q.Call.Agent; a != nil {
		v.Agent = &meAgentView{ID: a.ID, Name: a.Application.Name}
	}
	return v, nil
}

// may returns what a caller may do, in a fixed order.
func may(who *authn.Caller, decides bool) []string {
	all := []string{}
	for _, right := range []struct {
		name string
		has  bool
	}{
		{mayRead, who.Admin || who.Auditor}, {mayEdit, who.Admin || who.PolicyEditor}, {mayOperate, who.Admin || who.Operator},
		{mayAdminister, who.Admin}, {mayDecide, decides},
	} {
		if right.has {
			all = append(all, right.name)
		}
	}
	return all
}

// showFixed shows what the configuration fixed, as far as it concerns the caller's organization.
func showFixed(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	own, err := q.Core.Store.Organization(q.Context(), q.Organization())
	if err != nil {
		return nil, err
	}
	return q.Core.Fixed.View(own, q.Core.PublicURL, &q.Core.Issuers, q.Core.Logins), nil
}
