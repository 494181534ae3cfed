package audit

import (
	"context"
	"crypto/sha256"
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

// doubt holds the ways in which a journal does not continue the records that the store has of it. The causes are: an
// older state of its directory was put back, a segment was cut off, or a power cut took records that had been shipped. A
// process that continued such a journal would use sequences and numbers that are already taken. The store would then have
// no place for its records.
type doubt struct {
	reason string // "": the journal continues the store's records
	// chains has the chains of which the store has different records.
	chains map[chainName]bool
}

func (d *doubt) add(reason string, arguments ...any) {
	if d.reason == "" {
		d.reason = fmt.Sprintf(reason, arguments...)
	}
}

// heldChain is a chain in the journal's files of which the store has records.
type heldChain struct {
	sequence int64 // of the last record in the store
	covered  int64 // the number of the first checkpoint that covers it; 0: none
	there    bool  // the record is in the file
	nanos    int64 // the record's time in Unix nanoseconds
	hash     [sha256.Size]byte
}

// examine compares a journal that no process writes with the store's records of it. Records that are covered by a
// checkpoint which both have are the same in both.
func examine(ctx context.Context, store storage.Audits, dir string, macs storage.AuditMACs) (doubt, error) {
	var d doubt
	node := filepath.Base(dir)
	numbers, err := segments.List(dir)
	if err != nil || len(numbers) == 0 {
		return d, err
	}
	aside, err := segments.NumbersOf(dir, segments.Suffix+segments.DamagedSuffix)
	if err != nil {
		return d, err
	}
	chains, err := store.AuditChains(ctx, node)
	if err != nil {
		return d, err
	}
	held := d.held(chains, slices.Max(slices.Concat(numbers, aside)), macs)
	var said []lastCheckpoint
	for i, number := range numbers {
		// The last file may have no line at all: then the file before it has the last checkpoint.
		if i < len(numbers)-2 && held[number] == nil {
			continue
		}
		if said, err = readHeld(dir, number, held[number], said); err != nil {
			return d, fmt.Errorf("reading segment %s: %w", segments.Name(number), err)
		}
	}
	common, err := d.checkpoints(ctx, store, node, said)
	if err != nil {
		return d, err
	}
	err = d.compare(ctx, store, node, numbers, held, common)
	return d, err
}

// held returns the chains that the store has of the journal's segments, by segment and organization. It doubts chains of
// segments after the newest, and of the store's own records when they have no MAC.
func (d *doubt) held(chains []storage.AuditChain, newest int, macs storage.AuditMACs) map[int]map[string]*heldChain {
	held := make(map[int]map[string]*heldChain)
	for _, c := range chains {
		number, ok := segments.Number(c.Segment)
		if !ok { // it is a chain of the store's own records
			if c.Sequence > 0 && !c.SealedBy(macs, &c.MAC) {
				d.add("record %d of the store itself, with which the chain of organization %q is said to end, has no MAC of this gateway", c.Sequence, c.OrganizationID)
			}
			continue
		}
		if number > newest {
			d.add("the store has records of segment %s", c.Segment)
		}
		if held[number] == nil {
			held[number] = make(map[string]*heldChain)
		}
		held[number][c.OrganizationID] = &heldChain{sequence: c.Sequence}
	}
	return held
}

// compare compares the last records that the store has of each chain with those in the journal, beyond the last common
// checkpoint.
func (d *doubt) compare(ctx context.Context, store storage.Audits, node string, numbers []int, held map[int]map[string]*heldChain, common int64) error {
	d.chains = make(map[chainName]bool)
	for _, number := range numbers {
		for organization, c := range held[number] {
			if c.covered > 0 && c.covered <= common {
				continue
			}
			name := chainName{organization, segments.Name(number)}
			if !c.there {
				d.add("the store has more records of segment %s", name.segment)
				continue
			}
			hash, err := storedHash(ctx, store, node, name, c)
			if err != nil {
				return err
			}
			if hash != c.hash {
				d.add("the store has other records of segment %s", name.segment)
				d.chains[name] = true
			}
		}
	}
	return nil
}

// hasNoMACs reports whether a version of durward without MACs wrote all records of a node, as far as the store knows.
// Records without MACs are refused for all other nodes.
func hasNoMACs(ctx context.Context, store storage.Audits, node string, keys *segments.Keys) (bool, error) {
	chains, err := store.AuditChains(ctx, node)
	for i := range chains {
		if c := &chains[i]; c.SealedBy(keys.MACs, &c.MAC) {
			return false, nil
		}
	}
	if err != nil {
		return false, err
	}
	checkpoints, err := store.AuditCheckpoints(ctx, node)
	for i := range checkpoints {
		c := &checkpoints[i]
		if said, err := format.ReadCheckpoint(c.Data); err == nil && said.Sealing() && keys.Signed(c) {
			return false, nil
		}
	}
	return err == nil, err
}

// readHeld reads a segment and notes the record and checkpoint for each held chain. It adds the segment's checkpoints to
// said.
func readHeld(dir string, number int, held map[string]*heldChain, said []lastCheckpoint) ([]lastCheckpoint, error) {
	f, err := segments.Open(dir, number)
	if errors.Is(err, os.ErrNotExist) {
		return said, nil
	}
	if err != nil {
		return said, err
	}
	defer f.Close()
	parser := former.NewParser()
	for lines := format.NewLines(f); ; {
		text, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return said, nil
		}
		if err != nil {
			return said, err
		}
		l, err := parser.Parse(text)
		switch {
		case err != nil:
		case l.Header != nil:
			if l.Header.Checkpoint > 0 {
				said = append(said, lastCheckpoint{number: l.Header.Checkpoint, hash: l.Header.Previous})
			}
		case l.Checkpoint != nil:
			said = append(said, lastCheckpoint{number: l.Checkpoint.Number, hash: format.CheckpointHash(l.Checkpoint)})
			c, err := format.ReadCheckpoint(l.Checkpoint.Data)
			if err != nil {
				continue // not reached: the parser has read it
			}
			for _, head := range c.Chains {
				if h := held[head.Organization]; h != nil && head.Segment == segments.Name(number) && h.covered == 0 && head.Sequence >= h.sequence {
					h.covered = c.Number
				}
			}
		default:
			if h := held[string(l.Record.Organization)]; h != nil && h.sequence == l.Record.Sequence {
				h.there, h.hash, h.nanos = true, l.Record.Hash, format.NanosOf(l.Record.Text)
			}
		}
	}
}

// checkpoints compares the checkpoints that the journal knows with the store's. It returns the number of the last one
// that both have.
func (d *doubt) checkpoints(ctx context.Context, store storage.Audits, node string, said []lastCheckpoint) (common int64, err error) {
	last := int64(0)
	for _, c := range said {
		last = max(last, c.number)
	}
	switch _, err := store.AuditCheckpoint(ctx, node, last+1); {
	case err == nil:
		d.add("the store has checkpoint %d, which the journal has not", last+1)
	case !errors.Is(err, storage.ErrNotFound):
		return 0, err
	}
	for _, c := range slices.Backward(said) {
		stored, err := store.AuditCheckpoint(ctx, node, c.number)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			continue // it was not shipped
		case err != nil:
			return 0, err
		case format.CheckpointHash(&stored) == c.hash:
			return c.number, nil
		}
		d.add("the store has another checkpoint %d", c.number)
	}
	return 0, nil
}

// storedHash returns the hash that the store has for the chain's last record in it. It returns zeros when the store has
// no such record at that time.
func storedHash(ctx context.Context, store storage.Audits, node string, name chainName, c *heldChain) (hash [sha256.Size]byte, err error) {
	at := time.Unix(0, c.nanos).UTC().Truncate(format.Precision)
	chunks, err := store.AuditChunks(ctx, storage.AuditFilter{OrganizationID: name.organization, From: at, To: at.Add(format.Precision)})
	for i := range chunks {
		if chunk := &chunks[i]; chunk.Node == node && chunk.Segment == name.segment && chunk.Last == c.sequence {
			if records, _ := former.ReadChunk(chunk); len(records) > 0 { // a verification reports errors in it
				hash = records[len(records)-1].Hash
			}
		}
	}
	return hash, err
}
