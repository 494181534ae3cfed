package doctor

import (
	"fmt"
	"strings"
)

// shownPolicies is how many policies a finding names.
const shownPolicies = 5

// Approvals judges a gateway without a page to decide on held calls. asking are the names of its active policies that ask for
// approval, elsewhere says that users can decide with other clients.
func Approvals(asking []string, elsewhere bool) []Finding {
	if len(asking) == 0 {
		return nil
	}
	names := strings.Join(asking[:min(len(asking), shownPolicies)], ", ")
	if more := len(asking) - shownPolicies; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	if elsewhere {
		return []Finding{{
			Severity: Note, Found: "policies ask for approval (" + names + "), and the gateway has no page to give it on: users decide with the approval_clients, or in MCP clients that ask them",
			Mend: "Give an identity a `login_client` for the page.",
		}}
	}
	return []Finding{{
		Severity: Warning, Found: "policies ask for approval (" + names + "), and nobody can give it outside of MCP clients that ask their user: calls of all others are held in vain",
		Mend: "Give an identity a `login_client`, which brings a page to decide on, or name `approval_clients`.",
	}}
}
