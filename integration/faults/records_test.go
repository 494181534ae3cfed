package faults

import (
	"net/http"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// TestBrokenRecord checks the case that the bytes of one stored credential are not what was written (Z-F08). Its user
// has to connect anew and is told so; nobody else notices.
func TestBrokenRecord(t *testing.T) {
	t.Parallel()
	database := pgtest.NewServer(t)
	s := startSite(t, plan{nodes: 1, database: database.URL()})
	n, client := s.nodes[0], newClient(t)
	locked := n.newServer("Locked", members{"provider": "bearer_token", "requires_auth": true}, everything)
	path := "/api/servers/" + locked.id
	tokens := make([]string, 2)
	for i := range tokens {
		tokens[i] = s.token(members{"sub": []string{"unlucky", "lucky"}[i], "email": "somebody@acme.test"})
		n.must(client, http.MethodPost, path+"/connect", tokens[i], members{"bearer_token": "theirs"}, nil)
	}
	unlucky, lucky := tokens[0], tokens[1]
	var before struct{ Pagination struct{ Total int } }
	n.read(client, s.token(admin), "/api/audit?kind=credential", &before)
	database.Exec(t, `UPDATE connections SET sealed_credential = set_byte(sealed_credential, length(sealed_credential) - 1,
		get_byte(sealed_credential, length(sealed_credential) - 1) # 1)
		WHERE user_id = (SELECT id FROM users WHERE subject = 'unlucky')`)
	n.Kill() // drops its cached facts about them
	n.restart()
	for range 2 {
		if a := n.call(client, unlucky, locked, "echo"); !rig.LeadsToConnect(a.status, a.body) {
			t.Errorf("a call with a credential that cannot be read: %v", a)
		}
		if a := n.call(client, lucky, locked, "echo"); credential(a) != "theirs" {
			t.Errorf("another user's call: %v", a)
		}
	}
	var status struct{ Status string }
	n.read(client, unlucky, path+"/connection", &status)
	if status.Status != "error" {
		t.Errorf("the connection is %q", status.Status)
	}
	after := before
	n.read(client, s.token(admin), "/api/audit?kind=credential", &after)
	if after.Pagination.Total <= before.Pagination.Total {
		t.Error("the audit log says nothing of it")
	}
	n.must(client, http.MethodPost, path+"/connect", unlucky, members{"bearer_token": "new"}, nil)
	if a := n.call(client, unlucky, locked, "echo"); credential(a) != "new" {
		t.Errorf("connected anew: %v", a)
	}
}
