package audit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/verify"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(killedVariable); dir != "" {
		appendUntilKilled(dir)
	}
	sharedSigner() // not in a synctest bubble, because other tests could not use its channels
	goleak.VerifyTestMain(m)
}

const (
	acme  = "0190aaaa-0000-7000-8000-000000000001"
	other = "0190aaaa-0000-7000-8000-000000000002"
)

// memory is a storage.Audits in memory.
type memory struct {
	mu          sync.Mutex
	chunks      []storage.AuditChunk
	records     []storage.AuditRecord
	checkpoints []storage.AuditCheckpoint
	keys        []storage.DataKey
	err         error                          // the error of every write
	poison      func(*storage.AuditChunk) bool // reports whether the store cannot keep a chunk
	heads       func([]storage.AuditChain) []storage.AuditChain
}

func (m *memory) RecordAudit(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := storage.AuditOf(ctx)
	var made []storage.AuditRecord
	for i := range a.Entries {
		chain := storage.AuditChain{OrganizationID: a.OrganizationID, Node: a.Node, Segment: storage.AuditStoreSegment}
		for _, r := range m.records {
			if r.OrganizationID == a.OrganizationID && r.Node == a.Node {
				chain.Sequence, chain.Hash, chain.MAC = r.Sequence, r.Hash, r.MAC
			}
		}
		if a.MACs != nil && chain.Sequence > 0 && !chain.SealedBy(a.MACs, &chain.MAC) {
			return storage.ErrUnavailable
		}
		r := chain.Next(format.Marshal(a.Entries[i]))
		if a.MACs != nil {
			r.MAC = chain.Sealed(a.MACs)
		}
		m.records = append(m.records, r)
		made = append(made, r)
	}
	if a.Committed != nil {
		a.Committed(made)
	}
	return nil
}

func (m *memory) AddAuditChunks(_ context.Context, chunks []storage.AuditChunk) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	var fresh []storage.AuditChunk
	for _, c := range chunks {
		if m.poison != nil && m.poison(&c) {
			return storage.ErrValue
		}
		at := slices.IndexFunc(m.chunks, func(have storage.AuditChunk) bool {
			return have.OrganizationID == c.OrganizationID && have.Node == c.Node && have.Segment == c.Segment && have.First == c.First
		})
		switch {
		case at < 0:
			c.Data = bytes.Clone(c.Data)
			fresh = append(fresh, c)
		case !bytes.Equal(m.chunks[at].Data, c.Data):
			return &storage.ConflictError{Field: "first"}
		}
	}
	m.chunks = append(m.chunks, fresh...)
	return nil
}

func (m *memory) AuditChunks(_ context.Context, f storage.AuditFilter) ([]storage.AuditChunk, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []storage.AuditChunk
	for _, c := range m.chunks {
		if c.OrganizationID == f.OrganizationID && (f.From.IsZero() || !c.To.Before(f.From)) && (f.To.IsZero() || c.From.Before(f.To) || c.From.After(c.To)) {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b storage.AuditChunk) int { return b.To.Compare(a.To) })
	if f.Limit > 0 {
		all = all[:min(f.Limit, len(all))]
	}
	return all, nil
}

func (m *memory) AuditRecords(_ context.Context, f storage.AuditFilter) ([]storage.AuditRecord, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []storage.AuditRecord
	for _, r := range slices.Backward(m.records) {
		at := format.TimeOf(r.Text)
		if r.OrganizationID == f.OrganizationID && (f.From.IsZero() || !at.Before(f.From)) && (f.To.IsZero() || at.Before(f.To)) {
			if r.At.IsZero() {
				r.At = at.Truncate(format.Precision)
			}
			all = append(all, r)
		}
	}
	return all, nil
}

func (m *memory) AuditChains(_ context.Context, node string) ([]storage.AuditChain, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := make(map[storage.AuditChain]storage.AuditChain)
	for _, c := range m.chunks {
		name := storage.AuditChain{OrganizationID: c.OrganizationID, Node: c.Node, Segment: c.Segment}
		if last[name].Sequence < c.Last {
			chain := name
			chain.Sequence = c.Last
			last[name] = chain
		}
	}
	for _, r := range m.records {
		name := storage.AuditChain{OrganizationID: r.OrganizationID, Node: r.Node, Segment: r.Segment}
		chain := name
		chain.Sequence, chain.Hash, chain.MAC = r.Sequence, r.Hash, r.MAC
		last[name] = chain
	}
	var all []storage.AuditChain
	for _, c := range last {
		if node == "" || c.Node == node {
			all = append(all, c)
		}
	}
	if m.heads != nil {
		all = m.heads(all)
	}
	return all, nil
}

func (m *memory) AddAuditCheckpoint(_ context.Context, c storage.AuditCheckpoint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	for _, have := range m.checkpoints {
		if have.Node == c.Node && have.Number == c.Number {
			return &storage.ConflictError{Field: "number"}
		}
	}
	m.checkpoints = append(m.checkpoints, c)
	return nil
}

func (m *memory) AuditCheckpoint(_ context.Context, node string, number int64) (storage.AuditCheckpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.checkpoints {
		if c.Node == node && c.Number == number {
			return c, nil
		}
	}
	return storage.AuditCheckpoint{}, storage.ErrNotFound
}

func (m *memory) AuditCheckpoints(_ context.Context, node string) ([]storage.AuditCheckpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []storage.AuditCheckpoint
	for _, c := range m.checkpoints {
		if node == "" || c.Node == node {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b storage.AuditCheckpoint) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Number, b.Number))
	})
	return all, nil
}

func (m *memory) DataKeys(context.Context) ([]storage.DataKey, error) { return m.keys, nil }

func (m *memory) AddDataKey(_ context.Context, k storage.DataKey) error {
	m.keys = append(m.keys, k)
	return nil
}

// gatewayKeys holds the keys of a gateway.
type gatewayKeys struct {
	signer *seal.Signer
	macs   *seal.MAC
}

func newGatewayKeys() gatewayKeys {
	master, err := seal.ParseMasterKey(seal.NewMasterKey())
	if err != nil {
		panic(err)
	}
	ring, err := seal.OpenKeyring(context.Background(), []seal.MasterKey{master}, new(memory), time.Now)
	if err != nil {
		panic(err)
	}
	return gatewayKeys{ring.Signer("audit"), ring.MAC("audit")}
}

// checks returns the keys of a verification.
func (k gatewayKeys) checks() verify.Keys { return verify.Keys{Signatures: k.signer, MACs: k.macs} }

var sharedGateway = sync.OnceValue(newGatewayKeys)

func sharedSigner() *seal.Signer { return sharedGateway().signer }

func sharedKeys() verify.Keys { return sharedGateway().checks() }

func testOptions(t testing.TB, dir string) Options {
	t.Helper()
	return Options{Dir: dir, Signer: sharedSigner(), MACs: sharedGateway().macs}
}

func openJournal(t testing.TB, o Options) *Journal {
	t.Helper()
	j, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// Checkpoint writes a checkpoint now, if anything was recorded since the last one.
func (j *Journal) Checkpoint() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := errors.Join(j.usable(), j.flushAll()); err != nil || (!j.segment.moved && len(j.stored) == 0) {
		return err
	}
	return j.checkpoint(false)
}

func intent(tool string) *storage.AuditEntry {
	now := time.Now()
	return &storage.AuditEntry{
		ID: format.NewID(now), At: now, Kind: storage.AuditCall, Event: "decision", UserID: "0190bbbb-0000-7000-8000-000000000001", AgentID: "0190cccc-0000-7000-8000-000000000001",
		Client: "dev-agent", ServerID: "0190dddd-0000-7000-8000-000000000001", Server: "demo", Method: "tools/call", Tool: tool, Decision: "allow",
		Rule: "everything", PolicyID: "0190eeee-0000-7000-8000-000000000001", PolicyRevision: 3,
		ArgumentsDigest: "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4",
	}
}

func outcomeOf(e *storage.AuditEntry) *storage.AuditEntry {
	now := time.Now()
	return &storage.AuditEntry{
		At: now, Kind: e.Kind, Event: "outcome", Call: e.ID, Outcome: "ok", Duration: 1234567, UpstreamStatus: 200,
	}
}

// plainOutcome returns an outcome that may share a record with others.
func plainOutcome(e *storage.AuditEntry) *storage.AuditOutcome {
	return &storage.AuditOutcome{Call: e.ID, At: e.At.Add(1234567), Outcome: "ok", Duration: 1234567, UpstreamStatus: 200}
}

// findings returns the findings of a verification.
func findings(t testing.TB, dir string, store verify.Source) []verify.Finding {
	t.Helper()
	report, err := verify.Log(t.Context(), verify.Journals{Dir: dir, All: true}, store, sharedKeys())
	if err != nil {
		t.Fatal(err)
	}
	return report.Findings
}

func wantClean(t testing.TB, dir string, store verify.Source) verify.Report {
	t.Helper()
	report, err := verify.Log(t.Context(), verify.Journals{Dir: dir, All: true}, store, sharedKeys())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		t.Errorf("found in what nobody touched: %s", f)
	}
	return report
}

// newShipper returns a shipper for a journal without a trail.
func newShipper(j *Journal, store storage.Audits) *shipper { return shipperOf(j, store) }

// fileShipper returns a shipper as newShipper does, which reads all records from the files.
func fileShipper(j *Journal, store storage.Audits) *shipper {
	s := shipperOf(j, store)
	s.take = nil
	return s
}

var errDisk = errors.New("no space left on device")

// recordLine returns a record's line. mac may be empty.
func recordLine(organization string, sequence int64, hash *[32]byte, mac, text []byte) []byte {
	return append(append(format.AppendHead(nil, organization, sequence, hash, mac, len(text)), text...), '\n')
}

// jsonLine returns a record's line in a former segment. mac may be empty.
func jsonLine(organization string, sequence int64, hash *[32]byte, mac, text []byte) []byte {
	line := fmt.Appendf(nil, `{"o":"%s","n":%d,"h":"%s"`, organization, sequence, base64.RawURLEncoding.EncodeToString(hash[:]))
	if len(mac) > 0 {
		line = fmt.Appendf(line, `,"m":"%s"`, base64.RawURLEncoding.EncodeToString(mac))
	}
	return fmt.Appendf(line, ",\"e\":%s}\n", text)
}
