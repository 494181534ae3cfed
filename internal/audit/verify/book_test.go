package verify

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

const (
	acme  = "0190aaaa-0000-7000-8000-000000000001"
	other = "0190aaaa-0000-7000-8000-000000000002"

	nodeA = "00000000000000aa"
	nodeB = "00000000000000bb"
)

// start is the time of the first record.
var start = time.Unix(1_800_000_000, 0).UTC()

// key signs checkpoints and makes MACs.
type key ed25519.PrivateKey

func (k key) Sign(message []byte) []byte { return ed25519.Sign(ed25519.PrivateKey(k), message) }

func (k key) Verify(message, signature []byte) bool {
	return ed25519.Verify(ed25519.PrivateKey(k).Public().(ed25519.PublicKey), message, signature)
}

func (k key) AppendMAC(to, message []byte) []byte {
	h := hmac.New(sha256.New, k)
	h.Write(message)
	return append(to, h.Sum(nil)[:len(storage.AuditMAC{})]...)
}

func (k key) CheckMAC(message, mac []byte) bool { return hmac.Equal(k.AppendMAC(nil, message), mac) }

// gateway is the key of the gateway.
var gateway = key(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))

// book is a store that tests write as gateways do. The store's answers are in the order in which the facts were written.
type book struct {
	records     []storage.AuditRecord
	chunks      []storage.AuditChunk
	checkpoints []storage.AuditCheckpoint
	ends        map[storage.AuditChain]storage.AuditChain           // by name
	last        map[string]format.Checkpoint                        // by node
	heads       func(all []storage.AuditChain) []storage.AuditChain // nil: the ends as they are
	before      func(call string) error                             // comes before each call; nil: nothing does
	calls       map[string]int
	limit       int // the largest number of chunks that was asked for
}

func (b *book) called(call string) error {
	if b.before == nil {
		return nil
	}
	if b.calls == nil {
		b.calls = make(map[string]int)
	}
	b.calls[call]++
	return b.before(call + strings.Repeat(" again", b.calls[call]-1))
}

func (b *book) AuditChains(context.Context, string) ([]storage.AuditChain, error) {
	err := b.called("chains")
	var all []storage.AuditChain
	for _, c := range b.ends {
		all = append(all, c)
	}
	if b.heads != nil {
		all = b.heads(all)
	}
	return all, err
}

func (b *book) AuditChunks(_ context.Context, f storage.AuditFilter) ([]storage.AuditChunk, error) {
	err := b.called("chunks")
	b.limit = max(b.limit, f.Limit)
	all := slices.DeleteFunc(slices.Clone(b.chunks), func(c storage.AuditChunk) bool {
		return c.OrganizationID != f.OrganizationID || !f.To.IsZero() && !c.From.Before(f.To)
	})
	slices.SortStableFunc(all, func(a, b storage.AuditChunk) int { return b.To.Compare(a.To) })
	return all[:min(f.Limit, len(all))], err
}

func (b *book) AuditRecords(_ context.Context, f storage.AuditFilter) ([]storage.AuditRecord, error) {
	err := b.called("records")
	return slices.DeleteFunc(slices.Clone(b.records), func(r storage.AuditRecord) bool { return r.OrganizationID != f.OrganizationID }), err
}

func (b *book) AuditCheckpoints(context.Context, string) ([]storage.AuditCheckpoint, error) {
	err := b.called("checkpoints")
	return slices.Clone(b.checkpoints), err
}

func (b *book) end(organization, node, segment string) storage.AuditChain {
	name := format.ChainOf(organization, node, segment)
	if c, ok := b.ends[name]; ok {
		return c
	}
	return name
}

func (b *book) setEnd(c storage.AuditChain) {
	if b.ends == nil {
		b.ends = make(map[storage.AuditChain]storage.AuditChain)
	}
	b.ends[format.ChainOf(c.OrganizationID, c.Node, c.Segment)] = c
}

// own writes a record of the store itself. by (nil: none) makes its MAC.
func (b *book) own(organization, node string, at time.Time, by key) {
	c := b.end(organization, node, storage.AuditStoreSegment)
	r := c.Next(format.Marshal(storage.AuditEntry{At: at, Kind: storage.AuditAdmin, Event: "policy.update"}))
	r.At, c.MAC = at.Truncate(format.Precision), storage.AuditMAC{}
	if by != nil {
		r.MAC = c.Sealed(by)
		c.MAC = r.MAC
	}
	b.records = append(b.records, r)
	b.setEnd(c)
}

// ship writes a chunk with records of these times. by (nil: none) makes its MAC.
func (b *book) ship(organization, node, segment string, by key, times ...time.Time) {
	c := b.end(organization, node, segment)
	body := format.AppendChunkHead(nil, &c.Hash)
	chunk := storage.AuditChunk{OrganizationID: organization, Node: node, Segment: segment, First: c.Sequence + 1, Last: c.Sequence + int64(len(times))}
	for _, at := range times {
		text := entryAt(at)
		hash, _ := format.Next(&c, text, nil)
		body = format.AppendChunkRecord(body, &hash, text)
	}
	format.SetLast(body, &c.Hash)
	chunk.Data = format.AppendChunk(nil, body)
	chunk.From, chunk.To = format.ChunkSpan(slices.MinFunc(times, time.Time.Compare).UnixNano(), slices.MaxFunc(times, time.Time.Compare).UnixNano())
	if by != nil {
		chunk.MAC = c.Sealed(by)
	}
	b.chunks = append(b.chunks, chunk)
	b.setEnd(c)
}

// entryAt returns the text of a record in a journal.
func entryAt(at time.Time) []byte {
	return format.AppendEntry(nil, &storage.AuditEntry{ID: "call", At: at, Kind: storage.AuditCall, Event: "decision"})
}

// sign writes a checkpoint over all chains of the store's own records and of the segment. edit (nil: nothing) changes it
// before it is signed.
func (b *book) sign(node, segment string, at time.Time, edit func(c *format.Checkpoint)) {
	c := b.last[node]
	c = format.Checkpoint{Format: format.CheckpointFormat, Node: node, Segment: segment, Number: c.Number + 1, Time: at, Previous: c.Previous, Chains: []format.Head{}}
	for _, end := range b.ends {
		if end.Node == node && (end.Segment == segment || end.Segment == storage.AuditStoreSegment) {
			c.Chains = append(c.Chains, format.HeadOf(&end))
		}
	}
	b.checkpoints = append(b.checkpoints, b.signed(c, edit))
}

// signed signs a checkpoint that the node's next one follows. edit (nil: nothing) changes it before.
func (b *book) signed(c format.Checkpoint, edit func(c *format.Checkpoint)) storage.AuditCheckpoint {
	if edit != nil {
		edit(&c)
	}
	signed := c.Sign(gateway)
	if b.last == nil {
		b.last = make(map[string]format.Checkpoint)
	}
	b.last[c.Node] = format.Checkpoint{Number: c.Number, Previous: format.CheckpointHash(&signed)}
	return signed
}

func final(c *format.Checkpoint) { c.Final = true }

// unsealed makes a checkpoint one of a durward without MACs, and final.
func unsealed(c *format.Checkpoint) { c.Format, c.Final = format.BareCheckpointFormat, true }

// found makes a checkpoint one over records that the signer only found, and final.
func found(c *format.Checkpoint) { c.Found, c.Final = true, true }

// verify returns the report of a verification of the book alone.
func (b *book) verify(t *testing.T) Report {
	t.Helper()
	report, err := Log(t.Context(), Journals{}, b, Keys{Signatures: gateway, MACs: gateway})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// texts returns the findings of a report in order.
func texts(r Report) []string {
	var all []string
	for _, f := range r.Findings {
		all = append(all, f.String())
	}
	slices.Sort(all)
	return all
}
