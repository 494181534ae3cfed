package platformapi

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/storage"
)

// pages reads a list by its cursors and returns the given member of all items.
func (a *api) pages(path, member string) []any {
	a.t.Helper()
	var all []any
	for cursor := ""; ; {
		page := a.do(a.adam, http.MethodGet, path+cursor, nil).want(200)
		for _, item := range page["data"].([]any) {
			all = append(all, item.(object)[member])
		}
		next, more := page["next_cursor"].(string)
		if !more {
			return all
		}
		cursor = "&cursor=" + next
	}
}

func TestUsers(t *testing.T) {
	a := newAPI(t)
	u, err := a.store.ResolveUser(t.Context(), storage.UserClaim{
		OrganizationID: a.adam.OrganizationID, Issuer: issuer, Subject: "grace", DerivedID: derived("grace"), Kind: storage.UserPerson, Name: "Grace", Email: "grace@acme.test",
		Roles: []string{"b", "a"}, Groups: []string{}, IssuedAt: start,
	}, start)
	if err != nil {
		t.Fatal(err)
	}
	want := object{
		"id": u.ID, "name": "Grace", "email": "grace@acme.test", "kind": "person", "issuer": issuer, "subject": "grace", "roles": []any{"a", "b"}, "groups": []any{},
		"created_at": "2026-03-01T12:00:00.000000Z", "seen_at": "2026-03-01T12:00:00.000000Z", "revoked_at": nil,
	}
	if diff := cmp.Diff(want, a.do(a.adam, http.MethodGet, "/api/users/"+u.ID, nil).want(200)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(object{"data": []any{want}, "next_cursor": nil}, a.do(a.adam, http.MethodGet, "/api/users?search=GRACE", nil).want(200)); diff != "" {
		t.Error(diff)
	}
	if got := a.do(a.adam, http.MethodGet, "/api/users/"+a.alice.UserID, nil).want(200); got["roles"] != nil || got["email"] != nil {
		t.Errorf("what no token named: %v", got)
	}
	if got := a.pages("/api/users?limit=1", "id"); len(got) != 3 {
		t.Errorf("pages of one: %v", got)
	}
	if got := a.pages("/api/users?limit=3", "id"); len(got) != 3 {
		t.Errorf("a page that is just full: %v", got)
	}
	if got := a.do(a.eve, http.MethodGet, "/api/users", nil).want(200)["data"].([]any); len(got) != 1 {
		t.Errorf("O04 another organization: %v", got)
	}
	unknown := a.do(a.adam, http.MethodGet, "/api/users/"+uuid.NewString(), nil)
	unknown.wantError(404, gateway.NotFound)
	if w := a.do(a.eve, http.MethodGet, "/api/users/"+u.ID, nil); w.status != 404 || w.body != unknown.body {
		t.Errorf("O01 %d %s", w.status, w.body)
	}
	a.do(a.adam, http.MethodGet, "/api/users?limit=0&cursor=x&page=2", nil).wantProblems("query.cursor uuid_parsing", "query.limit greater_than_equal", "query.page extra_forbidden")
	a.do(a.adam, http.MethodGet, "/api/users?limit=101", nil).wantProblems("query.limit less_than_equal")
}

func TestServerConnections(t *testing.T) {
	a := newAPI(t)
	server := a.server(a.adam, "Tracker", a.entry(a.adam, object{"provider": "bearer_token"}))
	path := "/api/servers/" + server + "/connections"
	a.do(a.alice, http.MethodPost, "/api/servers/"+server+"/connect", object{"token": "s3cret"}).want(200)
	list := a.do(a.adam, http.MethodGet, path, nil)
	want := object{"data": []any{object{
		"user_id": a.alice.UserID, "name": "alice", "email": nil, "status": "connected", "provider": "bearer_token", "scopes": []any{}, "reason": nil,
		"connected_at": "2026-03-01T12:00:00.000000Z", "updated_at": "2026-03-01T12:00:00.000000Z",
	}}, "next_cursor": nil}
	if diff := cmp.Diff(want, list.want(200)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, a.do(a.adam, http.MethodGet, "/api/servers/tracker/connections", nil).want(200)); diff != "" {
		t.Error(diff)
	}
	a.do(a.adam, http.MethodPost, "/api/servers/"+server+"/connect", object{"token": "s3cret"}).want(200)
	if got := a.pages(path+"?limit=1", "user_id"); len(got) != 2 {
		t.Errorf("pages of one: %v", got)
	}
	a.do(a.eve, http.MethodGet, path, nil).wantError(404, gateway.ServerNotFound)
	a.do(a.eve, http.MethodDelete, path+"/"+a.alice.UserID, nil).wantError(404, gateway.ServerNotFound)
	a.do(a.adam, http.MethodDelete, path+"/"+uuid.NewString(), nil).wantError(404, gateway.ConnectionNotFound)
	a.do(a.adam, http.MethodDelete, path+"/alice", nil).wantProblems("path.user_id uuid_parsing")
	a.do(a.adam, http.MethodDelete, path+"/"+a.alice.UserID, nil).want(204)
	a.do(a.adam, http.MethodDelete, path+"/"+a.alice.UserID, nil).wantError(404, gateway.ConnectionNotFound)
	if a.status(a.alice, server) != "available" || a.status(a.adam, server) != "connected" {
		t.Errorf("alice is %s, adam %s", a.status(a.alice, server), a.status(a.adam, server))
	}
}

func TestUpdateAgent(t *testing.T) {
	a := newAPI(t)
	id := a.agent(a.adam, "client")
	path := "/api/agents/" + id
	want := a.do(a.adam, http.MethodGet, path, nil).want(200)
	a.handler.now = func() time.Time { return start.Add(time.Hour) }
	change := func(body any) answer { return a.do(a.adam, http.MethodPatch, path, body) }
	for _, c := range []struct {
		body object
		want func(agent, application object)
	}{
		{object{}, func(_, _ object) {}},
		{object{"name": "New", "external_id": "stolen", "issuer": "https://evil.example"}, func(_, application object) { application["name"] = "New" }},
		{object{"description": "About"}, func(_, application object) { application["description"] = "About" }},
		{object{"description": nil}, func(_, application object) { application["description"] = "" }},
		{object{"approval_channel": "out_of_band"}, func(agent, _ object) { agent["approval_channel"] = "out_of_band" }},
		{object{"approval_channel": nil}, func(agent, _ object) { agent["approval_channel"] = "in_band" }}, // that of its type
		{object{"write_confirmations_required": true}, func(agent, _ object) { agent["write_confirmations_required"] = true }},
	} {
		application := want["application_directory"].(object)
		c.want(want, application)
		got := change(c.body).want(200)
		want["updated_at"], application["updated_at"] = got["updated_at"], got["application_directory"].(object)["updated_at"]
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v: %s", c.body, diff)
		}
		if diff := cmp.Diff(got, a.do(a.adam, http.MethodGet, path, nil).want(200)); diff != "" {
			t.Errorf("%v is not stored: %s", c.body, diff)
		}
	}
	if want["updated_at"] != "2026-03-01T13:00:00.000000Z" {
		t.Errorf("updated at %v", want["updated_at"])
	}
	change(object{"name": "", "approval_channel": "pigeon", "write_confirmations_required": "no", "description": 1}).wantProblems(
		"body.name string_too_short", "body.description string_type", "body.approval_channel enum", "body.write_confirmations_required bool_type")
	change(object{"name": nil}).wantProblems("body.name string_type")
	a.do(a.eve, http.MethodPatch, path, object{"name": "x"}).wantError(404, gateway.AgentNotFound)
}
