package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

// Standing holds the present roles and groups of a person who may decide on calls of others. The zero value decides on
// none.
type Standing struct {
	organization, userID string
	roles, groups        []string
}

// Decides reports whether the person is among those who decide on a call in place of its user.
func (s *Standing) Decides(organization, userID string, approvers [][]string) bool {
	return s.userID != "" && s.organization == organization && s.userID != userID && engine.IsApprover(approvers, s.userID, s.roles, s.groups)
}

// Standing returns the standing of a decider. Their roles and groups are those of their token, or of their last login with a
// browser. Names that a newer token of theirs leaves out do not count. Neither machines nor API keys have a standing: an
// API key has facts of former tokens alone. Errors are the store's.
func (e *Engine) Standing(ctx context.Context, d Decider) (Standing, error) {
	if d.Machine || d.Key || d.UserID == "" {
		return Standing{}, nil
	}
	user, err := e.store.User(ctx, d.OrganizationID, d.UserID)
	if errors.Is(err, storage.ErrNotFound) || err == nil && user.Kind != storage.UserPerson {
		return Standing{}, nil
	}
	if err != nil {
		return Standing{}, fmt.Errorf("reading who decides: %w", err)
	}
	roles, groups, at := d.Roles, d.Groups, d.FactsAt
	if d.Browser {
		facts, err := e.store.SessionFacts(ctx, d.OrganizationID, d.UserID)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return Standing{}, fmt.Errorf("reading the roles of who decides: %w", err)
		}
		roles, groups, at = facts.Roles, facts.Groups, facts.At
	}
	if !user.RevokedAt.IsZero() && !at.After(user.RevokedAt) {
		return Standing{}, nil
	}
	if groups, err = e.groups(ctx, d.OrganizationID, d.UserID, present(groups, user.Facts.Groups, at)); err != nil {
		return Standing{}, fmt.Errorf("reading the groups of who decides: %w", err)
	}
	return Standing{d.OrganizationID, d.UserID, present(roles, user.Facts.Roles, at), groups}, nil
}

// present returns the names that were said at a time, without those that a newer token leaves out.
func present(names []string, newest storage.Fact, at time.Time) []string {
	if !newest.At.After(at) {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(newest.Names, name) })
}

// Sees reports whether a held call and its contents are for the person to see: it is their own, or they decide on it.
func (e *Engine) Sees(ctx context.Context, d Decider, a *storage.Approval) (bool, error) {
	if a.OrganizationID == d.OrganizationID && a.UserID == d.UserID {
		return true, nil
	}
	if len(a.Approvers) == 0 {
		return false, nil
	}
	standing, err := e.Standing(ctx, d)
	return standing.Decides(a.OrganizationID, a.UserID, a.Approvers), err
}

// Foreign lists the pending calls of others on which the decider decides, newest first.
func (e *Engine) Foreign(ctx context.Context, d Decider, page storage.PageRequest) (found storage.Page[storage.Approval], err error) {
	standing, err := e.Standing(ctx, d)
	if err != nil {
		return found, err
	}
	all, err := e.store.ForeignApprovals(ctx, d.OrganizationID, e.now())
	if err != nil {
		return found, err
	}
	all = slices.DeleteFunc(all, func(f storage.ForeignApproval) bool {
		return !standing.Decides(d.OrganizationID, f.UserID, f.Approvers)
	})
	found.Total = len(all)
	if page.Limit > 0 {
		before := min(len(all), max(page.Number-1, 0)*page.Limit)
		all = all[before:min(len(all), before+page.Limit)]
	}
	for _, f := range all {
		a, err := e.Approval(ctx, d.OrganizationID, f.ID)
		if errors.Is(err, storage.ErrNotFound) {
			continue // its user was revoked meanwhile
		}
		if err != nil {
			return storage.Page[storage.Approval]{}, err
		}
		found.Items = append(found.Items, a)
	}
	return found, nil
}

// shownPeople is the length of the text about one entry, in bytes.
const shownPeople = 200

// People returns in words who decides on a call in place of its user. Names of roles and groups come from policies.
func People(approvers [][]string) string {
	lists := make([]string, len(approvers))
	for i, list := range approvers {
		entries := make([]string, len(list))
		for k, entry := range list {
			entries[k], _ = visible.Beginning(entry, shownPeople)
		}
		lists[i] = strings.Join(entries, " or ")
	}
	return "somebody else who is " + strings.Join(lists, ", and also ")
}
