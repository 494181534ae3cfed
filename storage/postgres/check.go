package postgres

import (
	"context"

	"github.com/durward-gateway/durward/storage/records"
)

const checkSQL = `SELECT current_user, (SELECT CASE WHEN rolsuper OR rolbypassrls THEN 1 ELSE 0 END FROM pg_roles WHERE rolname = current_user),
	(SELECT COALESCE(max(reset_val), '') FROM pg_settings WHERE name = 'synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes')`

// Check looks for problems of the database and its settings. Each finding is a sentence that says what is wrong and
// how to mend it.
func (s *Store) Check(ctx context.Context) (findings []string, err error) {
	var user, commit, fsync, pages string
	var bypasses int
	err = s.read(ctx, s.main, records.Of(""), func(ctx context.Context, q records.Querier) error {
		_, err := records.One(ctx, q, func(r records.Row) (struct{}, error) {
			return struct{}{}, r.Scan(&user, &bypasses, &commit, &fsync, &pages)
		}, checkSQL)
		return err
	})
	if err != nil {
		return nil, err
	}
	if bypasses != 0 {
		findings = append(findings, "The database user "+user+" is a superuser or has BYPASSRLS, so that row-level security does not hold it: "+
			"connect as a user that only owns durward's database.")
	}
	if commit == "off" {
		findings = append(findings, "synchronous_commit is off for this database: durward switches it on for its own sessions; "+
			"set it to on, or to remote_apply with a standby.")
	}
	if fsync == "off" || pages == "off" {
		findings = append(findings, "fsync or full_page_writes is off: a crash of the server's machine can lose what was stored; switch them on.")
	}
	return findings, nil
}
