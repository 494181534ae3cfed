package record

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/audit"
	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/query"
	"github.com/durward-gateway/durward/internal/audit/record/recordtest"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
)

// log is an audit log with a store, and an organization in it.
type log struct {
	*Recorder
	t               *testing.T
	organization    string
	now             time.Time
	watched, forgot []*audit.Trail
}

func newLog(t *testing.T, settings Settings) *log {
	t.Helper()
	l := &log{t: t, now: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)}
	store := sqlitetest.Open(t)
	o, err := store.ResolveOrganization(t.Context(), storage.OrganizationClaim{Issuer: "https://id.test", ID: "o"}, l.now)
	if err != nil {
		t.Fatal(err)
	}
	l.organization = o.ID
	trail := NewTrail(func(o *audit.Trail) { l.watched = append(l.watched, o) }, func(o *audit.Trail) { l.forgot = append(l.forgot, o) })
	l.Recorder = New(settings, Place{Dir: t.TempDir(), Store: store, Now: func() time.Time { return l.now }}, trail)
	l.SetKeys(recordtest.Keys{}, recordtest.Keys{})
	t.Cleanup(func() { _ = trail.Close() })
	return l
}

// entries returns what was recorded, oldest first.
func (l *log) entries() (found []storage.AuditEntry) {
	l.t.Helper()
	if err := l.Records(l.t.Context(), l.organization, time.Unix(0, 0), l.now.Add(time.Hour), func(r *storage.AuditRecord) error {
		e, err := format.EntryOf(r)
		found = append(found, e)
		return err
	}); err != nil {
		l.t.Fatal(err)
	}
	return found
}

// TestEvent checks that an event is recorded with what its caller left out.
func TestEvent(t *testing.T) {
	l := newLog(t, Settings{})
	if err := l.Event(t.Context(), l.organization, storage.AuditEntry{Event: "bare"}); err != nil {
		t.Fatal(err)
	}
	before := l.now.Add(-time.Minute)
	given := storage.AuditEntry{Event: "given", At: before, ID: format.NewID(before), Kind: storage.AuditLogin}
	if err := l.Event(t.Context(), l.organization, given); err != nil {
		t.Fatal(err)
	}
	all := l.entries()
	if len(all) != 2 {
		t.Fatalf("%+v", all)
	}
	at := func(event string) storage.AuditEntry {
		return all[slices.IndexFunc(all, func(e storage.AuditEntry) bool { return e.Event == event })]
	}
	if e := at("bare"); !e.At.Equal(l.now) || e.Kind != storage.AuditAdmin || len(e.ID) != len(given.ID) {
		t.Errorf("%+v", e)
	}
	if e := at("given"); !e.At.Equal(before) || e.Kind != storage.AuditLogin || e.ID != given.ID {
		t.Errorf("%+v", e)
	}
	if page, err := l.Query(t.Context(), query.Filter{OrganizationID: l.organization, To: l.now.Add(time.Hour)}, storage.PageRequest{Number: 1}); err != nil || page.Total != 2 {
		t.Errorf("%d rows, %v", page.Total, err)
	}
}

// TestWith checks that the entry of a write is complete, and is still that of the caller until the write happens.
func TestWith(t *testing.T) {
	l := newLog(t, Settings{})
	ctx, e, err := l.With(t.Context(), l.organization, storage.AuditEntry{Event: "made"})
	if err != nil {
		t.Fatal(err)
	}
	if !e.At.Equal(l.now) || e.Kind != storage.AuditAdmin || len(e.ID) != len(format.NewID(l.now)) {
		t.Errorf("%+v", e)
	}
	if asked := storage.AuditOf(ctx); asked == nil || asked.OrganizationID != l.organization || len(asked.Entries) != 1 || &asked.Entries[0] != e {
		t.Errorf("the write records %+v", asked)
	}
}

// TestRefusals checks how refused credentials and writes are recorded, and that one user cannot fill the log.
func TestRefusals(t *testing.T) {
	l := newLog(t, Settings{})
	l.RefusedBearer(Bearer{OrganizationID: l.organization, UserID: "u", Client: "c"}, "expired", "/mcp/x")
	l.RefusedBearer(Bearer{OrganizationID: l.organization, KeyID: "k"}, "revoked", "/mcp/x")
	if err := l.LoggedIn(Bearer{OrganizationID: l.organization, UserID: "u"}, "console"); err != nil {
		t.Fatal(err)
	}
	l.Unchanged(l.organization, storage.AuditEntry{Event: "unchanged", At: l.now, ID: format.NewID(l.now), Kind: storage.AuditAdmin})
	if all := l.entries(); len(all) != 4 {
		t.Fatalf("%+v", all)
	} else {
		for _, e := range all {
			key, has := e.Detail["api_key_id"]
			switch {
			case e.Event == "token.refused" && e.UserID == "u" && e.Client == "c" && e.Detail["reason"] == "expired" && e.Detail["path"] == "/mcp/x" && !has:
			case e.Event == "token.refused" && e.UserID == "" && key == "k":
			case e.Event == "login" && e.UserID == "u" && e.Client == "console" && e.Kind == storage.AuditLogin:
			case e.Event == "unchanged":
			default:
				t.Errorf("%+v", e)
			}
			if !e.At.Equal(l.now) || e.ID == "" {
				t.Errorf("%s at %s, id %q", e.Event, e.At, e.ID)
			}
		}
	}
	const many = 500
	for range many {
		l.RefusedWrite(l.organization, storage.AuditEntry{Event: "write.refused", UserID: "mallory"})
	}
	l.RefusedWrite(l.organization, storage.AuditEntry{Event: "write.refused", UserID: "alice"})
	byUser := map[string]int{}
	for _, e := range l.entries() {
		if e.Event == "write.refused" {
			byUser[e.UserID]++
		}
	}
	if byUser["mallory"] == 0 || byUser["mallory"] >= many || byUser["alice"] != 1 {
		t.Errorf("%v", byUser)
	}
}

// TestSettings checks which traffic needs a record, and which arguments are kept.
func TestSettings(t *testing.T) {
	l := newLog(t, Settings{BestEffort: []string{"sse"}})
	if l.Required("sse") || !l.Required("mcp") || !slices.Equal(l.BestEffort(), []string{"sse"}) {
		t.Error("another kind of traffic goes on without a record")
	}
	const arguments = `{"name":"x","password":"hunter2"}`
	var e storage.AuditEntry
	if l.AddArguments(&e, []byte(arguments)); e.Arguments != nil || e.Detail != nil {
		t.Errorf("kept though nobody asked: %s", e.Arguments)
	}
	l = newLog(t, Settings{Arguments: true, Redact: []string{"name"}})
	if l.AddArguments(&e, nil); e.Arguments != nil || e.Detail != nil {
		t.Errorf("none: %s, %v", e.Arguments, e.Detail)
	}
	if l.AddArguments(&e, []byte(arguments)); string(e.Arguments) != `{"name":"REDACTED","password":"REDACTED"}` || e.Detail != nil {
		t.Errorf("%s, %v", e.Arguments, e.Detail)
	}
	for size, kept := range map[int]bool{maxKeptArguments: true, maxKeptArguments + 1: false} {
		text, err := json.Marshal(strings.Repeat("x", size-2))
		if err != nil {
			t.Fatal(err)
		}
		var e storage.AuditEntry
		if l.AddArguments(&e, text); (e.Arguments != nil) != kept || (e.Detail["arguments_bytes"] == size) == kept {
			t.Errorf("%d bytes: %d kept, %v", size, len(e.Arguments), e.Detail)
		}
	}
}

// sink hands on the records that it gets.
type sink chan format.Exported

func (sink) Name() string { return "sink" }

func (s sink) Write(_ context.Context, records []format.Exported) error {
	for _, r := range records {
		s <- r
	}
	return nil
}

func (sink) Close() error { return nil }

// TestStart checks that a configuration's sinks get the records.
func TestStart(t *testing.T) {
	l, got := newLog(t, Settings{}), make(sink, 8)
	if err := l.Start([]audit.Sink{got}); err != nil {
		t.Fatal(err)
	}
	if err := l.Event(t.Context(), l.organization, storage.AuditEntry{Event: "told"}); err != nil {
		t.Fatal(err)
	}
	if err := l.trail.Close(); err != nil { // the sink gets what waits for it
		t.Fatal(err)
	}
	select {
	case r := <-got:
		if r.Organization != l.organization || !strings.Contains(string(r.Entry), `"event":"told"`) {
			t.Errorf("%+v", r)
		}
	default:
		t.Error("the sink gets nothing")
	}
}

// TestTrailOpensOnce checks that a trail is opened with the first record, watched, and never opened again after its end.
func TestTrailOpensOnce(t *testing.T) {
	l := newLog(t, Settings{})
	if l.Opened() != nil || len(l.watched) != 0 {
		t.Error("it is open before the first record")
	}
	if err := l.Start(nil); err != nil {
		t.Fatal(err)
	}
	opened := l.Opened()
	if again, err := l.Open(); err != nil || again != opened || opened == nil || !slices.Equal(l.watched, []*audit.Trail{opened}) {
		t.Errorf("%v; it was opened %d times", err, len(l.watched))
	}
	if err := l.trail.Close(); err != nil || !slices.Equal(l.forgot, []*audit.Trail{opened}) {
		t.Errorf("%v; forgotten %d times", err, len(l.forgot))
	}
	if err := l.Event(t.Context(), l.organization, storage.AuditEntry{Event: "late"}); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("recorded after the end: %v", err)
	}
	unopened := newLog(t, Settings{})
	if err := unopened.trail.Close(); err != nil || len(unopened.forgot) != 0 {
		t.Errorf("%v; forgotten %d times", err, len(unopened.forgot))
	}
	if err := unopened.Start(nil); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("opened after its end: %v", err)
	}
	if err := unopened.Event(t.Context(), "o", storage.AuditEntry{Event: "late"}); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("recorded after the end: %v", err)
	}
	if _, _, err := unopened.With(t.Context(), "o", storage.AuditEntry{Event: "late"}); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("a write may happen after the end: %v", err)
	}
	if _, err := unopened.Query(t.Context(), query.Filter{}, storage.PageRequest{Number: 1}); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("read after the end: %v", err)
	}
	if err := unopened.Records(t.Context(), "o", time.Time{}, time.Time{}, nil); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("read after the end: %v", err)
	}
	unopened.Unchanged("o", storage.AuditEntry{Event: "late"})
	unopened.RefusedWrite("o", storage.AuditEntry{Event: "late"})
}

// TestNoRecorder checks that a nil recorder records nothing.
func TestNoRecorder(t *testing.T) {
	var r *Recorder
	if err := r.Event(t.Context(), "o", storage.AuditEntry{}); err != nil || r.BestEffort() != nil {
		t.Errorf("%v", err)
	}
	if ctx, e, err := r.With(t.Context(), "o", storage.AuditEntry{Event: "x"}); err != nil || e.Event != "x" || storage.AuditOf(ctx) != nil {
		t.Errorf("%v", err)
	}
	r.Unchanged("o", storage.AuditEntry{})
	r.RefusedWrite("o", storage.AuditEntry{})
	r.RefusedBearer(Bearer{}, "", "")
}
