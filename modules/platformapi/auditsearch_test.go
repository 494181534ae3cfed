package platformapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/internal/audit"
	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/audit/record/recordtest"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/storage"
)

// audited gives the API an audit log, and returns it.
func (a *api) audited() *audit.Trail {
	a.t.Helper()
	trail := record.NewTrail(func(*audit.Trail) {}, func(*audit.Trail) {})
	recorder := record.New(record.Settings{}, record.Place{Dir: a.t.TempDir(), Store: a.store, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return start }}, trail)
	recorder.SetKeys(recordtest.Keys{}, recordtest.Keys{})
	a.t.Cleanup(func() { _ = trail.Close() })
	a.core.Audit = recorder
	t, err := recorder.Open()
	if err != nil {
		a.t.Fatal(err)
	}
	return t
}

func (a *api) append(trail *audit.Trail, who *authn.Caller, e storage.AuditEntry) string {
	a.t.Helper()
	if e.ID = format.NewID(e.At); who != nil {
		e.UserID = who.UserID
	}
	if err := trail.Append(a.alice.OrganizationID, &e); err != nil {
		a.t.Fatal(err)
	}
	return e.ID
}

// TestAuditCursor checks the answers of the log behind a cursor, and the numbers of values.
func TestAuditCursor(t *testing.T) {
	a := newAPI(t)
	trail := a.audited()
	for i := range 25 {
		a.append(trail, a.alice, storage.AuditEntry{At: start.Add(time.Duration(i-100) * time.Second), Kind: storage.AuditCall, Event: "decision", Tool: fmt.Sprint("tool", i%2), Decision: "deny", Outcome: "denied"})
	}
	var paged, followed []any
	for page := range 3 {
		got := a.do(a.adam, http.MethodGet, fmt.Sprint("/api/audit?page=", page+1), nil).want(200)
		if paged = append(paged, got["data"].([]any)...); got["pagination"].(object)["total"] != 25.0 || got["next_cursor"] != nil || got["facets"] != nil {
			t.Errorf("a page that is counted: %v", got)
		}
	}
	cursor := ""
	for range 4 {
		got := a.do(a.adam, http.MethodGet, "/api/audit?limit=9&cursor="+cursor, nil).want(200)
		followed = append(followed, got["data"].([]any)...)
		if got["pagination"] != nil || got["partial"] != false {
			t.Errorf("%v", got)
		}
		if got["next_cursor"] == nil {
			break
		}
		cursor = got["next_cursor"].(string)
	}
	if diff := cmp.Diff(paged, followed); diff != "" || len(followed) != 25 {
		t.Errorf("%d rows (-pages +cursors)\n%s", len(followed), diff)
	}
	got := a.do(a.adam, http.MethodGet, "/api/audit?cursor=&limit=1&facets=tool,outcome,user&facets=agent&tool=tool1", nil).want(200)["facets"]
	count := func(value any) object {
		return object{"values": []any{object{"value": value, "count": 12.0}}, "others": 0.0}
	}
	want := object{"events": 12.0, "partial": false, "counted_from": "2026-02-22T12:00:00.000000Z", "values": object{
		"tool": count("tool1"), "outcome": count("denied"), "user": count(a.alice.UserID), "agent": count(nil),
	}}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Error(diff)
	}
	a.do(a.adam, http.MethodGet, "/api/audit?cursor=xx&facets=colour", nil).wantProblems("query.cursor value_error", "query.facets.0 enum")
	a.do(a.alice, http.MethodGet, "/api/audit/mine?cursor=xx&limit=0", nil).wantProblems("query.limit greater_than_equal", "query.cursor value_error")
}

// TestOwnAudit checks that users see exactly their own calls, whatever others do and whatever they ask for.
func TestOwnAudit(t *testing.T) {
	a := newAPI(t)
	trail := a.audited()
	own := make(map[string]bool)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		for range rapid.IntRange(1, 5).Draw(t, "events") {
			n++
			e := storage.AuditEntry{At: start.Add(time.Duration(n)*time.Second - 24*time.Hour), Event: "decision", Decision: "deny", Outcome: "denied", Rule: "No",
				Kind: storage.AuditKind(rapid.SampledFrom([]string{"call", "call", "admin", "login"}).Draw(t, "kind")), Tool: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tool")}
			who := rapid.SampledFrom([]*authn.Caller{a.alice, a.adam, nil}).Draw(t, "who")
			id := a.append(trail, who, e)
			own[id] = who == a.alice && e.Kind == storage.AuditCall && e.Tool == "a"
		}
		asked := rapid.SampledFrom([]string{"", "&user_id=" + a.adam.UserID, "&kind=admin", "&facets=user"}).Draw(t, "asked")
		seen, cursor := 0, ""
		for more := true; more; {
			got := a.do(a.alice, http.MethodGet, "/api/audit/mine?tool=a&limit=50&cursor="+cursor+asked, nil).want(200)
			for _, row := range got["data"].([]any) {
				if seen++; !own[row.(object)["id"].(string)] {
					t.Errorf("another's: %v", row)
				}
				if row := row.(object); row["rule"] != "No" || row["outcome"] != "denied" || row["shadow"] != nil || row["user_id"] != nil {
					t.Errorf("%v", row)
				}
			}
			if cursor, more = got["next_cursor"].(string); !more {
				break
			}
		}
		want := 0
		for _, is := range own {
			if is {
				want++
			}
		}
		if seen != want {
			t.Errorf("%d of %d own calls", seen, want)
		}
	})
	a.t = t
	nobody := *a.alice
	nobody.UserID = ""
	a.do(&nobody, http.MethodGet, "/api/audit/mine", nil).wantStatus(http.StatusForbidden)
}

// TestAuditStatus checks that the status tells the newest record, and what waits in the journal.
func TestAuditStatus(t *testing.T) {
	a := newAPI(t)
	trail := a.audited()
	status := func() object { return a.do(a.adam, http.MethodGet, "/api/audit/status", nil).want(200) }
	if got := status(); got["newest"] != nil || got["journal"].(object)["unshipped_bytes"] != 0.0 || got["journal"].(object)["segments"] != 1.0 || got["checkpoint"] != nil {
		t.Errorf("of an empty log: %v", got)
	}
	a.append(trail, a.alice, storage.AuditEntry{At: start, Kind: storage.AuditCall, Event: "decision"})
	if got := status(); got["journal"].(object)["unshipped_bytes"] == 0.0 && got["newest"] == nil {
		t.Errorf("a record is nowhere: %v", got)
	}
	a.do(a.adam, http.MethodGet, "/api/audit", nil).want(200) // ships
	got := status()
	newest, _ := got["newest"].(object)
	if newest["time"] != "2026-03-01T12:00:00.000000Z" || newest["node"] != trail.Node() || newest["sequence"] != 1.0 || got["journal"].(object)["unshipped_bytes"] != 0.0 {
		t.Errorf("%v", got)
	}
}
