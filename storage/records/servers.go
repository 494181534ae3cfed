package records

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	serverColumns = `s.id, s.organization_id, s.name, s.slug, s.directory_id, s.status, s.client_id, s.sealed_client_secret,
		s.meta, s.created_by, s.created_at, s.updated_at, s.last_seen_at, s.last_error, s.modern`

	serverSelect    = `SELECT ` + serverColumns + `, ` + entryColumns + ` FROM servers s JOIN directory_entries e ON e.id = s.directory_id`
	serverSQL       = serverSelect + ` WHERE s.organization_id = $1 AND s.id = $2`
	serverBySlugSQL = serverSelect + ` WHERE s.organization_id = $1 AND s.slug = $2`
	serverExistsSQL = `SELECT 1 FROM servers WHERE organization_id = $1 AND id = $2`

	insertServerSQL = `INSERT INTO servers (id, organization_id, created_by, created_at, updated_at, name, name_key, name_lower,
			slug, slug_lower, directory_id, status, client_id, meta, sealed_client_secret)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`
	updateServerSQL = `UPDATE servers SET created_by = $3, created_at = $4, updated_at = $5, name = $6, name_key = $7,
			name_lower = $8, slug = $9, slug_lower = $10, directory_id = $11, status = $12, client_id = $13, meta = $14,
			sealed_client_secret = $15
		WHERE id = $1 AND organization_id = $2`
	noteServerSQL = `UPDATE servers SET last_seen_at = CASE WHEN last_seen_at < $3 THEN $3 ELSE last_seen_at END, last_error = $4
		WHERE organization_id = $1 AND id = $2`
	noteModernSQL   = `UPDATE servers SET modern = $3 WHERE organization_id = $1 AND id = $2`
	deleteServerSQL = `DELETE FROM servers WHERE organization_id = $1 AND id = $2`

	// connectionStatusSQL is the only derivation of a connection's status; lists, filters and single rows all use it.
	// It needs servers s, directory_entries e and the user's connections c, the user $2 and the time $3.
	connectionStatusSQL = `CASE
			WHEN s.status <> 'active' THEN 'pending'
			WHEN e.requires_auth = 0 OR e.provider IN ('none', 'token_exchange', 'client_credentials', 'workload_identity') OR c.status = 'connected' THEN 'connected'
			WHEN EXISTS (SELECT 1 FROM attempts a WHERE a.organization_id = s.organization_id AND a.user_id = $2
				AND a.server_id = s.id AND a.expires_at > $3) THEN 'pending'
			WHEN c.status = 'error' THEN 'error'
			ELSE 'available' END`
)

func (t *texts) views(d Dialect) {
	// The word lists have a fixed number of places so that the text is constant; $7 and $11 say whether they narrow.
	views := `(SELECT s.id, s.name_key, ` + connectionStatusSQL + ` AS connection_status
		FROM servers s JOIN directory_entries e ON e.id = s.directory_id
		LEFT JOIN connections c ON c.organization_id = s.organization_id AND c.user_id = $2 AND c.server_id = s.id
		WHERE s.organization_id = $1
			AND ($4 = '' OR s.id = $4) AND ($5 = '' OR s.slug = $5)
			AND ($6 = '' OR ` + d.has(`s.name_lower`, `$6`) + ` OR ` + d.has(`s.slug_lower`, `$6`) + `)
			AND ($7 = 0 OR s.status IN ($8, $9, $10))) v`
	where := ` WHERE ($11 = 0 OR v.connection_status IN ($12, $13, $14, $15))`
	t.countViews = `SELECT count(*) FROM ` + views + where
	t.listViews = `SELECT ` + serverColumns + `, ` + entryColumns + `, v.connection_status FROM ` + views + `
		JOIN servers s ON s.id = v.id JOIN directory_entries e ON e.id = s.directory_id` + where + `
		ORDER BY v.name_key, v.id LIMIT $16 OFFSET $17`
}

func serverFields(v *storage.Server) []any {
	return append([]any{&v.ID, &v.OrganizationID, &v.Name, &v.Slug, &v.DirectoryID, &v.Status, &v.ClientID,
		&v.SealedClientSecret, rawColumn{&v.Meta}, &v.CreatedBy, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
		timeColumn{&v.LastSeenAt}, &v.LastError, flagColumn{&v.Modern}},
		entryFields(&v.Entry)...)
}

func scanServer(r Row) (v storage.Server, err error) {
	err = r.Scan(serverFields(&v)...)
	return v, err
}

func scanView(r Row) (v storage.ServerView, err error) {
	err = r.Scan(append(serverFields(&v.Server), &v.ConnectionStatus)...)
	return v, err
}

// serverContent returns the members that an edit may change, in the order of insertServerSQL, without the sealed
// secret. All values are comparable.
func serverContent(v storage.Server) []any {
	return []any{v.CreatedBy, v.CreatedAt.UnixMicro(), v.UpdatedAt.UnixMicro(), v.Name, nameKey(v.Name), strings.ToLower(v.Name),
		v.Slug, strings.ToLower(v.Slug), v.DirectoryID, string(v.Status), v.ClientID, string(v.Meta)}
}

func serverArgs(v storage.Server) []any {
	return append(append([]any{v.ID, v.OrganizationID}, serverContent(v)...), v.SealedClientSecret)
}

// checkEntryVisible returns ErrNotFound when the organization does not see the server's directory entry.
func checkEntryVisible(ctx context.Context, q Querier, v storage.Server) error {
	_, err := One(ctx, q, scanEntry, visibleEntrySQL, v.OrganizationID, v.DirectoryID)
	return err
}

// CreateServer implements storage.Servers.
func (s serversStore) CreateServer(ctx context.Context, v storage.Server) error {
	return s.write(ctx, v.OrganizationID, func(ctx context.Context, tx Tx) error {
		if err := checkEntryVisible(ctx, tx, v); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, insertServerSQL, serverArgs(v)...); err != nil {
			return err
		}
		_, err := tx.Change(ctx, v.OrganizationID)
		return err
	})
}

// Servers implements storage.Servers.
func (s serversStore) Servers(ctx context.Context, f storage.ServerFilter) (page storage.Page[storage.ServerView], err error) {
	var status [3]string
	var connection [4]string
	places(status[:], f.Status, storage.ServerPending, storage.ServerActive, storage.ServerError)
	places(connection[:], f.ConnectionStatuses, storage.ConnectionAvailable, storage.ConnectionPending, storage.ConnectionConnected, storage.ConnectionError)
	args := []any{f.OrganizationID, f.UserID, f.Now.UnixMicro(), f.ID, f.Slug, strings.ToLower(f.Search),
		len(f.Status), status[0], status[1], status[2],
		len(f.ConnectionStatuses), connection[0], connection[1], connection[2], connection[3]}
	limit, offset := window(f.Page)
	err = s.readSnapshot(ctx, f.OrganizationID, func(ctx context.Context, q Querier) (err error) {
		if page.Total, err = One(ctx, q, ScanInt, s.texts.countViews, args...); err != nil {
			return err
		}
		page.Items, err = Many(ctx, q, scanView, s.texts.listViews, append(args, limit, offset)...)
		return err
	})
	return page, err
}

// places puts the wanted ones of the known words into their places. Unknown words match nothing.
func places[T ~string](to []string, wanted []T, known ...T) {
	for i, word := range known {
		if slices.Contains(wanted, word) {
			to[i] = string(word)
		}
	}
}

// Server implements storage.Servers.
func (s serversStore) Server(ctx context.Context, organization, id string) (v storage.Server, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		v, err = One(ctx, q, scanServer, serverSQL, organization, id)
		return err
	})
	return v, err
}

// ServerBySlug implements storage.Servers.
func (s serversStore) ServerBySlug(ctx context.Context, organization, slug string) (v storage.Server, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		v, err = One(ctx, q, scanServer, serverBySlugSQL, organization, slug)
		return err
	})
	return v, err
}

// UpdateServer implements storage.Servers.
func (s serversStore) UpdateServer(ctx context.Context, organization, id string, edit func(*storage.Server) error) (storage.Server, error) {
	return s.UpdateServerAndClient(ctx, organization, id, func(v *storage.Server) (bool, error) { return false, edit(v) })
}

// UpdateServerAndClient implements storage.Servers. Id, organization, creator and creation time do not change.
func (s serversStore) UpdateServerAndClient(ctx context.Context, organization, id string, edit func(*storage.Server) (bool, error)) (storage.Server, error) {
	var v storage.Server
	err := s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		former, err := One(ctx, tx, scanServer, serverSQL, organization, id)
		if err != nil {
			return err
		}
		v = former
		v.Meta, v.SealedClientSecret = slices.Clone(v.Meta), slices.Clone(v.SealedClientSecret)
		forget := false
		if err := tx.Edit(func() (err error) {
			forget, err = edit(&v)
			return err
		}); err != nil {
			return err
		}
		if forget {
			if forget, err = forgetOAuthClient(ctx, tx, organization, id); err != nil {
				return err
			}
		}
		v.ID, v.OrganizationID, v.CreatedBy, v.CreatedAt = former.ID, former.OrganizationID, former.CreatedBy, former.CreatedAt
		v.LastSeenAt, v.LastError, v.Modern = former.LastSeenAt, former.LastError, former.Modern
		v.UpdatedAt = v.UpdatedAt.UTC().Truncate(time.Microsecond)
		if slices.Equal(serverContent(former), serverContent(v)) && bytes.Equal(former.SealedClientSecret, v.SealedClientSecret) {
			v.Entry = former.Entry
			if forget {
				_, err = tx.Change(ctx, organization)
			}
			return err
		}
		if v.DirectoryID != former.DirectoryID {
			if err := checkEntryVisible(ctx, tx, v); err != nil {
				return err
			}
		}
		if err := execOne(ctx, tx, updateServerSQL, serverArgs(v)...); err != nil {
			return err
		}
		if v, err = One(ctx, tx, scanServer, serverSQL, organization, id); err != nil {
			return err
		}
		_, err = tx.Change(ctx, organization)
		return err
	})
	if err != nil {
		return storage.Server{}, err
	}
	return v, nil
}

// NoteServer implements storage.Servers.
func (s serversStore) NoteServer(ctx context.Context, organization, id string, seen time.Time, problem string) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		_, err := tx.Exec(ctx, noteServerSQL, organization, id, seen.UnixMicro(), problem)
		return err
	})
}

// NoteModern implements storage.Servers.
func (s serversStore) NoteModern(ctx context.Context, organization, id string, modern bool) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		_, err := tx.Exec(ctx, noteModernSQL, organization, id, boolean(modern))
		return err
	})
}

// DeleteServer implements storage.Servers. It does not wait for edits of the server's connections: they find theirs
// deleted.
func (s serversStore) DeleteServer(ctx context.Context, organization, id, by string, now time.Time) (storage.DeletedServer, error) {
	var d storage.DeletedServer
	err := s.write(ctx, organization, func(ctx context.Context, tx Tx) (err error) {
		d = storage.DeletedServer{}
		if d.Server, err = One(ctx, tx, scanServer, serverSQL, organization, id); err != nil {
			return err
		}
		if d.Connections, err = Many(ctx, tx, scanConnection, connectionsOfServerSQL, organization, id); err != nil {
			return fmt.Errorf("reading the server's connections: %w", err)
		}
		client, err := One(ctx, tx, scanOAuthClient, oauthClientSQL, organization, id)
		if err == nil {
			d.Client = &client
		} else if !errors.Is(err, storage.ErrNotFound) {
			return fmt.Errorf("reading the server's OAuth client: %w", err)
		}
		for _, c := range d.Connections {
			if err := endedCredential(ctx, tx, storage.Ended{Former: c, Server: d.Server, Client: d.Client}); err != nil {
				return err
			}
		}
		if err := archivePolicies(ctx, tx, organization, id, by, now); err != nil {
			return fmt.Errorf("archiving the server's policies: %w", err)
		}
		if err := execOne(ctx, tx, deleteServerSQL, organization, id); err != nil { // foreign keys delete the rest
			return err
		}
		if _, err := tx.Exec(ctx, dropOwnUnusedSQL, d.Server.DirectoryID, organization); err != nil {
			return err
		}
		_, err = tx.Change(ctx, organization)
		return err
	})
	if err != nil {
		return storage.DeletedServer{}, err
	}
	return d, nil
}
