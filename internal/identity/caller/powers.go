package caller

import "slices"

// Powers holds the rights of a caller beside those of every user. A user may have several. The zero value has none.
type Powers struct {
	// Admin reports whether the caller administers the organization: that includes all other powers.
	Admin bool
	// Auditor reports whether the caller reads everything that administrators read. It changes nothing.
	Auditor bool
	// PolicyEditor reports whether the caller edits policies and accepts tools.
	PolicyEditor bool
	// Operator reports whether the caller manages servers, the directory, connections and agents.
	Operator bool
}

// RoleNames holds the names of the roles that give powers, as an issuer writes them. A power without a name is given to
// nobody.
type RoleNames struct{ Admin, Auditor, PolicyEditor, Operator string }

// Powers returns the powers that roles give. Names are compared exactly (attack J20).
func (n RoleNames) Powers(roles []string) Powers {
	given := func(name string) bool { return name != "" && slices.Contains(roles, name) }
	return Powers{Admin: given(n.Admin), Auditor: given(n.Auditor), PolicyEditor: given(n.PolicyEditor), Operator: given(n.Operator)}
}
