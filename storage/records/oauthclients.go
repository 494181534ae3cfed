package records

import (
	"context"

	"github.com/durward-gateway/durward/storage"
)

const (
	oauthClientColumns = `organization_id, server_id, issuer, client_id, sealed_secret, auth_method, kind, redirect_uri, endpoints,
		scopes, issuer_in_response, created_at, secret_expires_at, refresh_resource_off, refused`
	oauthClientSQL       = `SELECT ` + oauthClientColumns + ` FROM oauth_clients WHERE organization_id = $1 AND server_id = $2`
	insertOAuthClientSQL = `INSERT INTO oauth_clients (` + oauthClientColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
		ON CONFLICT (organization_id, server_id) DO NOTHING`
	swapOAuthClientSQL = `UPDATE oauth_clients SET issuer = $3, client_id = $4, sealed_secret = $5, auth_method = $6, kind = $7,
		redirect_uri = $8, endpoints = $9, scopes = $10, issuer_in_response = $11, created_at = $12,
		secret_expires_at = $13, refresh_resource_off = $14, refused = $15
		WHERE organization_id = $1 AND server_id = $2 AND client_id = $16`
	deleteOAuthClientSQL = `DELETE FROM oauth_clients WHERE organization_id = $1 AND server_id = $2`
)

// learned holds the facts learned from the server: the JSON of the column endpoints.
type learned struct {
	storage.OAuthEndpoints
	Origin string `json:"origin,omitempty"`
}

func scanOAuthClient(r Row) (c storage.OAuthClient, err error) {
	var l learned
	err = r.Scan(&c.OrganizationID, &c.ServerID, &c.Issuer, &c.ClientID, &c.SealedSecret, &c.AuthMethod, &c.Kind, &c.RedirectURI,
		jsonColumn{&l}, jsonColumn{&c.Scopes}, flagColumn{&c.IssuerInResponse}, timeColumn{&c.CreatedAt},
		timeColumn{&c.SecretExpiresAt}, flagColumn{&c.RefreshResourceOff}, flagColumn{&c.Refused})
	c.Endpoints, c.Origin = l.OAuthEndpoints, l.Origin
	return c, err
}

// OAuthClient implements storage.Servers.
func (s serversStore) OAuthClient(ctx context.Context, organization, serverID string) (c storage.OAuthClient, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		c, err = One(ctx, q, scanOAuthClient, oauthClientSQL, organization, serverID)
		return err
	})
	return c, err
}

// PutOAuthClient implements storage.Servers.
func (s serversStore) PutOAuthClient(ctx context.Context, c storage.OAuthClient, former string) error {
	args := []any{c.OrganizationID, c.ServerID, c.Issuer, c.ClientID, c.SealedSecret, c.AuthMethod, c.Kind, c.RedirectURI,
		jsonText(learned{c.Endpoints, c.Origin}), jsonText(c.Scopes), boolean(c.IssuerInResponse), c.CreatedAt.UnixMicro(),
		c.SecretExpiresAt.UnixMicro(), boolean(c.RefreshResourceOff), boolean(c.Refused)}
	return s.write(ctx, c.OrganizationID, func(ctx context.Context, tx Tx) (err error) {
		var n int64
		if former == "" {
			n, err = tx.Exec(ctx, insertOAuthClientSQL, args...) // another organization's server violates the foreign key: ErrNotFound
		} else {
			n, err = tx.Exec(ctx, swapOAuthClientSQL, append(args, former)...)
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return &storage.ConflictError{Field: "client_id"}
		}
		_, err = tx.Change(ctx, c.OrganizationID)
		return err
	})
}

// forgetOAuthClient deletes the client of a server, if there is one. The caller reports the change.
func forgetOAuthClient(ctx context.Context, tx Tx, organization, serverID string) (forgot bool, err error) {
	n, err := tx.Exec(ctx, deleteOAuthClientSQL, organization, serverID)
	return n > 0, err
}
