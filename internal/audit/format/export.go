package format

import (
	"encoding/hex"
	"encoding/json"

	"github.com/durward-gateway/durward/storage"
)

// Exported is the form of a record in sinks and exports: one line of NDJSON.
type Exported struct {
	Organization string          `json:"organization_id"`
	Node         string          `json:"node"`
	Segment      string          `json:"segment"`
	Sequence     int64           `json:"sequence"`
	Previous     string          `json:"previous"` // hex
	Hash         string          `json:"hash"`
	Entry        json.RawMessage `json:"entry"`
	// Text is the text that is hashed: the entry's short form. It is "" when Entry is hashed.
	Text string `json:"text,omitempty"`
}

// Export returns the exported form of a record.
func Export(r *storage.AuditRecord) Exported {
	e := Exported{
		Organization: r.OrganizationID, Node: r.Node, Segment: r.Segment, Sequence: r.Sequence,
		Previous: hex.EncodeToString(r.Previous[:]), Hash: hex.EncodeToString(r.Hash[:]), Entry: LongText(r.Text),
	}
	if IsShort(r.Text) {
		e.Text = string(r.Text)
	}
	return e
}

// EntryOf reads a record's entry. An error means that the record was tampered with.
func EntryOf(r *storage.AuditRecord) (e storage.AuditEntry, err error) {
	err = json.Unmarshal(LongText(r.Text), &e)
	return e, err
}
