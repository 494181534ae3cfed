package integration

import (
	"fmt"
	"net/http"
	"sync/atomic"
)

// server is a server that a test made through the API.
type server struct {
	ID     string `json:"id"`
	Slug   string `json:"slug"`
	Status string `json:"status"`

	path string // /mcp/{slug}
}

var serverNames atomic.Int64

// createServer does the work of bareServer, and adds a policy that lets everybody do everything.
func (g *gateway) createServer(upstream string, changes map[string]any) server {
	g.t.Helper()
	s := g.bareServer(upstream, changes)
	g.allowAll(g.token(admin), s.ID)
	return s
}

// allowAll lets everybody of the token's organization do everything on a server.
func (g *gateway) allowAll(token, serverID string) {
	g.t.Helper()
	g.api(token, http.MethodPost, "/api/policy", map[string]any{
		"name": "Everything on " + serverID, "mcp_server_id": serverID, "status": "ACTIVE",
		"rules": []any{map[string]any{"name": "all", "authorized": true}},
	})
}

// bareServer makes a directory entry of acme's for an upstream, and a server of it, whose callers may do nothing. changes
// complete the entry; by default it needs no authentication.
func (g *gateway) bareServer(upstream string, changes map[string]any) server {
	g.t.Helper()
	name := fmt.Sprint("Upstream ", serverNames.Add(1))
	entry := map[string]any{"name": name, "url": upstream, "protocol": "mcp", "provider": "none", "requires_auth": false}
	for member, value := range changes {
		entry[member] = value
	}
	token := g.token(admin)
	var directory, created struct {
		ID string `json:"id"`
	}
	g.api(token, http.MethodPost, "/api/server-directory", entry).decode(g.t, &directory)
	g.api(token, http.MethodPost, "/api/servers?test=false", map[string]any{"name": name, "mcp_server_directory_id": directory.ID}).decode(g.t, &created)
	var made server
	g.api(token, http.MethodGet, "/api/servers/"+created.ID, nil).decode(g.t, &made)
	made.path = "/mcp/" + made.Slug
	return made
}

// api calls the gateway's API and ends the test unless it succeeds.
func (g *gateway) api(token, method, path string, body any) answer {
	g.t.Helper()
	a := g.send(method, path, token, body)
	if a.status/100 != 2 {
		g.t.Fatalf("%s %s: status %d: %s", method, path, a.status, tail(string(a.body), 2_000))
	}
	return a
}

// connection returns the status of a user's connection to a server.
func (g *gateway) connection(token string, s server) string {
	g.t.Helper()
	var status struct {
		Status string `json:"status"`
	}
	g.api(token, http.MethodGet, "/api/servers/"+s.ID+"/connection", nil).decode(g.t, &status)
	return status.Status
}
