package doctor

// Connections checks a gateway without a page to connect accounts on. wanting holds the names of its servers that
// need an account of their users.
func Connections(wanting []string) []Finding {
	if len(wanting) == 0 {
		return nil
	}
	return []Finding{{
		Severity: Warning, Found: "servers need an account of each user (" + shortened(wanting) + "), and no browser can log in to connect one: users have to ask the API for it",
		Mend: "Give an identity a `login_client`, which brings the page that clients lead their users to.",
	}}
}
