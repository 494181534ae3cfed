package approval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/storage"
)

// holdKept is the lifetime of a hold that its process did not end. No stream waits that long.
const holdKept = 24 * time.Hour

// Hold is a call whose client waits on an open stream for its user's decision. The client can cancel it at every node.
type Hold struct {
	engine           *Engine
	organization, id string
}

// Hold records that a call is held until its hold is ended. requestID is the client's id of the call, as
// jsonrpc.IDValue returns it.
func (e *Engine) Hold(ctx context.Context, who Asker, requestID string) (*Hold, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("making an id: %w", err)
	}
	now := e.now().UTC()
	err = e.store.AddHold(ctx, storage.Hold{
		ID: id.String(), OrganizationID: who.Organization, UserID: who.User, ServerID: who.Server, Call: who.call(requestID), ExpiresAt: now.Add(holdKept),
	}, now)
	if err != nil {
		return nil, fmt.Errorf("holding a call: %w", err)
	}
	return &Hold{e, who.Organization, id.String()}, nil
}

// Stands reports whether the call is still wanted: the client has not cancelled it at any node.
func (h *Hold) Stands(ctx context.Context) (bool, error) {
	return h.engine.store.HoldStands(ctx, h.organization, h.id)
}

// End forgets the hold.
func (h *Hold) End(ctx context.Context) error {
	return h.engine.store.DeleteHold(ctx, h.organization, h.id)
}

// TakeBack cancels the asker's calls with those ids, wherever they are held. Most ids belong to calls that are not
// held.
func (e *Engine) TakeBack(ctx context.Context, who Asker, requestIDs []string) error {
	calls := make([]string, len(requestIDs))
	for i, id := range requestIDs {
		calls[i] = who.call(id)
	}
	return e.store.TakeBackCalls(ctx, who.Organization, who.User, calls)
}

// call names a call of the asker. The name is a digest, because session ids are secrets.
func (a Asker) call(requestID string) string {
	sum := sha256.Sum256(append(a.bound("mcp held call"), requestID...))
	return hex.EncodeToString(sum[:])
}
