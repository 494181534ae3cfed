package audit

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

const lockFile = "lock"

// claim takes a journal's directory that no process uses and that trusted allows to continue (nil: any). When there is
// none, it makes a directory with a new node's name.
func claim(root string, log *slog.Logger, trusted func(dir string) bool) (dir string, unlock func(), err error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", nil, err
	}
	nodes, err := segments.Nodes(root)
	if err != nil {
		return "", nil, err
	}
	for _, dir := range nodes {
		numbers, err := segments.List(dir)
		if err != nil || len(numbers) == 0 {
			continue // the segments were removed: with this name the numbers would start again
		}
		unlock, err = segments.Lock(filepath.Join(dir, lockFile))
		switch {
		case errors.Is(err, segments.ErrLocked):
		case err != nil:
			return "", nil, err
		case ofLaterFormat(dir, numbers):
			log.Warn("a later durward has left an audit journal; it is left alone until that one runs again", "node", filepath.Base(dir))
			unlock()
		case ofFormerFormat(dir, numbers):
			log.Info("a former durward has left an audit journal, whose records have no MACs: another one is begun", "node", filepath.Base(dir))
			unlock()
		case trusted != nil && !trusted(dir):
			unlock() // the reason has been logged
		default:
			return dir, unlock, nil
		}
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // Read never returns an error: it crashes the process instead
	dir = filepath.Join(root, hex.EncodeToString(id[:]))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, err
	}
	if err := syncPath(root); err != nil {
		return "", nil, err
	}
	unlock, err = segments.Lock(filepath.Join(dir, lockFile))
	return dir, unlock, err
}

// ofLaterFormat reports whether one of the journal's segments has a format of a later durward. This version can neither
// end nor ship such a segment.
func ofLaterFormat(dir string, numbers []int) bool {
	return slices.ContainsFunc(numbers, func(number int) bool { return segments.FormatOf(dir, number) > format.SegmentFormat })
}

// ofFormerFormat reports whether a durward without MACs wrote one of the journal's segments. Either all records of a node
// have MACs or none has: else an attacker who leaves MACs off could claim that the records are old ones.
func ofFormerFormat(dir string, numbers []int) bool {
	return slices.ContainsFunc(numbers, func(number int) bool {
		version := segments.FormatOf(dir, number)
		return version >= format.LongSegmentFormat && version <= format.BareSegmentFormat
	})
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// maxHeader is more bytes than a segment's first line has.
const maxHeader = 1 << 10

// begin ends the segments that a crash has left open, and begins a segment.
func (j *Journal) begin() error {
	number, err := j.resume()
	if err != nil {
		return err
	}
	return j.open(number)
}

// resume ends the segments that a crash has left open, and returns the number of the next segment.
func (j *Journal) resume() (number int, err error) {
	numbers, err := segments.List(j.dir)
	if err != nil {
		return 0, err
	}
	number = 1
	// The last file may have no line at all: then the file before it has the last checkpoint.
	for _, n := range numbers[max(0, len(numbers)-2):] {
		kept, err := j.recover(n)
		if err != nil {
			return 0, fmt.Errorf("recovering segment %s: %w", segments.Name(n), err)
		}
		if number = n; kept {
			number++
		}
	}
	// The numbers of segments that were set aside are not used again.
	aside, err := segments.NumbersOf(j.dir, segments.Suffix+segments.DamagedSuffix)
	if err != nil {
		return 0, err
	}
	if n := len(aside); n > 0 {
		number = max(number, aside[n-1]+1)
	}
	// All lines of the ring are in the segments now. The ring is removed, so that an old page of it cannot return at the
	// next power cut.
	if err := os.Remove(filepath.Join(j.dir, former.RingName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		j.options.Log.Warn("the ring of an audit journal cannot be removed", "error", err.Error())
	}
	return number, nil
}

// open begins a segment. The previous one has ended or was abandoned.
func (j *Journal) open(number int) error {
	path := segments.Path(j.dir, number)
	f, err := j.options.create(path)
	if err != nil {
		return err
	}
	now := j.options.Now().UTC()
	h := format.Header{Format: format.SegmentFormat, Node: j.node, Segment: segments.Name(number), Time: now, Checkpoint: j.last.number, Previous: j.last.hash}
	first := append(format.Marshal(h), '\n')
	_, err = f.Write(first)
	if err = errors.Join(err, f.Sync(), syncPath(j.dir)); err != nil {
		return errors.Join(err, f.Close(), os.Remove(path))
	}
	j.segment = segment{file: f, number: number, name: segments.Name(number), header: h.Hash(), path: path, size: int64(len(first)), began: now, chains: make(map[string]*chain)}
	j.segment.at, _ = os.Lstat(path)
	j.fresh.begin(number, 0)
	j.fresh.growing().to = j.segment.size
	j.torn, j.failure = false, nil
	return nil
}

// rotate ends the segment and begins the next. When the disk may have lost written records, the segment ends with the
// records that are there. The locks of syncs and of the journal are held.
func (j *Journal) rotate() error {
	former := j.segment
	if err := j.end(); err != nil && j.failure == nil {
		return err
	}
	if j.failure != nil {
		j.unsure.add(j.synced.Load(), j.written, j.failure)
		j.giveUp()
		j.tell(j.failure)
		j.dropFresh() // the file may have fewer records
		// The next segment follows records of a file that is gone: a verification finds the gap.
		if !errors.Is(j.failure, errGone) {
			if _, err := j.recover(former.number); err != nil {
				return err
			}
		}
	}
	if err := j.open(former.number + 1); err != nil {
		return err
	}
	return former.file.Close()
}

// giveUp counts the records and outcomes that wait as lost.
func (j *Journal) giveUp() {
	j.closeGroups()
	for i := range j.additions {
		j.lost.Add(int64(j.additions[i].waits))
	}
	j.pending, j.additions = nil, nil
}

// errGone reports that the segment's file was removed or replaced. Nobody will find further records in it.
var errGone = errors.New("its file was removed or replaced")

// notice checks whether the segment's file is still at its path, and still has all its bytes.
func (j *Journal) notice() {
	if j.failure != nil || j.segment.at == nil {
		return
	}
	at, err := os.Lstat(j.segment.path)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
	case err != nil || !os.SameFile(at, j.segment.at):
		j.failure = errGone
		j.options.Log.Error("a file of the audit journal was removed or replaced: records in it that the store does not have are lost", "segment", j.segment.name)
	case at.Size() < j.segment.size:
		j.noteFault(errFault)
	}
}

// noteFault ends the segment when err is errFault: its file was changed, or its disk fails.
func (j *Journal) noteFault(err error) {
	if !errors.Is(err, errFault) || j.failure != nil {
		return
	}
	j.failure = err
	j.options.Log.Error("a file of the audit journal was cut off, or its disk fails", "segment", j.segment.name)
	signal(j.rotation)
}

// end writes pending and the final checkpoint, unless that is done.
func (j *Journal) end() error {
	if j.failure != nil {
		return j.failure
	}
	if !j.segment.ended {
		if err := j.checkpoint(true); err != nil {
			return err
		}
		j.segment.ended = true
	}
	if err := j.segment.file.Sync(); err != nil {
		return j.noteUnsynced(err)
	}
	j.synced.Store(j.written)
	return nil
}

// checkpoint writes a checkpoint of the chains with new records since the last one. The final checkpoint of a segment has
// all its chains.
func (j *Journal) checkpoint(final bool) error {
	// A checkpoint covers the records before it in the file.
	if err := j.flushAll(); err != nil {
		return err
	}
	c := format.Checkpoint{Segment: j.segment.name, Header: j.segment.header, Final: final, Chains: make([]format.Head, 0, len(j.stored)+len(j.segment.chains))}
	for _, moved := range j.segment.chains {
		if (final || moved.moved) && moved.Sequence > 0 {
			c.Chains = append(c.Chains, format.HeadOf(&moved.AuditChain))
		}
	}
	for _, stored := range j.stored {
		c.Chains = append(c.Chains, format.HeadOf(&stored))
	}
	signed, last := j.sign(c)
	if err := j.put(format.AppendCheckpoint(nil, &signed)); err != nil {
		return err
	}
	j.last = last
	j.fresh.add(&signed, final)
	for _, moved := range j.segment.chains {
		moved.moved = false
	}
	clear(j.stored)
	j.segment.moved = false
	return nil
}

func (j *Journal) sign(c format.Checkpoint) (storage.AuditCheckpoint, lastCheckpoint) {
	c.Format, c.Node, c.Time = format.CheckpointFormat, j.node, j.options.Now().UTC()
	c.Number, c.Previous = j.last.number+1, j.last.hash
	slices.SortFunc(c.Chains, func(a, b format.Head) int {
		return cmp.Or(cmp.Compare(a.Organization, b.Organization), cmp.Compare(a.Segment, b.Segment))
	})
	signed := c.Sign(j.options.Signer)
	return signed, lastCheckpoint{number: c.Number, hash: format.CheckpointHash(&signed), at: c.Time}
}

// recover ends a segment that has no final checkpoint with one. The checkpoint covers the records in the segment's file
// and in the ring. recover cuts away an unfinished last line, and never touches a complete line. It sets aside a file
// whose beginning was cut off. It removes a file that has no first line yet, and then returns false for kept.
func (j *Journal) recover(number int) (kept bool, err error) {
	path := segments.Path(j.dir, number)
	all, err := segments.Scan(path, j.keys())
	if errors.Is(err, os.ErrNotExist) {
		return true, nil // an earlier attempt set it aside or removed it, and could not begin a segment after it
	}
	if err != nil {
		return true, err
	}
	// The file has more than an unfinished first line, or this process had finished that line.
	if all.Size == 0 && (all.Torn > maxHeader || number == j.segment.number) {
		j.options.Log.Error("a segment of the audit journal has no beginning and is set aside", "segment", segments.Name(number))
		return true, os.Rename(path, path+segments.DamagedSuffix)
	}
	if all.Size == 0 {
		return false, os.Remove(path)
	}
	ring, err := former.ReadRing(j.dir, segments.Nonblocking)
	if err != nil {
		return true, err
	}
	size := all.Size
	more := all.Follow(ring.Behind(number, size))
	// This process knows its own last checkpoint, also when the file has lost it: a verification finds that it is missing.
	if number != j.segment.number {
		j.follow(all)
	}
	if all.Final && len(more) == 0 {
		return true, syncPath(path) // the process that ended it may not have synced it
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return true, err
	}
	defer f.Close()
	// This also removes zeros that a former version allocated ahead.
	if err := f.Truncate(size); err != nil {
		return true, err
	}
	last, cut := j.last, max(all.Torn-int64(len(more)), 0)
	if !all.Final {
		c := format.Checkpoint{Segment: segments.Name(number), Final: true, Found: j.former, Cut: cut, Chains: []format.Head{}}
		if all.Header != nil {
			c.Header = all.Header.Hash()
		}
		for _, chain := range all.Chains {
			c.Chains = append(c.Chains, format.HeadOf(&chain.AuditChain))
		}
		var signed storage.AuditCheckpoint
		signed, last = j.sign(c)
		more = format.AppendCheckpoint(more, &signed)
	}
	if _, err := f.Write(more); err != nil {
		return true, errors.Join(err, f.Truncate(size)) // the ring still has the lines
	}
	j.last = last
	j.options.Log.Warn("the audit journal was not closed; it is recovered", "segment", segments.Name(number), "records", all.Records, "cut_bytes", cut)
	return true, f.Sync()
}

// follow takes the last checkpoint of a segment that another process has left.
func (j *Journal) follow(all *segments.Found) {
	if all.Header != nil && all.Header.Checkpoint >= j.last.number {
		j.last.number, j.last.hash = all.Header.Checkpoint, all.Header.Previous
	}
	if c := all.Checkpoint; c != nil {
		j.last = lastCheckpoint{number: c.Number, hash: format.CheckpointHash(c), at: c.At}
	}
}

// keys returns the keys of the journal's gateway.
func (j *Journal) keys() *segments.Keys {
	return &segments.Keys{MACs: j.options.MACs, Signatures: j.options.Signer, Former: j.former}
}
