package app

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/audit"
	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/audit/record/recordtest"
	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/storage"
)

// keptRecords is a sink that keeps the records that it gets.
type keptRecords struct {
	mu  sync.Mutex
	all []storage.AuditEntry
}

func (*keptRecords) Name() string { return "test" }

func (k *keptRecords) Write(_ context.Context, records []format.Exported) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range records {
		var e storage.AuditEntry
		if err := json.Unmarshal(r.Entry, &e); err != nil {
			return err
		}
		k.all = append(k.all, e)
	}
	return nil
}

func (*keptRecords) Close() error { return nil }

// TestAuditBestEffort checks that a call that went on without its intent has one record in the end, which says when it
// began, how long it took and what the upstream said. One that was refused says no more than that.
func TestAuditBestEffort(t *testing.T) {
	kept := new(keptRecords)
	ignore := func(*audit.Trail) {}
	log := record.New(record.Settings{}, record.Place{Dir: t.TempDir(), Store: recordtest.Store{}, Now: time.Now}, record.NewTrail(ignore, ignore))
	log.SetKeys(recordtest.Keys{}, recordtest.Keys{})
	opened, err := log.Open()
	if err != nil {
		t.Fatal(err)
	}
	opened.SetSinks([]audit.Sink{kept})
	core := &Core{Audit: log, Reader: inbound.New(inbound.Options{MaxBody: 1 << 20})}
	began := time.Now().Add(-time.Minute)
	for _, refused := range []error{nil, audit.ErrUnavailable} {
		call := &Call{Core: core, Caller: &authn.Caller{OrganizationID: "018f3c2e-0000-7000-8000-00000000000a"}, Server: &storage.Server{ID: "018f3c2e-0000-7000-8000-00000000000b"}}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp/github", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}`))
		r.Header.Set("Content-Type", "application/json")
		if _, ok := call.ReadInbound(httptest.NewRecorder(), r); !ok {
			t.Fatal("unreadable")
		}
		call.Decision = &call.decision
		call.audit.started, call.audit.refused = began, refused
		call.Records().Outcome("ok", http.StatusOK)
		call.Records().Finish(t.Context())
	}
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	if len(kept.all) != 2 {
		t.Fatalf("%+v", kept.all)
	}
	if e := kept.all[0]; !e.At.Equal(began) || e.Duration < time.Minute || e.UpstreamStatus != http.StatusOK || e.Outcome != "ok" {
		t.Errorf("%+v", e)
	}
	if e := kept.all[1]; e.Duration != 0 || e.UpstreamStatus != 0 {
		t.Errorf("%+v", e)
	}
}
