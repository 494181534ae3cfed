package records

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	taskColumns = `organization_id, server_id, user_id, agent, digest, created_at, expires_at`
	taskWhere   = ` WHERE organization_id = $1 AND server_id = $2 AND user_id = $3 AND agent = $4`
	tasksSQL    = `SELECT ` + taskColumns + ` FROM tasks` + taskWhere + ` AND expires_at > $5 ORDER BY created_at, digest`
	// Of two tasks with the same creation time the later stored one is the newer: some servers always write the same
	// time.
	formerTaskSQL = `DELETE FROM tasks WHERE organization_id = $1 AND server_id = $2 AND digest = $3 AND created_at <= $4`
	insertTaskSQL = `INSERT INTO tasks (` + taskColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`
	// The task that was just inserted stays, whatever its server's clock says.
	oldTasksSQL = `DELETE FROM tasks` + taskWhere + ` AND digest IN (SELECT digest FROM tasks` + taskWhere + ` AND digest <> $5
		ORDER BY created_at DESC, digest DESC LIMIT 9223372036854775807 OFFSET $6)`
	forgetTasksSQL = `DELETE FROM tasks WHERE expires_at <= $1`
)

func scanTask(r Row) (t storage.Task, err error) {
	err = r.Scan(&t.OrganizationID, &t.ServerID, &t.UserID, &t.Agent, &t.Digest, timeColumn{&t.CreatedAt}, timeColumn{&t.ExpiresAt})
	return t, err
}

// AddTask implements storage.Tasks. A server that does not exist violates a foreign key, which is ErrNotFound.
func (s tasksStore) AddTask(ctx context.Context, t storage.Task) error {
	created := t.CreatedAt.UnixMicro()
	return s.write(ctx, t.OrganizationID, func(ctx context.Context, tx Tx) error {
		if _, err := tx.Exec(ctx, formerTaskSQL, t.OrganizationID, t.ServerID, t.Digest, created); err != nil {
			return err
		}
		added, err := tx.Exec(ctx, insertTaskSQL, t.OrganizationID, t.ServerID, t.UserID, t.Agent, t.Digest, created, t.ExpiresAt.UnixMicro())
		if err != nil {
			return err
		}
		if added == 0 {
			return &storage.ConflictError{Field: "created_at"}
		}
		_, err = tx.Exec(ctx, oldTasksSQL, t.OrganizationID, t.ServerID, t.UserID, t.Agent, t.Digest, storage.MaxTasks-1)
		return err
	})
}

// Tasks implements storage.Tasks.
func (s tasksStore) Tasks(ctx context.Context, of storage.TaskOwner, now time.Time) (tasks []storage.Task, err error) {
	err = s.read(ctx, of.OrganizationID, func(ctx context.Context, q Querier) (err error) {
		tasks, err = Many(ctx, q, scanTask, tasksSQL, of.OrganizationID, of.ServerID, of.UserID, of.Agent, now.UnixMicro())
		return err
	})
	return tasks, err
}

// ForgetTasks implements storage.Tasks.
func (s tasksStore) ForgetTasks(ctx context.Context, now time.Time) error {
	return s.writeAcross(ctx, NoLock, func(ctx context.Context, tx Tx) error {
		_, err := tx.Exec(ctx, forgetTasksSQL, now.UnixMicro())
		return err
	})
}
