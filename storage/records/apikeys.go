package records

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	apiKeyColumns = `id, organization_id, name, prefix, hmac, scopes, COALESCE(user_id, ''), group_name, created_by, created_at,
		expires_at, revoked_at, disabled, agent_id, made_with, used_at`
	apiKeySelect    = `SELECT ` + apiKeyColumns + ` FROM api_keys`
	apiKeySQL       = apiKeySelect + ` WHERE organization_id = $1 AND id = $2`
	apiKeyByHMACSQL = apiKeySelect + ` WHERE hmac = $1`
	newestKeyFirst  = ` ORDER BY created_at DESC, id DESC`
	apiKeysSQL      = apiKeySelect + ` WHERE organization_id = $1` + newestKeyFirst
	userAPIKeysSQL  = apiKeySelect + ` WHERE organization_id = $1 AND user_id = $2` + newestKeyFirst
	insertKeySQL    = `INSERT INTO api_keys (id, organization_id, name, prefix, hmac, scopes, user_id, group_name, created_by, created_at,
			expires_at, revoked_at, disabled, agent_id, made_with)
		VALUES ($1, $2, $3, $4, $5, $6, NULLIF($7, ''), $8, $9, $10, $11, $12, $13, $14, $15)`
	updateKeySQL = `UPDATE api_keys SET name = $3, scopes = $4, expires_at = $5, disabled = $6, prefix = $7, hmac = $8 WHERE organization_id = $1 AND id = $2`
	noteKeySQL   = `UPDATE api_keys SET used_at = $3 WHERE organization_id = $1 AND id = $2 AND used_at < $3`
	revokeKeySQL = `UPDATE api_keys SET revoked_at = $3 WHERE organization_id = $1 AND id = $2`
	// $4 is the zero time.
	revokeKeysOfUserSQL  = `UPDATE api_keys SET revoked_at = $3 WHERE organization_id = $1 AND user_id = $2 AND revoked_at = $4`
	revokeKeysOfAgentSQL = `UPDATE api_keys SET revoked_at = $3 WHERE organization_id = $1 AND agent_id = $2 AND revoked_at = $4`
	// $3 is the zero time.
	keyOfUserSQL = `SELECT 1 FROM api_keys WHERE organization_id = $1 AND user_id = $2 AND revoked_at = $3 LIMIT 1`
)

func scanAPIKey(r Row) (k storage.APIKey, err error) {
	err = r.Scan(&k.ID, &k.OrganizationID, &k.Name, &k.Prefix, &k.HMAC, jsonColumn{&k.Scopes}, &k.UserID, &k.GroupName, &k.CreatedBy,
		timeColumn{&k.CreatedAt}, timeColumn{&k.ExpiresAt}, timeColumn{&k.RevokedAt}, flagColumn{&k.Disabled}, &k.AgentID, &k.MadeWith, timeColumn{&k.UsedAt})
	return k, err
}

// CreateAPIKey implements storage.APIKeys.
func (s apiKeysStore) CreateAPIKey(ctx context.Context, k storage.APIKey) error {
	if len(k.HMAC) != storage.APIKeyHMACSize {
		return fmt.Errorf("storing an API key: its HMAC has %d bytes, not %d", len(k.HMAC), storage.APIKeyHMACSize)
	}
	scopes, err := jsonTexts(k.Scopes, k.Scopes...)
	if err != nil {
		return fmt.Errorf("storing an API key's scopes: %w", err)
	}
	return s.write(ctx, k.OrganizationID, func(ctx context.Context, tx Tx) error {
		if k.UserID != "" {
			user, err := One(ctx, tx, scanUser, userSQL, k.OrganizationID, k.UserID)
			if err != nil {
				return err
			}
			if !user.RevokedAt.IsZero() && !micros(k.CreatedAt).After(user.RevokedAt) {
				return storage.ErrNotFound
			}
		}
		if k.AgentID != "" {
			if _, err := One(ctx, tx, scanAgent, agentSQL, k.OrganizationID, k.AgentID); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, insertKeySQL, k.ID, k.OrganizationID, k.Name, k.Prefix, k.HMAC, scopes, k.UserID, k.GroupName,
			k.CreatedBy, k.CreatedAt.UnixMicro(), k.ExpiresAt.UnixMicro(), k.RevokedAt.UnixMicro(), boolean(k.Disabled), k.AgentID, k.MadeWith); err != nil {
			return err
		}
		_, err := tx.Change(ctx, k.OrganizationID)
		return err
	})
}

// APIKeys implements storage.APIKeys.
func (s apiKeysStore) APIKeys(ctx context.Context, organization string) (keys []storage.APIKey, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		keys, err = Many(ctx, q, scanAPIKey, apiKeysSQL, organization)
		return err
	})
	return keys, err
}

// UserAPIKeys implements storage.APIKeys.
func (s apiKeysStore) UserAPIKeys(ctx context.Context, organization, userID string) (keys []storage.APIKey, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		keys, err = Many(ctx, q, scanAPIKey, userAPIKeysSQL, organization, userID)
		return err
	})
	return keys, err
}

// APIKey implements storage.APIKeys.
func (s apiKeysStore) APIKey(ctx context.Context, organization, id string) (k storage.APIKey, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		k, err = One(ctx, q, scanAPIKey, apiKeySQL, organization, id)
		return err
	})
	return k, err
}

// APIKeyByHMAC implements storage.APIKeys.
func (s apiKeysStore) APIKeyByHMAC(ctx context.Context, hmac []byte) (h storage.APIKeyHolder, err error) {
	err = s.readToAuthenticate(ctx, Everyone, func(ctx context.Context, q Querier) (err error) {
		if h.APIKey, err = One(ctx, q, scanAPIKey, apiKeyByHMACSQL, hmac); err != nil || h.UserID == "" {
			return err
		}
		user, err := One(ctx, q, scanUser, userSQL, h.OrganizationID, h.UserID)
		if h.User = &user; err != nil || h.AgentID == "" {
			return err
		}
		agent, err := One(ctx, q, scanAgent, agentSQL, h.OrganizationID, h.AgentID)
		if errors.Is(err, storage.ErrNotFound) {
			return nil
		}
		h.Agent = &agent
		return err
	})
	if err != nil {
		return storage.APIKeyHolder{}, err
	}
	return h, nil
}

// UpdateAPIKey implements storage.APIKeys.
func (s apiKeysStore) UpdateAPIKey(ctx context.Context, organization, id string, edit func(*storage.APIKey) error) (storage.APIKey, error) {
	return s.changeAPIKey(ctx, organization, id, func(ctx context.Context, tx Tx, k *storage.APIKey) (bool, error) {
		edited := *k
		edited.Scopes, edited.HMAC = slices.Clone(k.Scopes), slices.Clone(k.HMAC)
		if err := edit(&edited); err != nil {
			return false, err
		}
		if len(edited.HMAC) != storage.APIKeyHMACSize {
			return false, fmt.Errorf("storing an API key: its HMAC has %d bytes, not %d", len(edited.HMAC), storage.APIKeyHMACSize)
		}
		edited.ExpiresAt = micros(edited.ExpiresAt)
		if edited.Name == k.Name && slices.Equal(edited.Scopes, k.Scopes) && edited.ExpiresAt.Equal(k.ExpiresAt) && edited.Disabled == k.Disabled &&
			edited.Prefix == k.Prefix && bytes.Equal(edited.HMAC, k.HMAC) {
			return false, nil
		}
		k.Name, k.Scopes, k.ExpiresAt, k.Disabled, k.Prefix, k.HMAC = edited.Name, edited.Scopes, edited.ExpiresAt, edited.Disabled, edited.Prefix, edited.HMAC
		scopes, err := jsonTexts(k.Scopes, k.Scopes...)
		if err != nil {
			return false, fmt.Errorf("storing an API key's scopes: %w", err)
		}
		return true, execOne(ctx, tx, updateKeySQL, organization, id, k.Name, scopes, k.ExpiresAt.UnixMicro(), boolean(k.Disabled), k.Prefix, k.HMAC)
	})
}

// NoteAPIKey implements storage.APIKeys.
func (s apiKeysStore) NoteAPIKey(ctx context.Context, organization, id string, at time.Time) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		_, err := tx.Exec(ctx, noteKeySQL, organization, id, at.UnixMicro())
		return err
	})
}

// RevokeAPIKey implements storage.APIKeys.
func (s apiKeysStore) RevokeAPIKey(ctx context.Context, organization, id string, at time.Time) (storage.APIKey, error) {
	return s.changeAPIKey(ctx, organization, id, func(ctx context.Context, tx Tx, k *storage.APIKey) (bool, error) {
		return revokeAPIKey(ctx, tx, k, at)
	})
}

// RevokeUserAPIKey implements storage.APIKeys.
func (s apiKeysStore) RevokeUserAPIKey(ctx context.Context, organization, userID, id string, at time.Time) (storage.APIKey, error) {
	return s.changeAPIKey(ctx, organization, id, func(ctx context.Context, tx Tx, k *storage.APIKey) (bool, error) {
		if userID == "" || k.UserID != userID {
			return false, storage.ErrNotFound
		}
		return revokeAPIKey(ctx, tx, k, at)
	})
}

func revokeAPIKey(ctx context.Context, tx Tx, k *storage.APIKey, at time.Time) (changed bool, err error) {
	if !k.RevokedAt.IsZero() {
		return false, nil
	}
	k.RevokedAt = micros(at)
	return true, execOne(ctx, tx, revokeKeySQL, k.OrganizationID, k.ID, k.RevokedAt.UnixMicro())
}

// changeAPIKey lets f write a key in a transaction. f reports whether it did, and then brings k up to date.
func (s *work) changeAPIKey(ctx context.Context, organization, id string,
	f func(ctx context.Context, tx Tx, k *storage.APIKey) (changed bool, err error),
) (k storage.APIKey, err error) {
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) (err error) {
		if k, err = One(ctx, tx, scanAPIKey, apiKeySQL, organization, id); err != nil {
			return err
		}
		changed, err := f(ctx, tx, &k)
		if err == nil && changed {
			_, err = tx.Change(ctx, organization)
		}
		return err
	})
	if err != nil {
		return storage.APIKey{}, err
	}
	return k, nil
}

// revokeKeysOfUser revokes the keys that stand for a user. The caller reports the change.
func revokeKeysOfUser(ctx context.Context, tx Tx, organization, userID string, at time.Time) (changed bool, err error) {
	n, err := tx.Exec(ctx, revokeKeysOfUserSQL, organization, userID, at.UnixMicro(), never())
	return n > 0, err
}
