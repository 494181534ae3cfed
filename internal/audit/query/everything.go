package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

// Everything calls each with all records of an organization between two times. With "*" it takes the records of all
// organizations and the gateway's own. It first reads the store, oldest records first, then the records in the journals
// of dir that are not yet in the store. It does not check hashes: package verify does. It may run beside a gateway, and passes
// each record once. It stops at the first error of each.
func Everything(ctx context.Context, dir string, store storage.Audits, organization string, from, to time.Time, each func(*storage.AuditRecord) error) error {
	from, to = from.Truncate(format.Precision), to.Truncate(format.Precision)
	journals, err := openJournals(dir)
	defer func() {
		for _, j := range journals {
			_ = j.file.Close()
		}
	}()
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
		name := format.ChainOf(c.OrganizationID, c.Node, c.Segment)
		shipped[name] = max(shipped[name], c.Sequence)
	}
	meanwhile := make(map[recordName]bool) // records that reached the store since then, and are also in the journals
	slices.Sort(organizations)
	for _, id := range slices.Compact(organizations) {
		if organization != "*" && organization != id {
			continue
		}
		if err := Records(ctx, store, storage.AuditFilter{OrganizationID: id, From: from, To: to}, func(r *storage.AuditRecord) error {
			if name := format.ChainOf(r.OrganizationID, r.Node, r.Segment); r.Sequence > shipped[name] {
				meanwhile[recordName{name, r.Sequence}] = true
			}
			return each(r)
		}); err != nil {
			return err
		}
	}
	for _, j := range journals {
		if err := j.records(func(r *storage.AuditRecord) error {
			name := format.ChainOf(r.OrganizationID, r.Node, r.Segment)
			at := format.TimeOf(r.Text)
			if r.Sequence <= shipped[name] || meanwhile[recordName{name, r.Sequence}] ||
				(organization != "*" && organization != r.OrganizationID) || at.Before(from) || !at.Before(to) {
				return nil
			}
			return each(r)
		}); err != nil {
			return err
		}
	}
	return nil
}

type recordName struct {
	chain    storage.AuditChain
	sequence int64
}

// journalFile is an open segment of a journal, with the size it had when it was opened. It can be read to that size even
// after a gateway has shipped and removed the file.
type journalFile struct {
	file          *segments.Text
	node, segment string
	size          int64
}

// openJournals opens all segments of the journals in a directory. With an error it also returns the segments that it has
// opened.
func openJournals(root string) ([]journalFile, error) {
	dirs, err := segments.Nodes(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []journalFile
	for _, dir := range dirs {
		numbers, err := segments.List(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue // it was shipped and removed after it was listed
		}
		if err != nil {
			return all, err
		}
		for _, number := range numbers {
			f, err := segments.Open(dir, number)
			if errors.Is(err, os.ErrNotExist) {
				continue // it was shipped and removed after it was listed
			}
			if err != nil {
				return all, err
			}
			all = append(all, journalFile{file: f, node: filepath.Base(dir), segment: segments.Name(number)})
			if all[len(all)-1].size, err = f.Size(); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// records calls each with the records of the segment.
func (j *journalFile) records(each func(*storage.AuditRecord) error) error {
	parser := former.NewParser()
	before := make(map[string][32]byte)
	for lines := format.NewLines(io.LimitReader(j.file, j.size)); ; {
		text, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading journals: %w", err)
		}
		l, err := parser.Parse(text)
		if err != nil || l.Header != nil || l.Checkpoint != nil {
			continue
		}
		r := storage.AuditRecord{
			OrganizationID: string(l.Record.Organization), Node: j.node, Segment: j.segment, Sequence: l.Record.Sequence,
			Text: bytes.Clone(l.Record.Text), Hash: l.Record.Hash,
		}
		r.Previous = before[r.OrganizationID]
		before[r.OrganizationID] = r.Hash
		if err := each(&r); err != nil {
			return err
		}
	}
}
