package format

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

func TestEntryOf(t *testing.T) {
	if _, err := EntryOf(&storage.AuditRecord{Text: []byte("nothing")}); err == nil {
		t.Error("what is no entry is one")
	}
	if e, err := EntryOf(&storage.AuditRecord{Text: Marshal(intent("tool"))}); err != nil || e.Tool != "tool" || !json.Valid(LongText([]byte("nothing"))) {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestExport checks that an export has the bytes that are hashed: the text of a short entry, else the entry.
func TestExport(t *testing.T) {
	e := intent("tool")
	for name, c := range map[string]struct {
		text []byte
		want string
	}{"short": {AppendEntry(nil, e), string(AppendEntry(nil, e))}, "long": {Marshal(e), ""}} {
		r := storage.AuditRecord{OrganizationID: acme, Node: "n", Segment: "s", Sequence: 7, Previous: [32]byte{1}, Hash: [32]byte{2}, Text: c.text}
		got := Export(&r)
		if got.Text != c.want || !bytes.Contains(got.Entry, []byte(`"tool":"tool"`)) || c.want == "" && !bytes.Equal(got.Entry, c.text) {
			t.Errorf("%s: %s, %s", name, got.Entry, got.Text)
		}
		if got.Organization != acme || got.Node != "n" || got.Segment != "s" || got.Sequence != 7 || got.Previous[:2] != "01" || got.Hash[:2] != "02" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
