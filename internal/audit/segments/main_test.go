package segments

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/storage"
)

const (
	acme  = "0190aaaa-0000-7000-8000-000000000001"
	other = "0190aaaa-0000-7000-8000-000000000002"

	node = "00112233445566ff"
)

// key makes signatures and MACs that are those of its name.
type key string

func (k key) sum(message []byte) []byte {
	sum := sha256.Sum256(append([]byte(k), message...))
	return sum[:]
}

func (k key) Sign(message []byte) []byte { return k.sum(message) }

func (k key) Verify(message, signature []byte) bool { return bytes.Equal(k.sum(message), signature) }

func (k key) AppendMAC(to, message []byte) []byte {
	return append(to, k.sum(message)[:len(storage.AuditMAC{})]...)
}

func (k key) CheckMAC(message, mac []byte) bool { return bytes.Equal(k.AppendMAC(nil, message), mac) }

// journal makes the lines of a segment.
type journal struct {
	key     key
	node    string
	segment int
	format  int
	chains  map[string]*storage.AuditChain
	number  int64 // of the last checkpoint
	hash    string
	lines   []string
}

// newJournal begins a segment behind a checkpoint.
func newJournal(number int) *journal {
	j := &journal{key: "gateway", node: node, segment: number, format: format.SegmentFormat, chains: make(map[string]*storage.AuditChain), number: 4, hash: "ab"}
	j.header()
	return j
}

func (j *journal) add(line []byte) { j.lines = append(j.lines, string(line)) }

func (j *journal) header() {
	j.add(append(format.Marshal(format.Header{Format: j.format, Node: j.node, Segment: Name(j.segment), Checkpoint: j.number, Previous: j.hash}), '\n'))
}

// record adds a record, which change may change before it gets its MAC; change may be nil.
func (j *journal) record(organization string, change func(*format.Record)) {
	chain := j.chains[organization]
	if chain == nil {
		chain = &storage.AuditChain{OrganizationID: organization, Node: j.node, Segment: Name(j.segment)}
		j.chains[organization] = chain
	}
	text := format.AppendEntry(nil, &storage.AuditEntry{ID: strconv.Itoa(len(j.lines)), Kind: storage.AuditAdmin, Event: "made"})
	hash, _ := format.Next(chain, text, nil)
	r := format.Record{Sequence: chain.Sequence, Hash: hash, Text: text}
	if change != nil {
		change(&r)
	}
	place := *chain
	place.Sequence, place.Hash = r.Sequence, r.Hash
	r.MAC = place.Sealed(j.key)
	j.add(append(append(format.AppendHead(nil, organization, r.Sequence, &r.Hash, r.MAC[:], len(r.Text)), r.Text...), '\n'))
}

// checkpoint adds the next checkpoint, which change may change before it is signed; change may be nil.
func (j *journal) checkpoint(change func(*format.Checkpoint)) {
	c := format.Checkpoint{Format: format.CheckpointFormat, Node: j.node, Segment: Name(j.segment), Number: j.number + 1, Previous: j.hash, Chains: []format.Head{}}
	for _, organization := range []string{acme, other} {
		if chain := j.chains[organization]; chain != nil {
			c.Chains = append(c.Chains, format.HeadOf(chain))
		}
	}
	c.Chains = append(c.Chains, format.Head{Organization: acme, Segment: storage.AuditStoreSegment, Sequence: 77, Hash: "cd"})
	if change != nil {
		change(&c)
	}
	signed := c.Sign(j.key)
	j.number, j.hash = j.number+1, format.CheckpointHash(&signed)
	j.add(format.AppendCheckpoint(nil, &signed))
}

// text returns lines of the segment.
func (j *journal) text(from, to int) []byte { return []byte(joined(j.lines[from:to])) }

func joined(lines []string) string {
	var all []byte
	for _, line := range lines {
		all = append(all, line...)
	}
	return string(all)
}

// write writes the segment's file with the first of its lines, and a ring with all of them. It returns the directory.
func (j *journal) write(t *testing.T, inFile int) string {
	t.Helper()
	const head, size = 4096, 1 << 20
	dir := filepath.Join(t.TempDir(), j.node)
	all := j.text(0, len(j.lines))
	ring := append(make([]byte, head), append(slices.Clone(all), make([]byte, size-len(all))...)...)
	copy(ring, "durring1")
	binary.NativeEndian.PutUint64(ring[8:], uint64(j.segment))
	binary.NativeEndian.PutUint64(ring[16:], uint64(len(all)))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string][]byte{Path(dir, j.segment): j.text(0, inFile), filepath.Join(dir, former.RingName): ring} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
