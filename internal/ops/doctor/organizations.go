package doctor

// Organizations checks names of organizations. empty are those that tokens made after the first one, and in which
// nothing was created. unreachable are those with contents to which no identity of the configuration leads.
func Organizations(empty, unreachable []string) (findings []Finding) {
	if len(unreachable) > 0 {
		findings = append(findings, Finding{
			Severity: Warning, Found: "no identity of the configuration is for organizations that have servers, keys or policies: " + shortened(unreachable),
			Mend: "Nobody gets at what is in them. When one of them is yours, write its name as `organization` at the identity, or leave that out where tokens name organizations.",
		})
	}
	if len(empty) == 0 {
		return findings
	}
	return append(findings, Finding{
		Severity: Warning, Found: "tokens named further organizations, and nothing is in them: " + shortened(empty),
		Mend: "When all users are of one organization, write `organization` at the identity, and see with `durward doctor tokens` which claim names others. " +
			"An administrator removes them with `DELETE /api/organizations/{id}`.",
	})
}
