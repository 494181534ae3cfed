package doctor

// Organizations judges the names of organizations that tokens made after the first one, and in which nobody made anything.
func Organizations(empty []string) []Finding {
	if len(empty) == 0 {
		return nil
	}
	return []Finding{{
		Severity: Warning, Found: "tokens named further organizations, and nothing is in them: " + shortened(empty),
		Mend: "When all users are of one organization, write `organization` at the identity, and see with `durward doctor tokens` which claim names others. " +
			"An administrator removes them with `DELETE /api/organizations/{id}`.",
	}}
}
