package format

import (
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
