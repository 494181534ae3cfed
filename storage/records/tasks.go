package records

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	taskWhere     = ` WHERE organization_id = $1 AND server_id = $2 AND user_id = $3 AND agent = $4`
	tasksSQL      = `SELECT digest FROM tasks` + taskWhere + ` AND expires_at > $5 ORDER BY created_at, digest`
	insertTaskSQL = `INSERT INTO tasks (organization_id, server_id, user_id, agent, digest, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (organization_id, server_id, user_id, agent, digest) DO UPDATE SET created_at = excluded.created_at, expires_at = excluded.expires_at`
	oldTasksSQL = `DELETE FROM tasks` + taskWhere + ` AND digest IN (SELECT digest FROM tasks` + taskWhere + `
		ORDER BY created_at DESC, digest DESC LIMIT 9223372036854775807 OFFSET $5)`
)

func (t *texts) tasks(d Dialect) {
	t.forgetTasks = `DELETE FROM tasks WHERE expires_at <= $1` + d.OnlyOwn
}

// AddTask implements storage.Tasks. A server that is not there fails a foreign key, which is ErrNotFound.
func (s *Store) AddTask(ctx context.Context, t storage.Task) error {
	return s.write(ctx, t.OrganizationID, func(ctx context.Context, tx Tx) error {
		if _, err := tx.Exec(ctx, s.texts.forgetTasks, t.CreatedAt.UnixMicro(), t.OrganizationID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, insertTaskSQL, t.OrganizationID, t.ServerID, t.UserID, t.Agent, t.Digest, t.CreatedAt.UnixMicro(), t.ExpiresAt.UnixMicro()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, oldTasksSQL, t.OrganizationID, t.ServerID, t.UserID, t.Agent, storage.MaxTasks)
		return err
	})
}

// Tasks implements storage.Tasks.
func (s *Store) Tasks(ctx context.Context, of storage.TaskOwner, now time.Time) (digests []string, err error) {
	err = s.read(ctx, of.OrganizationID, func(ctx context.Context, q Querier) (err error) {
		digests, err = Many(ctx, q, func(r Row) (digest string, err error) { return digest, r.Scan(&digest) },
			tasksSQL, of.OrganizationID, of.ServerID, of.UserID, of.Agent, now.UnixMicro())
		return err
	})
	return digests, err
}
