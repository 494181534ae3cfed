package records

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	approvalColumns = `id, organization_id, user_id, COALESCE(agent_id, ''), client, server_id, tool, binding, arguments_digest,
		sealed_arguments, policy_id, policy_revision, rule, channel, status, expires_at, created_at, decided_at, decided_via,
		decided_by, decided_client, used_at, approvers`
	approvalSelect = `SELECT ` + approvalColumns + ` FROM approvals`
	approvalSQL    = approvalSelect + ` WHERE organization_id = $1 AND id = $2`

	approvalStatusSQL = `SELECT status, channel, expires_at FROM approvals WHERE organization_id = $1 AND id = $2`

	// A node that knows no approvers may have let the user decide; that is no decision.
	openApprovalWhere = ` WHERE organization_id = $1 AND user_id = $2 AND binding = $3 AND expires_at > $4 AND (approvers = '' OR decided_by <> user_id)`
	// An approved one comes before a pending one: then the user need not be asked again.
	openApprovalSQL = approvalSelect + openApprovalWhere + ` AND status IN ('pending', 'approved') ORDER BY status, expires_at DESC, id LIMIT 1`
	takeableSQL     = approvalSelect + openApprovalWhere + ` AND status = 'approved' AND ($5 = '' OR id = $5) ORDER BY expires_at, id LIMIT 1`
	countPendingSQL = `SELECT count(*) FROM approvals WHERE organization_id = $1 AND user_id = $2 AND client = $3 AND status = 'pending' AND expires_at > $4`
	countAskedSQL   = `SELECT count(*) FROM approvals WHERE organization_id = $1 AND user_id = $2 AND client = $3 AND created_at > $4 AND decided_at <> created_at`
	// Arguments of a call that can no longer be decided on or made must not be read, and users must not fill the
	// store with them.
	dropArgumentsSQL = `UPDATE approvals SET sealed_arguments = NULL
		WHERE organization_id = $1 AND user_id = $2 AND expires_at <= $3 AND sealed_arguments IS NOT NULL`
	insertApprovalSQL = `INSERT INTO approvals (id, organization_id, user_id, agent_id, client, server_id, tool, binding,
			arguments_digest, sealed_arguments, policy_id, policy_revision, rule, channel, status, expires_at, created_at,
			decided_at, decided_via, decided_by, decided_client, used_at, approvers)
		VALUES ($1, $2, $3, NULLIF($4, ''), $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'pending', $15, $16, $17, '', '', '', $17, $18)`
	foreignApprovalsSQL = `SELECT id, user_id, approvers FROM approvals
		WHERE organization_id = $1 AND status = 'pending' AND approvers <> '' AND expires_at > $2 ORDER BY created_at DESC, id DESC`
	decideApprovalSQL = `UPDATE approvals SET status = $4, expires_at = $5, decided_at = $3, decided_via = $6, decided_by = $7, decided_client = $8,
			sealed_arguments = CASE WHEN $4 = 'approved' THEN sealed_arguments END
		WHERE organization_id = $1 AND id = $2 AND status = 'pending' AND expires_at > $3`
	divertApprovalSQL = `UPDATE approvals SET channel = 'out_of_band'
		WHERE organization_id = $1 AND id = $2 AND user_id = $3 AND status = 'pending' AND expires_at > $4`
	useApprovalSQL = `UPDATE approvals SET status = 'used', used_at = $3, sealed_arguments = NULL
		WHERE organization_id = $1 AND id = $2 AND status = 'approved' AND expires_at > $3`
	endApprovalsOfUserSQL = `DELETE FROM approvals WHERE organization_id = $1 AND user_id = $2 AND status IN ('pending', 'approved')`

	// The statuses have fixed places; $3 is the time, $4 says whether they narrow.
	approvalsWhere = ` WHERE organization_id = $1 AND ($2 = '' OR user_id = $2) AND ($4 = 0 OR
		CASE WHEN status IN ('pending', 'approved') AND expires_at <= $3 THEN 'expired' ELSE status END IN ($5, $6, $7, $8, $9))`
	countApprovalsSQL = `SELECT count(*) FROM approvals` + approvalsWhere
	listApprovalsSQL  = approvalSelect + approvalsWhere + ` ORDER BY created_at DESC, id DESC LIMIT $10 OFFSET $11`
)

func (t *texts) approvals(d Dialect) {
	t.forgetOver = `DELETE FROM approvals WHERE expires_at <= $1` + d.OnlyOwn
}

// approvalKept is the time for which an approval can be read after its time is over.
const approvalKept = 24 * time.Hour

// scanApprovalAt reads approvals with their status at a time.
func scanApprovalAt(now time.Time) func(Row) (storage.Approval, error) {
	return func(r Row) (a storage.Approval, err error) {
		err = r.Scan(&a.ID, &a.OrganizationID, &a.UserID, &a.AgentID, &a.Client, &a.ServerID, &a.Tool, &a.Binding, &a.ArgumentsDigest,
			&a.SealedArguments, &a.PolicyID, &a.PolicyRevision, &a.Rule, &a.Channel, &a.Status, timeColumn{&a.ExpiresAt},
			timeColumn{&a.CreatedAt}, timeColumn{&a.DecidedAt}, &a.DecidedVia, &a.DecidedBy, &a.DecidedClient, timeColumn{&a.UsedAt}, approversColumn{&a.Approvers})
		a.Status = statusAt(a.Status, a.ExpiresAt, now)
		return a, err
	}
}

// statusAt returns the status of an approval at a time. kept is the stored status.
func statusAt(kept storage.ApprovalStatus, expires, now time.Time) storage.ApprovalStatus {
	if (kept == storage.ApprovalPending || kept == storage.ApprovalApproved) && !expires.After(now) {
		return storage.ApprovalExpired
	}
	return kept
}

// CreateApproval implements storage.Approvals. A server, user or agent that does not exist violates a foreign key,
// which is ErrNotFound.
func (s approvalsStore) CreateApproval(ctx context.Context, a storage.Approval, limits storage.AskLimits) (stored storage.Approval, err error) {
	scan, now := scanApprovalAt(a.CreatedAt), a.CreatedAt.UnixMicro()
	approvers, err := approversText(a.Approvers)
	if err != nil {
		return storage.Approval{}, err
	}
	err = s.write(ctx, a.OrganizationID, func(ctx context.Context, tx Tx) error {
		open, err := Many(ctx, tx, scan, openApprovalSQL, a.OrganizationID, a.UserID, a.Binding, now)
		if err != nil {
			return err
		}
		if len(open) > 0 {
			stored = open[0]
			return nil
		}
		if err := withinLimits(ctx, tx, &a, limits); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, dropArgumentsSQL, a.OrganizationID, a.UserID, now); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, s.texts.forgetOver, a.CreatedAt.Add(-approvalKept).UnixMicro(), a.OrganizationID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, insertApprovalSQL, a.ID, a.OrganizationID, a.UserID, a.AgentID, a.Client, a.ServerID, a.Tool,
			a.Binding, a.ArgumentsDigest, a.SealedArguments, a.PolicyID, a.PolicyRevision, a.Rule, a.Channel, a.ExpiresAt.UnixMicro(),
			now, never(), approvers); err != nil {
			return err
		}
		if stored, err = One(ctx, tx, scan, approvalSQL, a.OrganizationID, a.ID); err != nil {
			return err
		}
		return s.announce(ctx, tx, stored, a.CreatedAt)
	})
	if err != nil {
		return storage.Approval{}, err
	}
	return stored, nil
}

func withinLimits(ctx context.Context, tx Tx, a *storage.Approval, limits storage.AskLimits) error {
	if limits.Pending > 0 {
		pending, err := One(ctx, tx, ScanInt, countPendingSQL, a.OrganizationID, a.UserID, a.Client, a.CreatedAt.UnixMicro())
		if err != nil {
			return err
		}
		if pending >= limits.Pending {
			return storage.ErrTooManyPending
		}
	}
	if limits.Asked > 0 {
		asked, err := One(ctx, tx, ScanInt, countAskedSQL, a.OrganizationID, a.UserID, a.Client, limits.Since.UnixMicro())
		if err != nil {
			return err
		}
		if asked >= limits.Asked {
			return storage.ErrTooManyAsked
		}
	}
	return nil
}

// ApprovalStatus implements storage.Approvals.
func (s approvalsStore) ApprovalStatus(ctx context.Context, organization, id string, now time.Time) (status storage.ApprovalStatus, channel storage.ApprovalChannel, err error) {
	var expires time.Time
	scan := func(r Row) (kept storage.ApprovalStatus, err error) {
		err = r.Scan(&kept, &channel, timeColumn{&expires})
		return statusAt(kept, expires, now), err
	}
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		status, err = One(ctx, q, scan, approvalStatusSQL, organization, id)
		return err
	})
	return status, channel, err
}

// Approval implements storage.Approvals.
func (s approvalsStore) Approval(ctx context.Context, organization, id string, now time.Time) (a storage.Approval, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		a, err = One(ctx, q, scanApprovalAt(now), approvalSQL, organization, id)
		return err
	})
	return a, err
}

// Approvals implements storage.Approvals.
func (s approvalsStore) Approvals(ctx context.Context, f storage.ApprovalFilter) (page storage.Page[storage.Approval], err error) {
	var status [5]string
	places(status[:], f.Status, storage.ApprovalPending, storage.ApprovalApproved, storage.ApprovalDenied, storage.ApprovalExpired, storage.ApprovalUsed)
	args := []any{f.OrganizationID, f.UserID, f.Now.UnixMicro(), len(f.Status), status[0], status[1], status[2], status[3], status[4]}
	limit, offset := window(f.Page)
	err = s.readSnapshot(ctx, f.OrganizationID, func(ctx context.Context, q Querier) (err error) {
		if page.Total, err = One(ctx, q, ScanInt, countApprovalsSQL, args...); err != nil {
			return err
		}
		page.Items, err = Many(ctx, q, scanApprovalAt(f.Now), listApprovalsSQL, append(args, limit, offset)...)
		return err
	})
	return page, err
}

// ForeignApprovals implements storage.Approvals.
func (s approvalsStore) ForeignApprovals(ctx context.Context, organization string, now time.Time) (all []storage.ForeignApproval, err error) {
	scan := func(r Row) (f storage.ForeignApproval, err error) {
		err = r.Scan(&f.ID, &f.UserID, approversColumn{&f.Approvers})
		return f, err
	}
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		all, err = Many(ctx, q, scan, foreignApprovalsSQL, organization, now.UnixMicro())
		return err
	})
	return all, err
}

// DecideApproval implements storage.Approvals.
func (s approvalsStore) DecideApproval(ctx context.Context, organization, id string, d storage.ApprovalDecision) (a storage.Approval, err error) {
	scan := scanApprovalAt(d.At)
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) (err error) {
		if a, err = One(ctx, tx, scan, approvalSQL, organization, id); err != nil {
			return err
		}
		if own := a.UserID == d.UserID; own == (len(a.Approvers) > 0) {
			return storage.ErrNotFound
		}
		if a.Status != storage.ApprovalPending {
			return &storage.ConflictError{Field: "status"}
		}
		status, expires := storage.ApprovalDenied, a.ExpiresAt
		if d.Approve {
			status, expires = storage.ApprovalApproved, d.ExpiresAt
		}
		if err := execOne(ctx, tx, decideApprovalSQL, organization, id, d.At.UnixMicro(), status, expires.UnixMicro(), d.Via, d.UserID, d.Client); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, cancelExpirySQL, organization, id); err != nil {
			return err
		}
		if a, err = One(ctx, tx, scan, approvalSQL, organization, id); err != nil {
			return err
		}
		return s.announce(ctx, tx, a, d.At)
	})
	if err != nil {
		return storage.Approval{}, err
	}
	return a, nil
}

// DivertApproval implements storage.Approvals.
func (s approvalsStore) DivertApproval(ctx context.Context, organization, userID, id string, now time.Time) (a storage.Approval, err error) {
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) (err error) {
		// The read comes first: no approval has an id that the database cannot store, for which a write would be
		// refused.
		if a, err = One(ctx, tx, scanApprovalAt(now), approvalSQL, organization, id); err != nil {
			return err
		}
		if a.UserID != userID {
			return storage.ErrNotFound
		}
		if _, err := tx.Exec(ctx, divertApprovalSQL, organization, id, userID, now.UnixMicro()); err != nil {
			return err
		}
		a, err = One(ctx, tx, scanApprovalAt(now), approvalSQL, organization, id)
		return err
	})
	if err != nil {
		return storage.Approval{}, err
	}
	return a, nil
}

// TakeApproval implements storage.Approvals. A call without an approval is refused by a read: such calls do not queue
// before the writers.
func (s approvalsStore) TakeApproval(ctx context.Context, organization, userID, id string, binding []byte, now time.Time) (a storage.Approval, err error) {
	scan, args := scanApprovalAt(now), []any{organization, userID, binding, now.UnixMicro(), id}
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		a, err = One(ctx, q, scan, takeableSQL, args...)
		return err
	})
	if err != nil {
		return storage.Approval{}, err
	}
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) (err error) {
		if a, err = One(ctx, tx, scan, takeableSQL, args...); err != nil {
			return err
		}
		if err := execOne(ctx, tx, useApprovalSQL, organization, a.ID, now.UnixMicro()); err != nil {
			return err
		}
		a, err = One(ctx, tx, scan, approvalSQL, organization, a.ID)
		return err
	})
	if err != nil {
		return storage.Approval{}, err
	}
	return a, nil
}
