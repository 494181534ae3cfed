package app

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/audit"
	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/audit/record/recordtest"
	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/internal/policy/evaluator"
	"github.com/durward-gateway/durward/storage"
)

// BenchmarkAuditCall measures the cost of the audit log for a call to a server that a policy allows: its intent, its
// outcome, and bringing them to a store, without the store.
func BenchmarkAuditCall(b *testing.B) {
	ignore := func(*audit.Trail) {}
	log := record.New(record.Settings{}, record.Place{Dir: b.TempDir(), Store: recordtest.Store{}, Now: time.Now}, record.NewTrail(ignore, ignore))
	log.SetKeys(recordtest.Keys{}, recordtest.Keys{})
	opened, err := log.Open()
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	core := &Core{Audit: log, Reader: inbound.New(inbound.Options{MaxBody: 1 << 20})}
	who := &authn.Caller{
		OrganizationID: "018f3c2e-0000-7000-8000-00000000000a", UserID: "018f3c2e-0000-7000-8000-0000000000a1", Subject: "alice",
		Agent: "dev-agent", Roles: []string{"dev", "ops"}, Groups: []string{"eng"},
	}
	server := &storage.Server{ID: "018f3c2e-0000-7000-8000-00000000000b", Slug: "github"}
	r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/mcp/github",
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_issue","arguments":{"repository":"acme/shop","title":"a word"}}}`))
	r.Header.Set("Content-Type", "application/json")
	first := &Call{Core: core, Caller: who, Server: server}
	in, ok := first.ReadInbound(httptest.NewRecorder(), r)
	if !ok {
		b.Fatal("unreadable")
	}
	judged := evaluator.Judged{Call: engine.Call{Name: "create_issue", Arguments: in.Single().Arguments}}
	judged.Decision = engine.Decision{Effect: engine.Allow, Rule: "everything", PolicyID: "018f3c2e-0000-7000-8000-00000000000c", Revision: 3}
	call := new(Call)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%16 == 0 {
			runtime.Gosched() // as a call does that waits for its upstream
		}
		call.Core, call.Caller, call.Server, call.Inbound, call.audit = core, who, server, in, callAudit{}
		call.Decision = &call.decision
		call.judged[0] = judged
		call.Judged = call.judged[:]
		if err := call.Records().Intent(b.Context()); err != nil {
			b.Fatal(err)
		}
		call.Records().Outcome("ok", http.StatusOK)
		call.Records().Finish(b.Context())
	}
}
