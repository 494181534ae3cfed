package records

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	beginAuditHeadSQL = `INSERT INTO audit_heads (organization_id, node, segment, sequence, hash) VALUES ($1, $2, $3, 0, $4)
		ON CONFLICT (organization_id, node, segment) DO NOTHING`
	putAuditHeadSQL = `INSERT INTO audit_heads (` + auditHeadColumns + `) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (organization_id, node, segment) DO UPDATE SET sequence = excluded.sequence, hash = excluded.hash, mac = excluded.mac`
	auditHeadColumns     = `organization_id, node, segment, sequence, hash, mac`
	auditRecordColumns   = `organization_id, node, segment, sequence, text, previous, hash, at, mac`
	insertAuditRecordSQL = `INSERT INTO audit_records (` + auditRecordColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (organization_id, node, segment, sequence) DO NOTHING`
	listAuditRecordsSQL = `SELECT ` + auditRecordColumns + ` FROM audit_records WHERE organization_id = $1 AND at >= $2 AND at < $3
		ORDER BY at DESC, node, segment, sequence DESC LIMIT $4`
	// Somebody may have added records without the end of their chain. A verification, which asks for all nodes, must see them.
	auditChainsSQL = `SELECT ` + auditHeadColumns + ` FROM audit_heads WHERE $1 = '' OR node = $1
		UNION ALL SELECT organization_id, node, segment, max(last), NULL, NULL FROM audit_chunks WHERE $1 = '' OR node = $1
			GROUP BY organization_id, node, segment
		UNION ALL SELECT organization_id, node, segment, 0, NULL, NULL FROM audit_records r WHERE $1 = '' AND NOT EXISTS
			(SELECT 1 FROM audit_heads h WHERE h.organization_id = r.organization_id AND h.node = r.node AND h.segment = r.segment)
			GROUP BY organization_id, node, segment
		ORDER BY 1, 2, 3`

	auditChunkColumns   = `organization_id, node, segment, first, last, from_at, to_at, data, mac`
	insertAuditChunkSQL = `INSERT INTO audit_chunks (` + auditChunkColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (organization_id, node, segment, first) DO UPDATE SET last = excluded.last, mac = excluded.mac
			WHERE audit_chunks.last = excluded.last AND audit_chunks.data = excluded.data`
	// A chunk that begins after its end was tampered with. It is listed for each end of a span: a verification must see it.
	listAuditChunksSQL = `SELECT ` + auditChunkColumns + ` FROM audit_chunks WHERE organization_id = $1 AND to_at >= $2 AND (from_at < $3 OR from_at > to_at)
		ORDER BY to_at DESC, node, segment, first DESC LIMIT $4`

	auditCheckpointColumns   = `node, number, segment, at, data, signature`
	insertAuditCheckpointSQL = `INSERT INTO audit_checkpoints (` + auditCheckpointColumns + `) VALUES ($1, $2, $3, $4, $5, $6)`
	auditCheckpointSQL       = `SELECT ` + auditCheckpointColumns + ` FROM audit_checkpoints WHERE node = $1 AND number = $2`
	listAuditCheckpointsSQL  = `SELECT ` + auditCheckpointColumns + ` FROM audit_checkpoints WHERE $1 = '' OR node = $1 ORDER BY node, number`
)

func (t *texts) audit(d Dialect) {
	// Transactions that run at the same time wait for each other at the head of the chain.
	t.auditHead = `SELECT ` + auditHeadColumns + ` FROM audit_heads
		WHERE organization_id = $1 AND node = $2 AND segment = $3` + d.ForUpdate
}

// appendAudit appends a's entries to their chain.
func (s *work) appendAudit(ctx context.Context, tx Tx, a *storage.Audited) ([]storage.AuditRecord, error) {
	chain, err := One(ctx, tx, scanAuditChain, s.texts.auditHead, a.OrganizationID, a.Node, storage.AuditStoreSegment)
	if errors.Is(err, storage.ErrNotFound) {
		// The chain begins, here or in a concurrent transaction: either way it exists, and can be waited for.
		if _, err := tx.Exec(ctx, beginAuditHeadSQL, a.OrganizationID, a.Node, storage.AuditStoreSegment, make([]byte, len(chain.Hash))); err != nil {
			return nil, fmt.Errorf("beginning the audit chain: %w", err)
		}
		chain, err = One(ctx, tx, scanAuditChain, s.texts.auditHead, a.OrganizationID, a.Node, storage.AuditStoreSegment)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the audit chain: %w", err)
	}
	begun := chain.Sequence != 0 || chain.Hash != [sha256.Size]byte{}
	if a.MACs != nil && begun && !chain.SealedBy(a.MACs, &chain.MAC) {
		return nil, fmt.Errorf("recording in the audit log: record %d, with which the chain of node %s, organization %q, is said to end, has no MAC of this gateway; run durward audit verify, and start the gateway again to begin other chains: %w",
			chain.Sequence, a.Node, a.OrganizationID, storage.ErrUnavailable)
	}
	records := make([]storage.AuditRecord, len(a.Entries))
	for i, e := range a.Entries {
		text, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("writing an audit entry: %w", err)
		}
		r := chain.Next(text)
		if a.MACs != nil {
			r.MAC = chain.Sealed(a.MACs)
			chain.MAC = r.MAC
		}
		n, err := tx.Exec(ctx, insertAuditRecordSQL, r.OrganizationID, r.Node, r.Segment, r.Sequence, r.Text, r.Previous[:],
			r.Hash[:], e.At.UnixMicro(), macValue(r.MAC))
		if err != nil {
			return nil, err
		}
		if n == 0 {
			// This is no conflict of the caller's own write.
			return nil, fmt.Errorf("recording in the audit log: there is a record %d behind the end of the chain of node %s, organization %q; run durward audit verify: %w",
				r.Sequence, r.Node, r.OrganizationID, storage.ErrUnavailable)
		}
		records[i] = r
	}
	_, err = tx.Exec(ctx, putAuditHeadSQL, chain.OrganizationID, chain.Node, chain.Segment, chain.Sequence, chain.Hash[:], macValue(chain.MAC))
	return records, err
}

// hashColumn reads a SHA-256 sum; null is zero.
type hashColumn struct{ to *[32]byte }

func (c hashColumn) Scan(v any) error {
	sum, _ := v.([]byte)
	*c.to = [32]byte{}
	if v != nil && copy(c.to[:], sum) != len(c.to) {
		return fmt.Errorf("reading a hash: got %T of %d bytes", v, len(sum))
	}
	return nil
}

// macValue returns the stored form of a MAC; null means none.
func macValue(mac storage.AuditMAC) any {
	if mac == (storage.AuditMAC{}) {
		return nil
	}
	return mac[:]
}

// macColumn reads a MAC; null is zero. A value of a wrong form is read as a wrong MAC: it must not keep the log from
// being verified.
type macColumn struct{ to *storage.AuditMAC }

func (c macColumn) Scan(v any) error {
	*c.to = storage.AuditMAC{}
	if v == nil {
		return nil
	}
	if mac, _ := v.([]byte); len(mac) != len(c.to) || copy(c.to[:], mac) == 0 || *c.to == (storage.AuditMAC{}) {
		for i := range c.to {
			c.to[i] = 0xff
		}
	}
	return nil
}

func scanAuditChain(r Row) (c storage.AuditChain, err error) {
	err = r.Scan(&c.OrganizationID, &c.Node, &c.Segment, &c.Sequence, hashColumn{&c.Hash}, macColumn{&c.MAC})
	return c, err
}

func scanAuditRecord(r Row) (a storage.AuditRecord, err error) {
	err = r.Scan(&a.OrganizationID, &a.Node, &a.Segment, &a.Sequence, &a.Text, hashColumn{&a.Previous}, hashColumn{&a.Hash}, timeColumn{&a.At}, macColumn{&a.MAC})
	return a, err
}

func scanAuditChunk(r Row) (c storage.AuditChunk, err error) {
	err = r.Scan(&c.OrganizationID, &c.Node, &c.Segment, &c.First, &c.Last, timeColumn{&c.From}, timeColumn{&c.To}, &c.Data, macColumn{&c.MAC})
	return c, err
}

func scanAuditCheckpoint(r Row) (c storage.AuditCheckpoint, err error) {
	err = r.Scan(&c.Node, &c.Number, &c.Segment, timeColumn{&c.At}, &c.Data, &c.Signature)
	return c, err
}

// auditSpan returns a filter as the arguments of the statements.
func auditSpan(f storage.AuditFilter) []any {
	from, to, limit := int64(math.MinInt64), int64(math.MaxInt64), int64(math.MaxInt64)
	if !f.From.IsZero() {
		from = f.From.UnixMicro()
	}
	if !f.To.IsZero() {
		to = f.To.UnixMicro()
	}
	if f.Limit > 0 {
		limit = int64(f.Limit)
	}
	return []any{f.OrganizationID, from, to, limit}
}

// RecordAudit implements storage.Audits.
func (s auditsStore) RecordAudit(ctx context.Context) error {
	a := storage.AuditOf(ctx)
	if a == nil {
		return nil
	}
	return s.commit(ctx, Access{Scope: Of(a.OrganizationID)}, Lock{OrganizationLock, a.OrganizationID}, true,
		func(context.Context, Tx) error { return nil })
}

// AddAuditChunks implements storage.Audits.
func (s auditsStore) AddAuditChunks(ctx context.Context, chunks []storage.AuditChunk) error {
	return s.writeAcross(ctx, NoLock, func(ctx context.Context, tx Tx) error {
		for _, c := range chunks {
			n, err := tx.Exec(ctx, insertAuditChunkSQL, c.OrganizationID, c.Node, c.Segment, c.First, c.Last,
				c.From.UnixMicro(), lastMicro(c.To), c.Data, macValue(c.MAC))
			if err != nil {
				return err
			}
			if n == 0 {
				return &storage.ConflictError{Field: "first"}
			}
		}
		return nil
	})
}

// lastMicro returns the first whole microsecond that is not before a time: a chunk never seems to end before its last record.
func lastMicro(t time.Time) int64 { return t.Add(time.Microsecond - 1).UnixMicro() }

// AuditChunks implements storage.Audits.
func (s auditsStore) AuditChunks(ctx context.Context, f storage.AuditFilter) (chunks []storage.AuditChunk, err error) {
	err = s.read(ctx, f.OrganizationID, func(ctx context.Context, q Querier) (err error) {
		chunks, err = Many(ctx, q, scanAuditChunk, listAuditChunksSQL, auditSpan(f)...)
		return err
	})
	return chunks, err
}

// AuditRecords implements storage.Audits.
func (s auditsStore) AuditRecords(ctx context.Context, f storage.AuditFilter) (records []storage.AuditRecord, err error) {
	err = s.read(ctx, f.OrganizationID, func(ctx context.Context, q Querier) (err error) {
		records, err = Many(ctx, q, scanAuditRecord, listAuditRecordsSQL, auditSpan(f)...)
		return err
	})
	return records, err
}

// AuditChains implements storage.Audits.
func (s auditsStore) AuditChains(ctx context.Context, node string) (chains []storage.AuditChain, err error) {
	err = s.readAcross(ctx, func(ctx context.Context, q Querier) (err error) {
		chains, err = Many(ctx, q, scanAuditChain, auditChainsSQL, node)
		return err
	})
	return chains, err
}

// AddAuditCheckpoint implements storage.Audits.
func (s auditsStore) AddAuditCheckpoint(ctx context.Context, c storage.AuditCheckpoint) error {
	return s.writeAcross(ctx, NoLock, func(ctx context.Context, tx Tx) error {
		_, err := tx.Exec(ctx, insertAuditCheckpointSQL, c.Node, c.Number, c.Segment, c.At.UnixMicro(), c.Data, c.Signature)
		return err
	})
}

// AuditCheckpoint implements storage.Audits.
func (s auditsStore) AuditCheckpoint(ctx context.Context, node string, number int64) (c storage.AuditCheckpoint, err error) {
	err = s.readAcross(ctx, func(ctx context.Context, q Querier) (err error) {
		c, err = One(ctx, q, scanAuditCheckpoint, auditCheckpointSQL, node, number)
		return err
	})
	return c, err
}

// AuditCheckpoints implements storage.Audits.
func (s auditsStore) AuditCheckpoints(ctx context.Context, node string) (checkpoints []storage.AuditCheckpoint, err error) {
	err = s.readAcross(ctx, func(ctx context.Context, q Querier) (err error) {
		checkpoints, err = Many(ctx, q, scanAuditCheckpoint, listAuditCheckpointsSQL, node)
		return err
	})
	return checkpoints, err
}
