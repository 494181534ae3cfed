package platformapi

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/storage"
)

// TestOffboardUser checks that a look changes nothing, that the act counts the same, and that a mistake in asking for the
// look is never the act.
func TestOffboardUser(t *testing.T) {
	a := newAPI(t)
	server := a.server(a.adam, "Tracker", a.entry(a.adam, object{"provider": "bearer_token"}))
	for _, who := range []string{"alice", "adam"} {
		a.do(a.caller("acme", who, false), http.MethodPost, "/api/servers/"+server+"/connect", object{"token": "s3cret"}).want(200)
	}
	task := storage.Task{
		TaskOwner: storage.TaskOwner{OrganizationID: a.alice.OrganizationID, ServerID: server, UserID: a.alice.UserID}, Digest: "d",
		CreatedAt: start, ExpiresAt: start.Add(time.Hour),
	}
	if err := a.store.AddTask(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	open := func(user string) (runs func() bool, leave func()) {
		owner := streams.Owner{Organization: a.alice.OrganizationID, User: user, Server: server}
		ctx, done := a.core.Streams.Open(t.Context(), owner, streams.Listen, start.AddDate(100, 0, 0), streams.Limits{}, nil)
		t.Cleanup(done)
		return func() bool { return ctx.Err() == nil }, done
	}
	hers, leave := open(a.alice.UserID)
	his, _ := open(a.adam.UserID)
	path := "/api/users/" + a.alice.UserID + "/offboard"
	want := object{
		"user_id": a.alice.UserID, "dry_run": true, "revoked_at": nil, "sessions": 0.0, "api_keys": 0.0, "connections": 1.0, "streams": 1.0, "approvals": 0.0, "tasks": 1.0,
	}
	look := func() {
		t.Helper()
		if diff := cmp.Diff(want, a.do(a.adam, http.MethodPost, path+"?dry_run=true", nil).want(200)); diff != "" {
			t.Error(diff)
		}
	}
	look()
	a.do(a.adam, http.MethodPost, path+"?dryrun=true", nil).wantProblems("query.dryrun extra_forbidden")
	a.do(a.adam, http.MethodPost, path+"?dry_run=maybe", nil).wantProblems("query.dry_run bool_type")
	a.do(a.adam, http.MethodPost, path, object{"dry_run": true}).wantProblems("body.dry_run extra_forbidden")
	a.do(a.alice, http.MethodPost, path, nil).wantError(403, gateway.Forbidden)
	unknown := a.do(a.adam, http.MethodPost, "/api/users/"+uuid.NewString()+"/offboard", nil)
	unknown.wantError(404, gateway.NotFound)
	if w := a.do(a.eve, http.MethodPost, path, nil); w.status != 404 || w.body != unknown.body {
		t.Errorf("O01 %d %s", w.status, w.body)
	}
	if !hers() || a.status(a.alice, server) != "connected" {
		t.Error("a look or a refusal has ended something")
	}
	look()

	want["dry_run"], want["revoked_at"] = false, "2026-03-01T12:00:00.000000Z"
	if diff := cmp.Diff(want, a.do(a.adam, http.MethodPost, path, nil).want(200)); diff != "" {
		t.Error(diff)
	}
	if hers() || !his() || a.status(a.alice, server) != "available" || a.status(a.adam, server) != "connected" {
		t.Errorf("her stream %t, his %t; connections %s, %s", hers(), his(), a.status(a.alice, server), a.status(a.adam, server))
	}
	leave() // as a handler does whose stream was ended
	want["connections"], want["streams"], want["tasks"] = 0.0, 0.0, 0.0
	if diff := cmp.Diff(want, a.do(a.adam, http.MethodPost, path, nil).want(200)); diff != "" {
		t.Errorf("repeated: %s", diff)
	}
}
