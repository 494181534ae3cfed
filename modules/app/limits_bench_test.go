package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/ratelimit/admission"
	"github.com/durward-gateway/durward/internal/ratelimit/admission/admissiontest"
	"github.com/durward-gateway/durward/storage"
)

// BenchmarkLimits measures the cost of limits for a call to a server that is read already: the look, the charge, the
// counting of its answer when a limit counts tokens, and the end. A token that calls one server is the usual case; "two
// servers" is one that calls them in turn.
func BenchmarkLimits(b *testing.B) {
	most := int64(1 << 40)
	rate := func(scope storage.ScopeType, value string, tokens bool) storage.RateLimit {
		l := storage.RateLimit{ID: string(scope), OrganizationID: "acme", Scope: storage.Scope{Type: scope, Value: value}, Traffic: storage.TrafficAll, Enabled: true, RequestsPerMinute: &most}
		if tokens {
			l.TokensPerMinute = &most
		}
		return l
	}
	one := admissiontest.Limits{rate(storage.ScopeUser, "", false)}
	four := admissiontest.Limits{rate(storage.ScopeOrganization, "", false), rate(storage.ScopeUser, "", false), rate(storage.ScopeMCPServer, "github", false), rate(storage.ScopeRole, "dev", false)}
	tokens := append(admissiontest.Limits{rate(storage.ScopeOrganization, "", true)}, four[1:]...)
	both := admissiontest.Limits{rate(storage.ScopeOrganization, "", true), rate(storage.ScopeUser, "", true), rate(storage.ScopeMCPServer, "github", true), rate(storage.ScopeRole, "dev", true)}
	answer := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat("word ", 40) + `"}]}}`)
	for _, bc := range []struct {
		name    string
		off     bool
		servers int
		limits  admissiontest.Limits
	}{
		{"off", true, 1, nil}, {"no limits", false, 1, nil}, {"one limit", false, 1, one}, {"four limits", false, 1, four},
		{"four limits, one with tokens", false, 1, tokens}, {"four limits with tokens", false, 1, both}, {"four limits, two servers", false, 2, four},
	} {
		b.Run(bc.name, func(b *testing.B) {
			core := &Core{Admitter: admissiontest.New(b, new(cache.Epochs), bc.limits, time.Now), Reader: inbound.New(inbound.Options{MaxBody: 1 << 20})}
			who, notes := &authn.Caller{OrganizationID: "acme", UserID: "u", Subject: "alice", Email: "alice@example.com", Roles: []string{"dev", "ops"}, Groups: []string{"eng"}}, new(bearerNotes)
			servers := []*storage.Server{{ID: "s1", Slug: "github"}, {ID: "s2", Slug: "slack"}}
			r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/mcp/github", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`))
			r.Header.Set("Content-Type", "application/json")
			first := &Call{Core: core, Caller: who, Server: servers[0]}
			in, ok := first.ReadInbound(httptest.NewRecorder(), r)
			if !ok {
				b.Fatal("unreadable")
			}
			w, call := httptest.NewRecorder(), new(Call)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				call.Core, call.Caller, call.notes, call.Inbound, call.Limits = core, who, notes, in, admission.State{}
				call.Server = servers[n%bc.servers]
				if bc.off {
					continue
				}
				call.Limits.Count()
				refused, err := core.Admitter.Look(b.Context(), call.Admission().Described())
				if !call.Admission().Pass(w, r, refused, err) || !call.Admission().Charge(w, r) {
					b.Fatal("refused")
				}
				core.Admitter.MeterText(b.Context(), call.Admission().Described(), answer)
				call.Limits.Settle()
			}
		})
	}
}
