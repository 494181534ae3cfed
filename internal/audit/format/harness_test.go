package format

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	acme  = "0190aaaa-0000-7000-8000-000000000001"
	other = "0190aaaa-0000-7000-8000-000000000002"
)

// intent returns an entry as a call makes it.
func intent(tool string) *storage.AuditEntry {
	now := time.Now()
	return &storage.AuditEntry{
		ID: NewID(now), At: now, Kind: storage.AuditCall, Event: "decision", UserID: "0190bbbb-0000-7000-8000-000000000001", AgentID: "0190cccc-0000-7000-8000-000000000001",
		Client: "dev-agent", ServerID: "0190dddd-0000-7000-8000-000000000001", Server: "demo", Method: "tools/call", Tool: tool, Decision: "allow",
		Rule: "everything", PolicyID: "0190eeee-0000-7000-8000-000000000001", PolicyRevision: 3,
		ArgumentsDigest: "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4",
	}
}

// plainOutcome returns an outcome that may share a record with others.
func plainOutcome(e *storage.AuditEntry) *storage.AuditOutcome {
	return &storage.AuditOutcome{Call: e.ID, At: e.At.Add(1234567), Outcome: "ok", Duration: 1234567, UpstreamStatus: 200}
}

// FuzzLongText checks that the long form of any record is JSON.
func FuzzLongText(f *testing.F) {
	e := intent("create_issue")
	e.At, e.ID = time.Unix(1_800_000_000, 0), "0190ffff-0000-7000-8000-000000000001"
	e.Detail, e.Roles = map[string]any{"a": []any{"\"}", 1.5, nil}}, []string{"x,y"}
	f.Add(AppendEntry(nil, e))
	f.Add(AppendEntry(nil, &storage.AuditEntry{At: e.At, Call: e.ID, Kind: storage.AuditCall, Event: "outcome"}))
	f.Add(AppendShared(AppendOwnOf(nil, e), AppendSharedOf(nil, e)))
	f.Add(AppendEntry(nil, &storage.AuditEntry{
		ID: e.ID, At: e.At, Kind: storage.AuditCall, Event: "outcomes", Outcomes: []storage.AuditOutcome{*plainOutcome(e), {Call: "\"],[", At: e.At}},
	}))
	f.Add([]byte(`{"i":"","B":[["",0,{"B":[]},[1],null]],"t":1}`))
	f.Add([]byte(`{"i":"","t":1}`))
	f.Add([]byte(`{"i":"AAAAAAAAAA","g":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","t":1,"B":[["AAAAAAAAAA",-1,"",9223372036854775807,1]]}`))
	f.Add([]byte(`{"I":"AAAAAAAAAA","t":-9223372036854775808,"0":{}}`))
	f.Add([]byte(`{"I":"","j":{"a":1,"0":{}}}`))
	f.Add([]byte(`{"i":"x" , "t" : 1 }`))
	f.Add([]byte(`{"i":"\"","j":{"a":[",]}"]},"zz":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if long := LongText(text); !json.Valid(long) {
			t.Errorf("%q becomes %q", text, long)
		}
		TimeOf(text)
		NanosOf(text)
	})
}
