package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// undo is what is sealed into an undo token.
type undo struct {
	storage.ConnectionKey
	Grant   string
	Expires time.Time
}

// undoToken makes the token that lets the page after a callback offer to undo what just happened: a victim whom
// somebody's link has connected to that somebody's account must be able to say no.
func (b *Broker) undoToken(key storage.ConnectionKey, grantID string) (string, error) {
	plain, err := json.Marshal(undo{ConnectionKey: key, Grant: grantID, Expires: b.now().Add(undoLifetime)})
	if err != nil {
		return "", fmt.Errorf("encoding undo token: %w", err)
	}
	return b.undoTokens.Seal(plain, nil), nil
}

// Undo disconnects the connection that token speaks of, if it still holds the credential of that callback, refreshed or
// not. Otherwise, and when the token is older than ten minutes, the error is ErrUndo. Other errors are the store's, also when
// a key cannot be looked up.
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
	var was storage.Connection
	_, err = b.store.UpdateConnection(ctx, u.ConnectionKey, func(_ context.Context, c *storage.Connection) error {
		g, err := b.openGrant(*c)
		if errors.Is(err, storage.ErrUnavailable) {
			return fmt.Errorf("opening stored credential: %w", err)
		}
		if err != nil || g.ID != u.Grant {
			return ErrUndo
		}
		was = *c
		c.SealedCredential, c.Status, c.Reason = nil, storage.ConnectionError, "undone"
		c.UpdatedAt = b.now().UTC()
		return nil
	})
	if errors.Is(err, storage.ErrNotFound) {
		return storage.ConnectionKey{}, ErrUndo
	}
	if err != nil {
		return storage.ConnectionKey{}, err
	}
	b.revokeConnection(ctx, was)
	gone, err := b.store.DeleteConnection(ctx, u.ConnectionKey)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return storage.ConnectionKey{}, fmt.Errorf("deleting connection: %w", err)
	}
	if gone.SealedCredential != nil {
		// Somebody connected anew between the two steps: that connection was not meant.
		if _, err := b.store.PutConnection(ctx, gone); err != nil {
			return storage.ConnectionKey{}, fmt.Errorf("restoring connection: %w", err)
		}
	}
	return u.ConnectionKey, nil
}
