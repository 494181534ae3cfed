package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/storage"
)

// MaxApprovers is the largest number of entries in a rule's list of approvers.
const MaxApprovers = 20

// userPrefix begins an approver that is one user.
const userPrefix = "user:"

// demand is the demand of a rule that asks on the decision. A greater one is stricter.
type demand uint8

const (
	anyChannel   demand = iota
	outOfBand           // not in the MCP client
	othersDecide        // not the caller, and out of band

	demands
)

func demandOf(a storage.RuleApproval) demand {
	switch {
	case len(a.By) > 0:
		return othersDecide
	case a.Channel == storage.ChannelOutOfBand:
		return outOfBand
	}
	return anyChannel
}

// wrongApprover returns the mistake in an entry of approval.by, or nil. Neither * nor a bare name is allowed: a rule must
// say whom it trusts.
func wrongApprover(entry string) error {
	if id, ok := strings.CutPrefix(entry, userPrefix); ok {
		if parsed, err := uuid.Parse(id); err != nil || parsed.String() != id {
			return fmt.Errorf("a user is named by their id, as in user:0192f0c1-5bd2-7000-8000-0000000000aa")
		}
		return nil
	}
	if kind, _ := subjectOf(entry); kind == subjectAll || kind == subjectEither {
		return fmt.Errorf("must be user:ID, role:NAME or group:NAME")
	}
	return wrongSubject(entry)
}

// wrongApprovers returns the first mistake in the approvers of a rule, or nil.
func wrongApprovers(a storage.RuleApproval) error {
	if len(a.By) > 0 && a.Channel != storage.ChannelOutOfBand {
		return fmt.Errorf("approval: other people decide out of band only")
	}
	if len(a.By) > MaxApprovers {
		return fmt.Errorf("approval: at most %d approvers", MaxApprovers)
	}
	for _, entry := range a.By {
		if err := wrongApprover(entry); err != nil {
			return fmt.Errorf("approver %q: %w", entry, err)
		}
	}
	return nil
}

// IsApprover reports whether a person is in each of the lists of approvers. It is false without a list. Roles and groups
// that nobody knows must not be among the names.
func IsApprover(approvers [][]string, userID string, roles, groups []string) bool {
	for _, list := range approvers {
		if !slices.ContainsFunc(list, func(entry string) bool { return names(entry, userID, roles, groups) }) {
			return false
		}
	}
	return len(approvers) > 0
}

func names(entry, userID string, roles, groups []string) bool {
	if id, ok := strings.CutPrefix(entry, userPrefix); ok {
		return id == userID && id != ""
	}
	switch kind, name := subjectOf(entry); kind {
	case subjectRole:
		return slices.Contains(roles, name)
	case subjectGroup:
		return slices.Contains(groups, name)
	default: // wrongApprover lets none of the others in
		return false
	}
}

// approvers returns the lists of all matching rules that ask other people, sorted, each once. The rules have no order, and
// none of them may be weakened by another.
func (j *judge) approvers(p *policy, found []*posting) [][]string {
	var lists [][]string
	for _, postings := range found {
		for _, n := range postings.ask {
			if r := &p.rules[n]; r.demand == othersDecide && p.masks[n].meets(j.principal.mask) && r.subjects.include(j.principal, j.wary) && j.matches(r, Ask) {
				lists = append(lists, r.approvers)
			}
		}
	}
	slices.SortFunc(lists, slices.Compare)
	return slices.CompactFunc(lists, slices.Equal)
}
