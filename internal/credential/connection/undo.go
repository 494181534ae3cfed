package connection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// undo holds the contents of a sealed undo token.
type undo struct {
	storage.ConnectionKey
	Grant   string
	Expires time.Time
}

// undoToken makes the token with which the page after a callback offers to undo the new connection. An attacker's link
// may have connected a victim to the attacker's account, and the victim must be able to refuse.
func (b *Broker) undoToken(key storage.ConnectionKey, grantID string) (string, error) {
	plain, err := json.Marshal(undo{ConnectionKey: key, Grant: grantID, Expires: b.now().Add(undoLifetime)})
	if err != nil {
		return "", fmt.Errorf("encoding undo token: %w", err)
	}
	return b.undoTokens.Seal(plain, nil), nil
}

// Undo disconnects the connection of the token, if it still holds the credential of that callback, refreshed or not.
// Otherwise, and for a token older than ten minutes, it returns ErrUndo. Other errors come from the store, including
// the case that a key cannot be looked up.
func (b *Broker) Undo(ctx context.Context, token string) (storage.ConnectionKey, error) {
	plain, err := b.undoTokens.Open(token, nil)
	if errors.Is(err, storage.ErrUnavailable) {
		return storage.ConnectionKey{}, fmt.Errorf("opening undo token: %w", err)
	}
	if err != nil {
		return storage.ConnectionKey{}, ErrUndo
	}
	var u undo
	if err := json.Unmarshal(plain, &u); err != nil || !b.now().Before(u.Expires) {
		return storage.ConnectionKey{}, ErrUndo
	}
	switch c, err := b.store.Connection(ctx, u.ConnectionKey); {
	case errors.Is(err, storage.ErrNotFound):
		return storage.ConnectionKey{}, ErrUndo
	case err != nil:
		return storage.ConnectionKey{}, fmt.Errorf("reading connection: %w", err)
	default:
		if err := b.holds(c, u.Grant); err != nil {
			return storage.ConnectionKey{}, err
		}
	}
	e := b.newEnding()
	_, err = b.store.DeleteConnection(storage.WithEnding(ctx, func(ctx context.Context, ended storage.Ended) ([]storage.Revocation, error) {
		if err := b.holds(ended.Former, u.Grant); err != nil { // a user who has connected again since then stays connected
			return nil, err
		}
		return e.revocations(ctx, ended)
	}), u.ConnectionKey)
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, ErrUndo):
		return storage.ConnectionKey{}, ErrUndo
	case err != nil:
		return storage.ConnectionKey{}, fmt.Errorf("deleting connection: %w", err)
	}
	b.retries.forget(u.ConnectionKey)
	e.told()
	b.revokeUnsaved(ctx, u.ConnectionKey)
	return u.ConnectionKey, nil
}

// holds returns ErrUndo unless the connection holds the credentials of that grant.
func (b *Broker) holds(c storage.Connection, grantID string) error {
	g, err := b.openGrant(c)
	if errors.Is(err, storage.ErrUnavailable) {
		return fmt.Errorf("opening stored credential: %w", err)
	}
	if err != nil || g.ID != grantID {
		return ErrUndo
	}
	return nil
}
