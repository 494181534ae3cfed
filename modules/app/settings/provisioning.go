package settings

import (
	"fmt"
	"slices"

	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/storage"
)

// These are the words of the option scim.
const (
	groupsOfToken = "token"
	groupsOfSCIM  = "scim"
)

// Provisioning holds the rules for users whom identity providers provision (SCIM), in every organization.
type Provisioning struct {
	// How a provisioned user is found for the user of a token: `user_name`, when their `userName` is the token's user or
	// e-mail address; `subject` or `email`, when it is that one; or `external_id`, when their `externalId` is the token's
	// user. Default: user_name.
	Match string `json:"match,omitempty"`

	// Where the groups of users come from: `token`, `scim`, or both. Where only provisioned groups count, those of a user
	// who is not provisioned are unknown. Groups of machines are always those of the token. Default: token.
	Groups []string `json:"groups,omitempty"`

	// Whether users are refused who are not provisioned. Default: false.
	Require bool `json:"require,omitempty"`
}

// Check returns the first mistake.
func (p *Provisioning) Check() error {
	if p == nil {
		return nil
	}
	switch storage.ProvisionedMatch(p.Match) {
	case "", storage.MatchUserName, storage.MatchSubject, storage.MatchEmail, storage.MatchExternalID:
	default:
		return fmt.Errorf("scim: unrecognized match %q; known are %s, %s, %s, %s", p.Match, storage.MatchEmail, storage.MatchExternalID, storage.MatchSubject, storage.MatchUserName)
	}
	for i, word := range p.Groups {
		switch {
		case word != groupsOfToken && word != groupsOfSCIM:
			return fmt.Errorf("scim: unrecognized source of groups %q; known are %s, %s", word, groupsOfSCIM, groupsOfToken)
		case slices.Contains(p.Groups[:i], word):
			return fmt.Errorf("scim: groups names %s twice", word)
		}
	}
	return nil
}

// Rules returns the rules for authentication.
func (p *Provisioning) Rules() authn.Provisioning {
	if p == nil {
		return authn.Provisioning{Match: storage.MatchUserName}
	}
	rules := authn.Provisioning{Match: storage.ProvisionedMatch(p.Match), Require: p.Require}
	if rules.Match == "" {
		rules.Match = storage.MatchUserName
	}
	switch token, scim := slices.Contains(p.Groups, groupsOfToken), slices.Contains(p.Groups, groupsOfSCIM); {
	case token && scim:
		rules.Groups = authn.GroupsOfBoth
	case scim:
		rules.Groups = authn.GroupsProvisioned
	}
	return rules
}
