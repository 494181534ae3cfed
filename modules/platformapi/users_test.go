package platformapi

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/storage"
)

func TestRevokeUser(t *testing.T) {
	a := newAPI(t)
	entry := a.entry(a.adam, object{"provider": "bearer_token"})
	server, other := a.server(a.adam, "Tracker", entry), a.server(a.adam, "Other", entry)
	for _, who := range []*authn.Caller{a.alice, a.adam} {
		a.do(who, http.MethodPost, "/api/servers/"+server+"/connect", object{"token": "secret"}).want(200)
	}
	a.do(a.alice, http.MethodPost, "/api/servers/"+other+"/connect", object{"token": "secret"}).want(200)
	revoke := func(who *authn.Caller, id string, body any) answer {
		return a.do(who, http.MethodPost, "/api/users/"+id+"/revoke", body)
	}
	ends := func(who *authn.Caller) func() streams.Reason {
		owner := streams.Owner{Organization: who.OrganizationID, User: who.UserID, Server: server}
		ctx, done := a.core.Streams.Open(t.Context(), owner, streams.Listen, start.AddDate(100, 0, 0), streams.Limits{}, nil)
		t.Cleanup(done)
		return func() streams.Reason {
			reason, _ := streams.EndedFor(ctx)
			return reason
		}
	}
	of, adams, eves := ends(a.alice), ends(a.adam), ends(a.eve)

	unknown := revoke(a.adam, uuid.NewString(), nil)
	unknown.wantError(404, gateway.NotFound)
	if w := revoke(a.eve, a.alice.UserID, object{"connections": true}); w.body != unknown.body || w.status != 404 {
		t.Errorf("O01 %d %s", w.status, w.body)
	}
	revoke(a.adam, "alice", object{"connections": "yes"}).wantProblems("path.user_id uuid_parsing", "body.connections bool_type")
	revoke(a.alice, a.alice.UserID, nil).wantError(403, gateway.Forbidden)
	if u, err := a.store.User(t.Context(), a.alice.OrganizationID, a.alice.UserID); err != nil || !u.RevokedAt.IsZero() || of() != "" {
		t.Fatalf("revoked by what was refused: %+v, %v", u, err)
	}

	if diff := cmp.Diff(object{
		"revoked": true, "user_id": a.alice.UserID, "revoked_at": "2026-03-01T12:00:00.000000Z", "streams_ended": 1.0, "connections_removed": 0.0,
	}, revoke(a.adam, a.alice.UserID, nil).want(200)); diff != "" {
		t.Error(diff)
	}
	if of() != streams.Revoked || adams() != "" || eves() != "" {
		t.Errorf("R06 streams ended for %q, %q, %q", of(), adams(), eves())
	}
	if u, err := a.store.User(t.Context(), a.alice.OrganizationID, a.alice.UserID); err != nil || !u.RevokedAt.Equal(start) {
		t.Errorf("%+v, %v", u, err)
	}
	if a.status(a.alice, server) != "connected" {
		t.Error("a connection went without being named")
	}
	if got := revoke(a.adam, a.alice.UserID, object{"connections": true}).want(200); got["connections_removed"] != 2.0 {
		t.Errorf("%v", got)
	}
	for _, id := range []string{server, other} {
		if got := a.status(a.alice, id); got != "available" {
			t.Errorf("the connection is %s", got)
		}
	}
	if a.status(a.adam, server) != "connected" {
		t.Error("another user's connection went too")
	}
	if got := revoke(a.adam, a.alice.UserID, object{"connections": true}).want(200); got["connections_removed"] != 0.0 {
		t.Errorf("%v", got)
	}
	a.store.err = storage.ErrUnavailable
	revoke(a.adam, a.alice.UserID, object{"connections": true}).wantError(503, gateway.Unavailable)
}
