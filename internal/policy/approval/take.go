package approval

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/storage"
)

// Take uses up the approval with that id for exactly this call. Of concurrent takers only one gets it. It returns
// storage.ErrNotFound when the approval is not approved, over, used, or for another call.
func (e *Engine) Take(ctx context.Context, c *Call, id string) (storage.Approval, error) {
	taken, err := e.store.TakeApproval(ctx, c.OrganizationID, c.UserID, id, c.Binding(), e.now().UTC())
	if err == nil {
		e.bell.ring(id) // other calls that wait with the same approval have to ask again
	}
	return taken, err
}

// Prolong gives one more round to a call whose approval was used, because the upstream asked for something before it
// does anything. It returns the id of the approval for that round, and the round. The call's next binding needs the
// round.
func (e *Engine) Prolong(ctx context.Context, used *storage.Approval, c *Call) (id, round string, err error) {
	random, err := uuid.NewRandom()
	if err != nil {
		return "", "", fmt.Errorf("making an id: %w", err)
	}
	next := *c
	next.Round = random.String()
	// A round asks the user nothing new. Its approval is decided when it is made, and does not count.
	a, err := e.create(ctx, &next, storage.AskLimits{})
	if err != nil {
		return "", "", err
	}
	if _, err := e.decide(ctx, &a, storage.ApprovalDecision{
		Approve: true, UserID: used.DecidedBy, Via: used.DecidedVia, Client: used.DecidedClient, At: a.CreatedAt,
	}); err != nil {
		return "", "", err
	}
	return a.ID, next.Round, nil
}
