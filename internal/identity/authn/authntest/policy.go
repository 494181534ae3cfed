package authntest

import (
	"testing"

	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

// DeniesSales returns rules that deny the group sales a tool that everybody else may call.
func DeniesSales(t testing.TB) *engine.Set {
	t.Helper()
	set, err := engine.Compile("server", "server-id", []storage.Policy{{ID: "p", Name: "p", Status: storage.PolicyActive, ServerID: "server-id", Rules: []storage.Rule{
		{Name: "all", Active: true, Authorized: true, Actions: []string{"*"}, RolesGroups: []string{"*"}},
		{Name: "no", Active: true, Actions: []string{"*"}, RolesGroups: []string{"group:sales"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}
