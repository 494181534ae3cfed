package routes

import (
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/caller"
)

// Role is the least role that a caller of a route needs. An administrator may use every route. An auditor may also use
// every route for policy editors or operators that only reads.
type Role string

// These are the roles.
const (
	Public       Role = "public"        // without a token
	User         Role = "user"          // every user of the organization
	Auditor      Role = "auditor"       // those who read everything, and administrators; routes that write have another role
	PolicyEditor Role = "policy_editor" // those who edit policies and accept tools, and administrators
	Operator     Role = "operator"      // those who manage servers, connections and agents, and administrators
	Admin        Role = "admin"         // administrators alone; routes that only read have another role
)

var allRoles = []Role{Public, User, Auditor, PolicyEditor, Operator, Admin}

// allows reports whether a caller with powers may use a route of the role and an audit class.
func (r Role) allows(class AuditClass, has caller.Powers) bool {
	switch {
	case r == Public, r == User, has.Admin:
		return true
	case r == Admin:
		return false
	case has.Auditor && class == AuditRead:
		return true
	case r == PolicyEditor:
		return has.PolicyEditor
	case r == Operator:
		return has.Operator
	}
	return false
}

// refusals holds the refusal of each role's routes.
var refusals = map[Role]*Refusal{
	Auditor:      Refused(gateway.Forbidden, "This needs the role of an administrator or an auditor"),
	PolicyEditor: Refused(gateway.Forbidden, "This needs the role of an administrator or a policy editor"),
	Operator:     Refused(gateway.Forbidden, "This needs the role of an administrator or an operator"),
	Admin:        Refused(gateway.Forbidden, "This needs the role of an administrator"),
}

// May reports whether the caller could use a route of that role, with the audit class of this one. Routes for every user
// ask it before they show or do more: auditors see what others have, and end nothing of theirs.
func (q *Request) May(r Role) bool { return r.allows(q.audit, q.Call.Caller.Powers) }
