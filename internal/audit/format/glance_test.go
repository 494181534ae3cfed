package format

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/storage"
)

// texts returns the texts of a glance, in which no member and an empty one are the same.
func (g *Glance) texts() map[string]string {
	all := map[string]string{"at": g.At.UTC().Format(time.RFC3339Nano)}
	for name, value := range map[string][]byte{
		"id": g.ID, "kind": g.Kind, "event": g.Event, "user": g.UserID, "agent": g.AgentID, "client": g.Client, "session": g.Session, "server id": g.ServerID,
		"server": g.Server, "tool": g.Tool, "decision": g.Decision, "policy": g.PolicyID, "approval": g.ApprovalID, "outcome": g.Outcome,
	} {
		all[name] = string(value)
	}
	return all
}

// TestGlance checks that a glance at a text sees what its entry has, in the short form with and without a shared part.
func TestGlance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := func(name string) string {
			return rapid.SampledFrom([]string{"", "a", "create_issue", "{[,:", "0190aaaa-0000-7000-8000-000000000001", "ü", `"`, `\`}).Draw(t, name)
		}
		e := storage.AuditEntry{
			ID: "0190aaaa-0000-7000-8000-000000000001", At: time.Unix(0, rapid.Int64Range(1, 1<<62).Draw(t, "at")).UTC(), Kind: storage.AuditCall, Event: "decision",
			UserID: word("user"), AgentID: word("agent"), Client: word("client"), Session: word("session"), ServerID: word("server"), Server: word("slug"), Tool: word("tool"),
			Decision: word("decision"), PolicyID: word("policy"), ApprovalID: word("approval"), Outcome: word("outcome"), Roles: []string{"a,b", "]"},
			Shadow: []storage.AuditShadow{{PolicyID: "p"}}, Arguments: []byte(`{"a":["}",1]}`), Detail: map[string]any{"u": "x"},
		}
		var text []byte
		switch rapid.IntRange(0, 2).Draw(t, "form") {
		case 0:
			e.Kind, e.Event = storage.AuditKind(rapid.SampledFrom([]string{"call", "admin"}).Draw(t, "kind")), rapid.SampledFrom([]string{"decision", "policy.update"}).Draw(t, "event")
			text = AppendEntry(nil, &e)
		case 1:
			text = AppendShared(AppendOwnOf(nil, &e), AppendSharedOf(nil, &e))
		default:
			Name(&e, nil)
			text = AppendShared(AppendOwnOf(nil, &e), AppendSharedOf(nil, &e))
		}
		whole, err := EntryOf(&storage.AuditRecord{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		var got, want Glance
		if want.Of(&whole); !got.Read(text) {
			return // its members have escapes
		}
		if diff := cmp.Diff(want.texts(), got.texts()); diff != "" || got.Completes {
			t.Errorf("%s: %s", text, diff)
		}
	})
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"the long form": {`{"id":"a","time":"2026-01-01T00:00:00Z"}`, false}, "no JSON": {`{"i":"a","t":1,"u":"`, false}, "no time": {`{"i":"a"}`, false}, "a brace": {`{"i":"`, false},
		"escapes": {`{"i":"a","t":1,"u":"\""}`, false}, "a number for a text": {`{"i":"a","t":1,"u":1}`, false}, "a short one": {`{"i":"a","t":1}`, true},
		"an unknown name": {`{"i":"a","t":1,"uu":1}`, false}, "no time of that form": {`{"i":"a","t":"x"}`, false},
	} {
		if got := new(Glance).Read([]byte(c.text)); got != c.ok {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, e := range []storage.AuditEntry{
		{Call: "0190aaaa-0000-7000-8000-000000000001", At: time.Unix(1, 0), Kind: storage.AuditCall, Event: "outcome", Outcome: "ok"},
		{ID: "x", At: time.Unix(1, 0), Kind: storage.AuditCall, Event: "outcomes", Outcomes: []storage.AuditOutcome{{Call: "y", At: time.Unix(1, 0), Outcome: "ok"}}},
	} {
		var read, of Glance
		if of.Of(&e); !of.Completes || !read.Read(AppendEntry(nil, &e)) || !read.Completes {
			t.Errorf("%s completes no other", e.Event)
		}
	}
}

// FuzzGlance checks that no text makes a glance panic.
func FuzzGlance(f *testing.F) {
	for _, text := range []string{`{"i":"a","t":1,"u":"b"}`, `{"I":"a","t":1,"0":{"u":"b"}}`, `{"i":"a","t":1,"2":{"a":[`, `{"i":"\`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(_ *testing.T, text []byte) { new(Glance).Read(text) })
}
