package records

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	connectionColumns = `organization_id, user_id, server_id, id, status, kind, client_id, scope, origin, resource, issuer,
		expires_at, reason, created_at, updated_at, wanted_scope, sealed_credential, version`
	connectionWhere = ` WHERE organization_id = $1 AND user_id = $2 AND server_id = $3`

	connectionSQL          = `SELECT ` + connectionColumns + ` FROM connections` + connectionWhere
	connectionExistsSQL    = `SELECT 1 FROM connections` + connectionWhere
	connectionsOfServerSQL = `SELECT ` + connectionColumns + ` FROM connections WHERE organization_id = $1 AND server_id = $2 ORDER BY user_id`
	// The credential is not read at all.
	usersOfServerSQL = `SELECT c.user_id, u.name, u.email, c.status, c.kind, c.scope, c.reason, c.created_at, c.updated_at
		FROM connections c JOIN users u ON u.organization_id = c.organization_id AND u.id = c.user_id
		WHERE c.organization_id = $1 AND c.server_id = $2 AND c.user_id > $3 ORDER BY c.user_id LIMIT $4`

	insertConnectionSQL = `INSERT INTO connections (` + connectionColumns + `)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`
	putConnectionSQL = insertConnectionSQL + ` ON CONFLICT (organization_id, user_id, server_id) DO UPDATE SET
			id = excluded.id, status = excluded.status, kind = excluded.kind, client_id = excluded.client_id,
			scope = excluded.scope, origin = excluded.origin, resource = excluded.resource, issuer = excluded.issuer,
			expires_at = excluded.expires_at, reason = excluded.reason, created_at = excluded.created_at,
			updated_at = excluded.updated_at, wanted_scope = excluded.wanted_scope, sealed_credential = excluded.sealed_credential, version = excluded.version`
	swapConnectionSQL = `UPDATE connections SET id = $4, status = $5, kind = $6, client_id = $7, scope = $8, origin = $9,
			resource = $10, issuer = $11, expires_at = $12, reason = $13, created_at = $14, updated_at = $15,
			wanted_scope = $16, sealed_credential = $17, version = $18` + connectionWhere + ` AND version = $19`
	deleteConnectionSQL = `DELETE FROM connections` + connectionWhere
	deleteAttemptsSQL   = `DELETE FROM attempts` + connectionWhere
)

func scanConnection(r Row) (c storage.Connection, err error) {
	err = r.Scan(&c.OrganizationID, &c.UserID, &c.ServerID, &c.ID, &c.Status, &c.Kind, &c.ClientID, &c.Scope, &c.Origin,
		&c.Resource, &c.Issuer, timeColumn{&c.ExpiresAt}, &c.Reason, timeColumn{&c.CreatedAt}, timeColumn{&c.UpdatedAt},
		&c.WantedScope, &c.SealedCredential, &c.Version)
	return c, err
}

// connectionContent returns a connection without credential and version, as arguments of the statements. All values
// are comparable.
func connectionContent(c storage.Connection) []any {
	return []any{c.OrganizationID, c.UserID, c.ServerID, c.ID, string(c.Status), string(c.Kind), c.ClientID, c.Scope, c.Origin,
		c.Resource, c.Issuer, c.ExpiresAt.UnixMicro(), c.Reason, c.CreatedAt.UnixMicro(), c.UpdatedAt.UnixMicro(), c.WantedScope}
}

func connectionArgs(c storage.Connection, more ...any) []any {
	return append(append(connectionContent(c), c.SealedCredential, c.Version), more...)
}

// Connection implements storage.Connections.
func (s connectionsStore) Connection(ctx context.Context, key storage.ConnectionKey) (c storage.Connection, err error) {
	err = s.read(ctx, key.OrganizationID, func(ctx context.Context, q Querier) (err error) {
		c, err = One(ctx, q, scanConnection, connectionSQL, key.OrganizationID, key.UserID, key.ServerID)
		return err
	})
	return c, err
}

func scanUserConnection(r Row) (c storage.UserConnection, err error) {
	err = r.Scan(&c.UserID, &c.UserName, &c.UserEmail, &c.Status, &c.Kind, &c.Scope, &c.Reason, timeColumn{&c.CreatedAt}, timeColumn{&c.UpdatedAt})
	return c, err
}

// ServerConnections implements storage.Connections.
func (s connectionsStore) ServerConnections(ctx context.Context, f storage.ConnectionFilter) (all []storage.UserConnection, err error) {
	err = s.read(ctx, f.OrganizationID, func(ctx context.Context, q Querier) (err error) {
		all, err = Many(ctx, q, scanUserConnection, usersOfServerSQL, f.OrganizationID, f.ServerID, f.After, f.Limit)
		return err
	})
	return all, err
}

// writeExclusively runs f in a write transaction when no edit of the connection runs.
func (s *work) writeExclusively(ctx context.Context, key storage.ConnectionKey, f func(ctx context.Context, tx Tx) error) error {
	release, err := s.driver.LockConnection(ctx, key)
	if err != nil {
		return err
	}
	defer release()
	return s.write(ctx, key.OrganizationID, f)
}

// storeConnection writes c under a new version, which is the organization's new epoch: no other state of the connection,
// not even one before a deletion, ever had it.
func storeConnection(ctx context.Context, tx Tx, c storage.Connection, query string, more ...any) (storage.Connection, error) {
	found, err := exists(ctx, tx, serverExistsSQL, c.OrganizationID, c.ServerID)
	if err != nil {
		return c, err
	}
	if !found {
		return c, fmt.Errorf("the connection's server: %w", storage.ErrNotFound)
	}
	if c.Version, err = tx.Change(ctx, c.OrganizationID); err != nil {
		return c, err
	}
	c.ExpiresAt = c.ExpiresAt.UTC().Truncate(time.Microsecond)
	c.CreatedAt = c.CreatedAt.UTC().Truncate(time.Microsecond)
	c.UpdatedAt = c.UpdatedAt.UTC().Truncate(time.Microsecond)
	return c, execOne(ctx, tx, query, connectionArgs(c, more...)...)
}

// CreateConnection implements storage.Connections.
func (s connectionsStore) CreateConnection(ctx context.Context, c storage.Connection) error {
	return s.writeExclusively(ctx, c.ConnectionKey, func(ctx context.Context, tx Tx) error {
		present, err := exists(ctx, tx, connectionExistsSQL, c.OrganizationID, c.UserID, c.ServerID)
		if err != nil {
			return err
		}
		if present {
			return &storage.ConflictError{Field: "connection"}
		}
		_, err = storeConnection(ctx, tx, c, insertConnectionSQL)
		return err
	})
}

// PutConnection implements storage.Connections.
func (s connectionsStore) PutConnection(ctx context.Context, c storage.Connection) (storage.Connection, error) {
	var stored storage.Connection
	err := s.writeExclusively(ctx, c.ConnectionKey, func(ctx context.Context, tx Tx) error {
		former, err := One(ctx, tx, scanConnection, connectionSQL, c.OrganizationID, c.UserID, c.ServerID)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return fmt.Errorf("reading the former connection: %w", err)
		}
		if err := endCredential(ctx, tx, former, &c); err != nil {
			return err
		}
		stored, err = storeConnection(ctx, tx, c, putConnectionSQL)
		return err
	})
	if err != nil {
		return storage.Connection{}, err
	}
	return stored, nil
}

// rewriteEvery is the time between tries to store the result of an edit.
const rewriteEvery = 200 * time.Millisecond

// errOverwritten is an error after which the result is not tried again.
var errOverwritten = &storage.UnavailableError{Reason: "another node changed the connection under the edit"}

// UpdateConnection implements storage.Connections. No transaction is open while edit runs. An edit that changes
// nothing writes nothing. The result of a successful edit is stored even when ctx has ended meanwhile: a refresh
// token that the provider has already rotated would otherwise be lost (A12). For the same reason, while the store
// does not accept a new credential, storing is tried again, under the lock, until ctx ends, if it has a deadline.
// Without the lock another node would send the token once more.
func (s connectionsStore) UpdateConnection(ctx context.Context, key storage.ConnectionKey, edit func(ctx context.Context, c *storage.Connection) error) (storage.Connection, error) {
	release, err := s.driver.LockConnection(ctx, key)
	if err != nil {
		return storage.Connection{}, err
	}
	defer release() // also when edit panics
	former, err := s.Connection(ctx, key)
	if err != nil {
		return storage.Connection{}, err
	}
	c := former
	c.SealedCredential = slices.Clone(c.SealedCredential)
	if err := edit(ctx, &c); err != nil {
		return storage.Connection{}, err
	}
	asked := ctx
	ctx = context.WithoutCancel(ctx)
	c.ConnectionKey, c.Version = former.ConnectionKey, former.Version
	if sameConnection(c, former) {
		return s.Connection(ctx, key) // it may have been deleted meanwhile
	}
	_, bounded := asked.Deadline()
	precious := bounded && c.SealedCredential != nil && !bytes.Equal(c.SealedCredential, former.SealedCredential)
	for {
		stored, err := s.storeEdited(ctx, c)
		if err == nil {
			return stored, nil
		}
		if !precious || !passes(err) {
			return storage.Connection{}, err
		}
		select {
		case <-time.After(rewriteEvery):
		case <-asked.Done():
			return storage.Connection{}, err
		}
	}
}

// passes reports whether an outage may be over soon. A store that accepts no writes stays like that until somebody
// acts.
func passes(err error) bool {
	return errors.Is(err, storage.ErrUnavailable) && !errors.Is(err, storage.ErrReadOnly) && !errors.Is(err, errOverwritten)
}

// sameConnection reports whether two states differ at most in their versions.
func sameConnection(a, b storage.Connection) bool {
	return slices.Equal(connectionContent(a), connectionContent(b)) && bytes.Equal(a.SealedCredential, b.SealedCredential)
}

// storeEdited stores the result of an edit of the version that c has, unless it is there already: the answer to an
// earlier try may have been lost.
func (s *work) storeEdited(ctx context.Context, c storage.Connection) (stored storage.Connection, err error) {
	err = s.write(ctx, c.OrganizationID, func(ctx context.Context, tx Tx) error {
		present, err := One(ctx, tx, scanConnection, connectionSQL, c.OrganizationID, c.UserID, c.ServerID)
		switch {
		case err != nil:
			return err
		case sameConnection(present, c):
			stored = present
			return nil
		case present.Version != c.Version:
			return errOverwritten
		}
		if c.SealedCredential == nil {
			if err := endCredential(ctx, tx, present, nil); err != nil {
				return err
			}
		}
		stored, err = storeConnection(ctx, tx, c, swapConnectionSQL, c.Version)
		return err
	})
	if err != nil {
		return storage.Connection{}, err
	}
	return stored, nil
}

// DeleteConnection implements storage.Connections.
func (s connectionsStore) DeleteConnection(ctx context.Context, key storage.ConnectionKey) (storage.Connection, error) {
	var former storage.Connection
	var none error
	err := s.writeExclusively(ctx, key, func(ctx context.Context, tx Tx) (err error) {
		deleted, err := tx.Exec(ctx, deleteAttemptsSQL, key.OrganizationID, key.UserID, key.ServerID)
		if err != nil {
			return err
		}
		former, err = One(ctx, tx, scanConnection, connectionSQL, key.OrganizationID, key.UserID, key.ServerID)
		if errors.Is(err, storage.ErrNotFound) {
			none = err
			if deleted == 0 {
				return nil
			}
			_, err = tx.Change(ctx, key.OrganizationID) // the attempts are gone nevertheless, and caches must not offer them
			return err
		}
		if err != nil {
			return err
		}
		if err := endCredential(ctx, tx, former, nil); err != nil {
			return err
		}
		if err := execOne(ctx, tx, deleteConnectionSQL, key.OrganizationID, key.UserID, key.ServerID); err != nil {
			return err
		}
		_, err = tx.Change(ctx, key.OrganizationID)
		return err
	})
	if err = cmp.Or(err, none); err != nil {
		return storage.Connection{}, err
	}
	return former, nil
}
