package storage

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"sync/atomic"
	"time"
)

// AuditKind is the kind of event that an audit record describes.
type AuditKind string

// Kinds of audit records.
const (
	AuditCall       AuditKind = "call"       // a decision on a call or stream, and its outcome
	AuditCredential AuditKind = "credential" // a credential was stored, refreshed, used, revoked
	AuditAdmin      AuditKind = "admin"      // a write through the API
	AuditLogin      AuditKind = "login"      // a login, a refused token, a revoked user
	AuditApproval   AuditKind = "approval"   // a held call, and the decision on it
)

// AuditEntry describes one event. Members that do not apply are empty and left out of its JSON.
type AuditEntry struct {
	ID    string    `json:"id"` // uuid v7
	At    time.Time `json:"time"`
	Kind  AuditKind `json:"kind"`
	Event string    `json:"event"` // the name of the event: "decision", "outcome", "approval.approved", "policy.update", ...
	// Call is the id of the entry that this one completes: an outcome completes an intent.
	Call string `json:"call,omitempty"`

	UserID  string `json:"user_id,omitempty"`
	AgentID string `json:"agent_id,omitempty"`
	Client  string `json:"client,omitempty"`  // external id of the agent
	Session string `json:"session,omitempty"` // the client's tracking tag

	ServerID string `json:"mcp_server_id,omitempty"`
	Server   string `json:"server,omitempty"` // slug
	Method   string `json:"method,omitempty"`
	Tool     string `json:"tool,omitempty"` // or the uri, or the prompt's name

	Decision       string        `json:"decision,omitempty"` // allow, deny, ask, off
	Rule           string        `json:"rule,omitempty"`
	PolicyID       string        `json:"policy_id,omitempty"`
	PolicyRevision int           `json:"policy_revision,omitempty"`
	ApprovalID     string        `json:"approval_id,omitempty"`
	Shadow         []AuditShadow `json:"shadow,omitempty"`
	// Roles and Groups are those of the caller when policies decided; a replay of policies uses them. They are nil
	// when no policy was asked, or when they are not recorded.
	Roles  []string `json:"roles,omitzero"`
	Groups []string `json:"groups,omitzero"`

	ArgumentsDigest string          `json:"arguments_digest,omitempty"`
	Arguments       json.RawMessage `json:"arguments,omitempty"`

	Outcome        string         `json:"outcome,omitempty"`
	Duration       time.Duration  `json:"duration_ns,omitempty"`
	UpstreamStatus int            `json:"upstream_status,omitempty"`
	TraceID        string         `json:"trace_id,omitempty"`
	Detail         map[string]any `json:"detail,omitempty"`

	// Outcomes lists the outcomes of several calls, when the entry is of event "outcomes". It then says nothing else.
	Outcomes []AuditOutcome `json:"outcomes,omitempty"`
}

// AuditOutcome describes the outcome of a call, without the call's other facts.
type AuditOutcome struct {
	Call           string        `json:"call"` // the id of the entry that it completes
	At             time.Time     `json:"time"`
	Outcome        string        `json:"outcome"`
	Duration       time.Duration `json:"duration_ns,omitempty"`
	UpstreamStatus int           `json:"upstream_status,omitempty"`
}

// AuditShadow describes how a draft would have decided otherwise.
type AuditShadow struct {
	PolicyID string `json:"policy_id"`
	Revision int    `json:"policy_revision"`
	Decision string `json:"decision"`
	Rule     string `json:"rule,omitempty"`
}

// AuditRecord is an entry in its chain. OrganizationID is "" for events of the gateway itself, such as a token from
// which no organization could be told. There is one chain for each organization, node and segment; Sequence counts
// from 1 in it, without gaps.
type AuditRecord struct {
	OrganizationID string
	Node           string
	Segment        string
	Sequence       int64
	// Text is the entry's JSON, the bytes that are hashed.
	Text []byte
	// Previous is the hash of the record before it in the chain; zero for the first one.
	Previous, Hash [sha256.Size]byte
	// MAC shows that the gateway has written the record. Zero means that there is none, or that another record's MAC
	// covers it.
	MAC AuditMAC
	// At is the time under which AuditRecords found the record: its entry's time, in microseconds. No hash covers it.
	// It is zero in records from elsewhere.
	At time.Time
}

// AuditChain describes the end of a chain, which the next record follows.
type AuditChain struct {
	OrganizationID, Node, Segment string
	Sequence                      int64 // of the last record; 0: none yet
	Hash                          [sha256.Size]byte
	MAC                           AuditMAC // of the last record, in the store's own segment; zero: it has none
}

// AuditMAC is a MAC that only a holder of the master key can make for a record. It covers the chain's name, the
// record's sequence and its hash, which covers the text and all records before it. Zero means none.
type AuditMAC [20]byte

// AuditMACs makes and checks MACs, like seal.MAC.
type AuditMACs interface {
	AppendMAC(to, message []byte) []byte
	CheckMAC(message, mac []byte) bool
}

// NameHash returns the hash of the chain's name.
func (c *AuditChain) NameHash() [sha256.Size]byte {
	return sha256.Sum256(c.AppendName([]byte("durward audit chain\x00")))
}

// AppendName appends the chain's name, each part with its length.
func (c *AuditChain) AppendName(b []byte) []byte {
	for _, field := range [...]string{c.OrganizationID, c.Node, c.Segment} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(field)))
		b = append(b, field...)
	}
	return b
}

// placeName is the number of bytes of the hash of a chain's name that a MAC covers: with the rest of a place they
// fill one block of SHA-256.
const placeName = 15

// AppendPlace appends the input for the MAC of the chain's last record. name is its NameHash.
func (c *AuditChain) AppendPlace(b []byte, name *[sha256.Size]byte) []byte {
	b = binary.BigEndian.AppendUint64(append(b, name[:placeName]...), uint64(c.Sequence))
	return append(b, c.Hash[:]...)
}

// Sealed makes the MAC of the chain's last record.
func (c *AuditChain) Sealed(macs AuditMACs) (mac AuditMAC) {
	name := c.NameHash()
	copy(mac[:], macs.AppendMAC(nil, c.AppendPlace(nil, &name)))
	return mac
}

// SealedBy reports whether a MAC is that of the chain's last record.
func (c *AuditChain) SealedBy(macs AuditMACs, mac *AuditMAC) bool {
	name := c.NameHash()
	return macs.CheckMAC(c.AppendPlace(nil, &name), mac[:])
}

// Next appends a text to the chain: it returns the record and moves the end of the chain on. The hash covers the
// previous hash, the chain's name, the sequence and the text, each length-prefixed.
func (c *AuditChain) Next(text []byte) AuditRecord {
	r := AuditRecord{OrganizationID: c.OrganizationID, Node: c.Node, Segment: c.Segment, Sequence: c.Sequence + 1, Text: text, Previous: c.Hash}
	r.Hash = r.Sum()
	c.Sequence, c.Hash = r.Sequence, r.Hash
	return r
}

// Sum computes the correct value of Hash.
func (r *AuditRecord) Sum() [sha256.Size]byte {
	h := sha256.New()
	var number [8]byte
	h.Write(r.Previous[:])
	for _, field := range [][]byte{[]byte(r.OrganizationID), []byte(r.Node), []byte(r.Segment), r.Text} {
		binary.BigEndian.PutUint64(number[:], uint64(len(field)))
		h.Write(number[:])
		h.Write(field)
	}
	binary.BigEndian.PutUint64(number[:], uint64(r.Sequence))
	h.Write(number[:])
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return sum
}

// AuditChunk is a sequence of records of one chain, as a node's journal ships them to the store.
type AuditChunk struct {
	OrganizationID, Node, Segment string
	First, Last                   int64 // sequences
	From, To                      time.Time
	// Data holds the records in the form that internal/audit defines; no driver looks inside.
	Data []byte
	// MAC is that of the last record, whose hash covers the others; zero: there is none.
	MAC AuditMAC
}

// AuditFilter selects entries of an organization's audit log, newest first. Zero members do not narrow.
type AuditFilter struct {
	OrganizationID string
	From, To       time.Time // To is exclusive
	Limit          int       // 0: everything
}

// AuditCheckpoint ties segments together: a signed statement of the ends of all chains of a node's segment.
// internal/audit defines Data and its signature.
type AuditCheckpoint struct {
	Node      string
	Segment   string
	Number    int64 // from 1, over all segments of the node
	At        time.Time
	Data      []byte
	Signature []byte
}

// auditKey is the context key of WithAudit.
type auditKey struct{}

// Audited holds the entries for a write, which are recorded in the write's own transaction.
type Audited struct {
	OrganizationID string
	Node           string
	Entries        []AuditEntry
	// MACs makes the records' MACs, and checks the MAC of the record before them: a chain that an attacker has
	// continued is not continued. nil means no MACs.
	MACs AuditMACs
	// Committed, when set, is called after the commit with the records. It must not block or call the store.
	Committed func([]AuditRecord)

	recorded atomic.Bool
}

// Claim reports whether the entries still have to be recorded: true for the first transaction that asks. It is for
// drivers. A transaction that claims and then fails calls Release.
func (a *Audited) Claim() bool { return a.recorded.CompareAndSwap(false, true) }

// Release returns the entries to the next transaction.
func (a *Audited) Release() { a.recorded.Store(false) }

// WithAudit makes the next committed write of the store under ctx record the entries in its own transaction, in the
// chain (organization, node, segment AuditStoreSegment): either both are durable or neither is. Reads, and writes
// that change nothing, record nothing.
func WithAudit(ctx context.Context, a *Audited) context.Context {
	return context.WithValue(ctx, auditKey{}, a)
}

// AuditOf returns the value of WithAudit, nil when there is none. Drivers call it when they commit.
func AuditOf(ctx context.Context) *Audited {
	a, _ := ctx.Value(auditKey{}).(*Audited)
	return a
}

// AuditStoreSegment is the segment of the records that the store writes in the transactions that they describe.
const AuditStoreSegment = "store"
