package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// Everything calls each with all records of an organization ("*": of all, and the gateway's own) between two times: what is
// in the store, oldest first, then what is in the journals of dir and not yet in the store. Hashes are not looked at:
// that is for Verify. It may run beside a gateway. It ends with the first error of each.
func Everything(ctx context.Context, dir string, store storage.Audits, organization string, from, to time.Time, each func(*storage.AuditRecord) error) error {
	waiting, err := journaled(dir)
	if err != nil {
		return fmt.Errorf("reading journals: %w", err)
	}
	chains, err := store.AuditChains(ctx, "")
	if err != nil {
		return fmt.Errorf("reading chains: %w", err)
	}
	var organizations []string
	shipped := make(map[storage.AuditChain]int64)
	for _, c := range chains {
		organizations = append(organizations, c.OrganizationID)
		name := storage.AuditChain{OrganizationID: c.OrganizationID, Node: c.Node, Segment: c.Segment}
		shipped[name] = max(shipped[name], c.Sequence)
	}
	slices.Sort(organizations)
	for _, id := range slices.Compact(organizations) {
		if organization == "*" || organization == id {
			if err := Records(ctx, store, storage.AuditFilter{OrganizationID: id, From: from, To: to}, each); err != nil {
				return err
			}
		}
	}
	for i := range waiting {
		r := &waiting[i]
		name := storage.AuditChain{OrganizationID: r.OrganizationID, Node: r.Node, Segment: r.Segment}
		at := timeOf(r.Text)
		if r.Sequence <= shipped[name] || (organization != "*" && organization != r.OrganizationID) || at.Before(from) || !at.Before(to) {
			continue
		}
		if err := each(r); err != nil {
			return err
		}
	}
	return nil
}

// journaled reads all records of the journals in a directory.
func journaled(root string) ([]storage.AuditRecord, error) {
	dirs, err := nodeDirs(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []storage.AuditRecord
	for _, dir := range dirs {
		numbers, err := segments(dir)
		if err != nil {
			return nil, err
		}
		for _, number := range numbers {
			records, err := journaledSegment(dir, number)
			if err != nil {
				return nil, err
			}
			all = append(all, records...)
		}
	}
	return all, nil
}

func journaledSegment(dir string, number int) ([]storage.AuditRecord, error) {
	f, err := os.Open(segmentPath(dir, number))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // shipped since it was listed
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var records []storage.AuditRecord
	before := make(map[string][32]byte)
	for lines := newLines(f); ; {
		text, err := lines.next()
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return nil, err
		}
		l, err := parseLine(text)
		if err != nil || l.header != nil || l.checkpoint != nil {
			continue
		}
		r := storage.AuditRecord{
			OrganizationID: string(l.record.organization), Node: filepath.Base(dir), Segment: segmentName(number), Sequence: l.record.sequence,
			Text: slices.Clone(l.record.text), Hash: l.record.hash,
		}
		r.Previous = before[r.OrganizationID]
		before[r.OrganizationID] = r.Hash
		records = append(records, r)
	}
}
