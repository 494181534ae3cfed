package devidp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/storage"
)

// urgent matches calls of create_issue with priority 1. The argument is optional, and a denying rule whose condition
// cannot be evaluated denies.
const urgent = `{"match":{"expr":"has(R.attr.priority) && R.attr.priority == 1"}}`

// seedPolicy makes the example policy of the demo server, unless the server has, or had, a policy: a policy that a
// developer archived does not come back.
func seedPolicy(ctx context.Context, store storage.Store, organization, serverID string, now time.Time) error {
	known, err := store.Policies(ctx, storage.PolicyFilter{OrganizationID: organization, ServerIDs: []string{serverID}, Page: storage.PageRequest{Number: 1, Limit: 1}})
	if err != nil || known.Total > 0 {
		return err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	everybody := []string{"*"}
	_, err = store.CreatePolicy(ctx, storage.Policy{
		ID: id.String(), OrganizationID: organization, ServerID: serverID, Status: storage.PolicyActive,
		Name: "Demo", Description: "What development mode starts with: everything is granted to everybody, with two exceptions to try out.",
		Tags: []string{"demo"}, ApplicationIDs: []string{},
		Rules: []storage.Rule{
			{Name: "Everything", Active: true, Authorized: true, Actions: []string{"*"}, RolesGroups: everybody},
			{Name: "Deleting asks", Active: true, Authorized: true, Actions: []string{"tools/call:delete_issue:approve"}, RolesGroups: everybody},
			{
				Name: "Nothing urgent from sales", Active: true, Actions: []string{"tools/call:create_issue"}, RolesGroups: []string{"group:sales"},
				Condition: json.RawMessage(urgent),
			},
		},
		CreatedAt: now, UpdatedAt: now,
	})
	if err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("making the example policy: %w", err)
	}
	return nil
}
