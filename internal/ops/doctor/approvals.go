package doctor

import (
	"fmt"
	"strings"
)

// shownNames is the number of names of one kind that a finding shows.
const shownNames = 5

// shortened lists the first of some names, and says how many more there are.
func shortened(names []string) string {
	list := strings.Join(names[:min(len(names), shownNames)], ", ")
	if more := len(names) - shownNames; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// Approvals checks a gateway without a page to decide on held calls. asking holds the names of its active policies
// that ask for approval; elsewhere says that users can decide with other clients.
func Approvals(asking []string, elsewhere bool) []Finding {
	if len(asking) == 0 {
		return nil
	}
	names := shortened(asking)
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
