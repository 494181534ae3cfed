package records

import (
	"context"
	"errors"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	registeredClientColumns   = `id, name, auth_method, secret_hash, redirect_uris, grant_types, created_at, logged_in_at`
	registeredClientSQL       = `SELECT ` + registeredClientColumns + ` FROM registered_clients WHERE id = $1`
	insertRegisteredClientSQL = `INSERT INTO registered_clients (` + registeredClientColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	unusedClientsSQL          = `DELETE FROM registered_clients WHERE logged_in_at = $1 AND created_at <= $2`
	idleClientsSQL            = `DELETE FROM registered_clients WHERE logged_in_at > $1 AND logged_in_at <= $2`
	oldClientsSQL             = `DELETE FROM registered_clients WHERE id IN (SELECT id FROM registered_clients WHERE logged_in_at = $1
		ORDER BY created_at DESC, id DESC LIMIT 9223372036854775807 OFFSET $2)`
	clientLoggedInSQL = `UPDATE registered_clients SET logged_in_at = $2 WHERE id = $1 AND logged_in_at < $2`

	signingKeysSQL       = `SELECT id, sealed, created_at, expires_at FROM signing_keys ORDER BY created_at DESC, id DESC`
	insertSigningKeySQL  = `INSERT INTO signing_keys (id, sealed, created_at, expires_at) VALUES ($1, $2, $3, $4)`
	deleteSigningKeysSQL = `DELETE FROM signing_keys WHERE expires_at <= $1`

	useAssertionSQL     = `INSERT INTO used_assertions (issuer, id, expires_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`
	forgetAssertionsSQL = `DELETE FROM used_assertions WHERE expires_at <= $1`
)

func scanRegisteredClient(r Row) (c storage.RegisteredClient, err error) {
	err = r.Scan(&c.ID, &c.Name, &c.AuthMethod, &c.SecretHash, jsonColumn{&c.RedirectURIs}, jsonColumn{&c.GrantTypes}, timeColumn{&c.CreatedAt}, timeColumn{&c.LoggedInAt})
	return c, err
}

// RegisterClient implements storage.Clients.
func (s clientsStore) RegisterClient(ctx context.Context, c storage.RegisteredClient) error {
	addresses, err := jsonTexts(c.RedirectURIs, c.RedirectURIs...)
	if err != nil {
		return err
	}
	grants, err := jsonTexts(c.GrantTypes, c.GrantTypes...)
	if err != nil {
		return err
	}
	return s.write(ctx, "", func(ctx context.Context, tx Tx) error {
		_, unused := tx.Exec(ctx, unusedClientsSQL, never(), c.CreatedAt.Add(-storage.UnusedClientLifetime).UnixMicro())
		_, idle := tx.Exec(ctx, idleClientsSQL, never(), c.CreatedAt.Add(-storage.IdleClientLifetime).UnixMicro())
		_, old := tx.Exec(ctx, oldClientsSQL, never(), storage.MaxUnusedClients-1)
		if err := errors.Join(unused, idle, old); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, insertRegisteredClientSQL, c.ID, c.Name, c.AuthMethod, c.SecretHash, addresses, grants, c.CreatedAt.UnixMicro(), c.LoggedInAt.UnixMicro())
		return err
	})
}

// RegisteredClient implements storage.Clients.
func (s clientsStore) RegisteredClient(ctx context.Context, id string) (c storage.RegisteredClient, err error) {
	err = s.read(ctx, "", func(ctx context.Context, q Querier) (err error) {
		c, err = One(ctx, q, scanRegisteredClient, registeredClientSQL, id)
		return err
	})
	return c, err
}

// ClientLoggedIn implements storage.Clients.
func (s clientsStore) ClientLoggedIn(ctx context.Context, id string, at time.Time) error {
	return s.write(ctx, "", func(ctx context.Context, tx Tx) error {
		_, err := tx.Exec(ctx, clientLoggedInSQL, id, at.UnixMicro())
		return err
	})
}

func scanSigningKey(r Row) (k storage.SigningKey, err error) {
	err = r.Scan(&k.ID, &k.Sealed, timeColumn{&k.CreatedAt}, timeColumn{&k.ExpiresAt})
	return k, err
}

// SigningKeys implements storage.Clients.
func (s clientsStore) SigningKeys(ctx context.Context) (keys []storage.SigningKey, err error) {
	err = s.readToAuthenticate(ctx, Of(""), func(ctx context.Context, q Querier) (err error) {
		keys, err = Many(ctx, q, scanSigningKey, signingKeysSQL)
		return err
	})
	return keys, err
}

// AddSigningKey implements storage.Clients.
func (s clientsStore) AddSigningKey(ctx context.Context, k storage.SigningKey, newest string) error {
	return s.write(ctx, "", func(ctx context.Context, tx Tx) error {
		last, err := One(ctx, tx, scanSigningKey, signingKeysSQL)
		switch {
		case err != nil && !errors.Is(err, storage.ErrNotFound):
			return err
		case last.ID != newest:
			return &storage.ConflictError{Field: "id"}
		}
		if _, err := tx.Exec(ctx, deleteSigningKeysSQL, k.CreatedAt.UnixMicro()); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, insertSigningKeySQL, k.ID, k.Sealed, k.CreatedAt.UnixMicro(), k.ExpiresAt.UnixMicro())
		return err
	})
}

// UseAssertion implements storage.Clients.
func (s clientsStore) UseAssertion(ctx context.Context, issuer, id string, now, expires time.Time) error {
	var added int64
	err := s.write(ctx, "", func(ctx context.Context, tx Tx) (err error) {
		if _, err := tx.Exec(ctx, forgetAssertionsSQL, now.UnixMicro()); err != nil {
			return err
		}
		added, err = tx.Exec(ctx, useAssertionSQL, issuer, id, expires.UnixMicro())
		return err
	})
	if err == nil && added == 0 {
		return storage.ErrReplayed
	}
	return err
}
