package replay

import (
	"encoding/json"
	"testing"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// BenchmarkJudge measures one record, from its text to the count.
func BenchmarkJudge(b *testing.B) {
	j, err := NewJudge(draft(grant("all", "*"), when(deny("no", "tools/call:x"), "R.attr.n == 2")), nil)
	if err != nil {
		b.Fatal(err)
	}
	e := entry(arguments(`{"n":1,"text":"a text of some length"}`, `{ "n": 1, "text": "a text of some length" }`))
	text, err := json.Marshal(e)
	if err != nil {
		b.Fatal(err)
	}
	tally := NewTally(10)
	b.ReportAllocs()
	for b.Loop() {
		e, err := format.EntryOf(&storage.AuditRecord{Text: text})
		if err != nil {
			b.Fatal(err)
		}
		verdict, d, missing, err := j.Judge(b.Context(), &e)
		if err != nil || verdict != Same {
			b.Fatal(verdict, err)
		}
		tally.Add(verdict, &d, missing)
	}
}
