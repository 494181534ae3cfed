package records

import (
	"context"

	"github.com/durward-gateway/durward/storage"
)

const (
	oauthClientColumns = `organization_id, server_id, issuer, client_id, sealed_secret, auth_method, kind, redirect_uri, endpoints,
		scopes, issuer_in_response, created_at`
	oauthClientSQL    = `SELECT ` + oauthClientColumns + ` FROM oauth_clients WHERE organization_id = $1 AND server_id = $2`
	putOAuthClientSQL = `INSERT INTO oauth_clients (` + oauthClientColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (organization_id, server_id) DO UPDATE SET issuer = excluded.issuer, client_id = excluded.client_id,
			sealed_secret = excluded.sealed_secret, auth_method = excluded.auth_method, kind = excluded.kind,
			redirect_uri = excluded.redirect_uri, endpoints = excluded.endpoints, scopes = excluded.scopes,
			issuer_in_response = excluded.issuer_in_response, created_at = excluded.created_at`
	deleteOAuthClientSQL = `DELETE FROM oauth_clients WHERE organization_id = $1 AND server_id = $2`
)

func scanOAuthClient(r Row) (c storage.OAuthClient, err error) {
	err = r.Scan(&c.OrganizationID, &c.ServerID, &c.Issuer, &c.ClientID, &c.SealedSecret, &c.AuthMethod, &c.Kind, &c.RedirectURI,
		jsonColumn{&c.Endpoints}, jsonColumn{&c.Scopes}, flagColumn{&c.IssuerInResponse}, timeColumn{&c.CreatedAt})
	return c, err
}

// OAuthClient implements storage.Servers.
func (s *Store) OAuthClient(ctx context.Context, organization, serverID string) (c storage.OAuthClient, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		c, err = One(ctx, q, scanOAuthClient, oauthClientSQL, organization, serverID)
		return err
	})
	return c, err
}

// PutOAuthClient implements storage.Servers.
func (s *Store) PutOAuthClient(ctx context.Context, c storage.OAuthClient) error {
	return s.write(ctx, c.OrganizationID, func(ctx context.Context, tx Tx) error {
		// A server of another organization fails the foreign key, which is ErrNotFound.
		if _, err := tx.Exec(ctx, putOAuthClientSQL, c.OrganizationID, c.ServerID, c.Issuer, c.ClientID, c.SealedSecret,
			c.AuthMethod, c.Kind, c.RedirectURI, jsonText(c.Endpoints), jsonText(c.Scopes), boolean(c.IssuerInResponse),
			c.CreatedAt.UnixMicro()); err != nil {
			return err
		}
		_, err := tx.Change(ctx, c.OrganizationID)
		return err
	})
}

// DeleteOAuthClient implements storage.Servers.
func (s *Store) DeleteOAuthClient(ctx context.Context, organization, serverID string) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		n, err := tx.Exec(ctx, deleteOAuthClientSQL, organization, serverID)
		if err == nil && n > 0 {
			_, err = tx.Change(ctx, organization)
		}
		return err
	})
}
