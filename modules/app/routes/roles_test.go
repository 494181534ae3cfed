package routes

import (
	"net/http"
	"testing"

	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/internal/identity/caller"
)

// TestPowers checks routes drawn at random, for callers with powers drawn at random: a table that takes the route lets no
// auditor write, nobody without powers do more than users, and administrators do everything. No power takes another away.
func TestPowers(t *testing.T) {
	classes := []AuditClass{AuditNone, AuditRead, AuditConnection, AuditAdminWrite, AuditApproval}
	methods := []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	rapid.Check(t, func(t *rapid.T) {
		role, class := rapid.SampledFrom(allRoles).Draw(t, "role"), rapid.SampledFrom(classes).Draw(t, "class")
		organization := OwnOrganization
		if role == Public {
			organization = NoOrganization
		}
		r := At(rapid.SampledFrom(methods).Draw(t, "method"), "/x", role, organization, class, nothing).Gives("Does nothing.", nil)
		if r.check() != nil {
			return
		}
		draw := func(name string) bool { return rapid.Bool().Draw(t, name) }
		has := caller.Powers{Admin: draw("admin"), Auditor: draw("auditor"), PolicyEditor: draw("policy editor"), Operator: draw("operator")}
		everybody := role == Public || role == User
		auditing := role.allows(class, caller.Powers{Auditor: true})
		if auditing && !everybody && (class != AuditRead || r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost) {
			t.Errorf("an auditor may use %+v", r)
		}
		if class == AuditRead && !auditing {
			t.Errorf("an auditor may not read %+v", r)
		}
		if role.allows(class, caller.Powers{}) != everybody {
			t.Errorf("a user and %+v", r)
		}
		if !role.allows(class, caller.Powers{Admin: true}) {
			t.Errorf("an administrator may not use %+v", r)
		}
		any := has.Admin || has.Auditor && auditing || has.PolicyEditor && role.allows(class, caller.Powers{PolicyEditor: true}) || has.Operator && role.allows(class, caller.Powers{Operator: true})
		if got := role.allows(class, has); got != (any || everybody) {
			t.Errorf("%+v and %+v: %t", has, r, got)
		}
	})
}
