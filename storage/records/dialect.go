package records

// Dialect holds the parts of statements that differ between databases; everything else is one text for all of them.
// Its values are constants.
type Dialect struct {
	// Position is the function that returns where in a text another one begins, from 1; 0 is nowhere. It takes the
	// other one literally: no pattern, nothing to escape, no backtracking.
	Position string
	// ListBegin and ListEnd enclose a parameter that is a list of texts, behind a column that must equal one of them.
	ListBegin, ListEnd string
	// ForUpdate and ForKeyShare lock the rows that a statement reads until the transaction ends, the latter against their
	// deletion only. They are empty where transactions that write run one after the other anyway.
	ForUpdate, ForKeyShare string
	// OnlyOwn narrows the deletion of expired rows to organization $2, behind a condition. It is empty where the rows
	// of all organizations can be deleted at once: an index finds them faster than one organization's.
	OnlyOwn string
	// PinsNamed is the source from which pins are read: those of server $2 of organization $1 whose names are in the
	// list $3, each found by an index.
	PinsNamed string
	// TableColumns lists table, column, type and place in the primary key (from 1; 0: none) of every column, by
	// table. It leaves out tables that belong to the database and not to the store.
	TableColumns string
}

// has returns the condition that a text contains another one.
func (d Dialect) has(text, other string) string {
	return d.Position + `(` + text + `, ` + other + `) > 0`
}

// in returns the condition that the value before it is one of a list.
func (d Dialect) in(list string) string { return d.ListBegin + list + d.ListEnd }

// texts holds the statements that depend on the dialect. Each is made in the file of its record.
type texts struct {
	countAgents, listAgents                                  string
	forgetOver                                               string
	forgetExpired                                            string
	forgetHolds, heldCalls                                   string
	forgetConversations                                      string
	forgetLogins                                             string
	forgetAnnouncements                                      string
	auditHead                                                string
	countEntries, listEntries, lockEntry                     string
	countPolicies, listPolicies, listAgentNames, overlapping string
	countViews, listViews                                    string
	listUsers                                                string
	pinsNamed                                                string
	addSpend                                                 string
	addMembers, countNamedMembers                            string
	removeMembers, keepMembers                               string
}

func (d Dialect) texts() *texts {
	var t texts
	t.agents(d)
	t.approvals(d)
	t.holds(d)
	t.attempts(d)
	t.conversations(d)
	t.logins(d)
	t.announcements(d)
	t.audit(d)
	t.entries(d)
	t.policies(d)
	t.views(d)
	t.pins(d)
	t.usage(d)
	t.users(d)
	t.members(d)
	return &t
}

// Reads returns, by name, the statements for which requests wait. Drivers may prepare them, and check their plans.
func (d Dialect) Reads() map[string]string {
	t := d.texts()
	return map[string]string{
		"organization": organizationByIDSQL, "organization by slug": organizationBySlugSQL, "user": userSQL, "user by subject": userBySubjectSQL, "users": t.listUsers,
		"entry": visibleEntrySQL, "number of entries": t.countEntries, "entries": t.listEntries,
		"server": serverSQL, "server by slug": serverBySlugSQL, "number of servers": t.countViews, "servers": t.listViews, "OAuth client": oauthClientSQL,
		"connection": connectionSQL, "attempt": liveAttemptSQL, "conversation": conversationSQL, "agent": agentSQL, "agent by client": agentByClientSQL,
		"agent's credential": agentCredentialSQL, "credentials of a client": credentialsOfClientSQL,
		"policies of a server": serverPoliciesSQL, "approval": approvalSQL, "status of an approval": approvalStatusSQL, "approval that can be used": takeableSQL, "pins of tools": t.pinsNamed, "calls that are held": t.heldCalls, "hold": holdSQL,
		"login": loginSQL, "consent": consentSQL, "registered client": registeredClientSQL,
		"provisioned by name": candidateByNameSQL, "provisioned by external id": candidateByOtherSQL, "provisioned formerly": candidateByLinkSQL,
		"groups of provisioned": groupsOfProvisionedSQL,
		"API key by HMAC":       apiKeyByHMACSQL, "rate limits": enabledRateLimitsSQL,
		"providers": llmProvidersSQL, "mappings": mappingsSQL, "smart models": smartModelsSQL,
	}
}
