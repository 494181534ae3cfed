package platformapi

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/identity/caller"
)

func TestMe(t *testing.T) {
	a := newAPI(t)
	plain := a.do(a.alice, http.MethodGet, "/api/me", nil).want(200)
	if diff := cmp.Diff(object{
		"user":         object{"id": a.alice.UserID, "name": nil, "email": nil, "issuer": issuer, "subject": "alice", "machine": false},
		"organization": object{"id": a.alice.OrganizationID, "slug": "acme"},
		"roles":        []any{}, "groups": []any{}, "teams": []any{}, "projects": []any{}, "agent": nil, "client": console, "login": nil,
		"may": []any{mayDecide}, "expires_at": nil,
	}, plain); diff != "" {
		t.Error(diff)
	}
	full := authn.Caller{
		Issuer: issuer, Subject: "alice", OrganizationID: a.alice.OrganizationID, UserID: a.alice.UserID, Name: "Alice", Email: "alice@acme.test",
		Roles: []string{"r"}, Groups: []string{"g"}, Teams: []string{"t"}, Projects: []string{"p"}, Agent: "editor", Login: "login",
		Powers: caller.Powers{Auditor: true, Operator: true}, Machine: true, ExpiresAt: start.Add(time.Minute),
	}
	got := a.do(&full, http.MethodGet, "/api/me", nil).want(200)
	if diff := cmp.Diff(object{
		"user":         object{"id": a.alice.UserID, "name": "Alice", "email": "alice@acme.test", "issuer": issuer, "subject": "alice", "machine": true},
		"organization": object{"id": a.alice.OrganizationID, "slug": "acme"},
		"roles":        []any{"r"}, "groups": []any{"g"}, "teams": []any{"t"}, "projects": []any{"p"}, "agent": nil, "client": "editor", "login": "login",
		"may": []any{mayRead, mayOperate}, "expires_at": "2026-03-01T12:01:00.000000Z",
	}, got); diff != "" {
		t.Error(diff)
	}
	for powers, want := range map[caller.Powers][]any{
		{}:                   {mayDecide},
		{Auditor: true}:      {mayRead, mayDecide},
		{PolicyEditor: true}: {mayEdit, mayDecide},
		{Operator: true}:     {mayOperate, mayDecide},
		{Admin: true}:        {mayRead, mayEdit, mayOperate, mayAdminister, mayDecide},
	} {
		who := *a.alice
		who.Powers = powers
		if diff := cmp.Diff(want, a.do(&who, http.MethodGet, "/api/me", nil).want(200)["may"]); diff != "" {
			t.Errorf("%+v: %s", powers, diff)
		}
	}
}
