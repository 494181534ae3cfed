package app

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/storage"
)

func TestPlaceholders(t *testing.T) {
	replacer := caddy.NewReplacer()
	r := httptest.NewRequest("POST", "/mcp/demo", nil)
	r = r.WithContext(context.WithValue(r.Context(), caddy.ReplacerCtxKey, replacer))
	call := &Call{Caller: &authn.Caller{OrganizationID: "o", UserID: "u", Agent: "a", Email: "canary@example.test"}}
	call.Annotate(r)
	call.Server = &storage.Server{Slug: "demo"} // values that later steps add are seen
	call.Log = CallLog{Method: "tools/call", Tool: "echo", Session: "s"}
	text := "{durward.org} {durward.user} {http.auth.user.id} {durward.agent} {durward.server} {durward.method} {durward.tool} {durward.secret}"
	if got := replacer.ReplaceAll(text, "-"); got != "o u u a demo tools/call echo -" {
		t.Errorf("placeholders: %s", got)
	}
	(&Call{}).Annotate(httptest.NewRequest("GET", "/", nil))
}
