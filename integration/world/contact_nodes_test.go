package world

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// TestFirstContactOnNodes checks W31 with two nodes on one database: the conversation is at one, and everything else,
// the pages on which the user logs in and connects among it, at the other.
func TestFirstContactOnNodes(t *testing.T) {
	lab(t, all, newest)
	at := startNodes(t)
	for i, c := range newcomers() {
		switch c.name {
		case "sdk 1, pages", "sdk 2", "sdk 2 modern, pages, OAuth":
		default:
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			r := c.row(t)
			r.tried += ", at another node than the browser's"
			record(t, r)
			c.meets(t, at, fmt.Sprint("account-", i), map[string]any{})
		})
	}
}

// startNodes is startProvided with two nodes behind one address. The access log is that of the node with the
// conversations.
func startNodes(t *testing.T) *provided {
	t.Helper()
	database, key, ports := "DATABASE="+pgtest.NewServer(t).URL(), masterKey(), [2]string{rig.FreePort(t), rig.FreePort(t)}
	nodes := [2]http.Handler{}
	for i, port := range ports {
		nodes[i] = &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: "127.0.0.1:" + port})
			r.Out.Host = r.In.Host
		}}
	}
	balancer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := nodes[1]
		if strings.HasPrefix(r.URL.Path, "/mcp/") {
			at = nodes[0]
		}
		at.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		balancer.CloseClientConnections()
		balancer.Close()
	})
	issuerPort := rig.FreePort(t)
	p := &provided{gate: balancer.URL, issuer: "http://127.0.0.1:" + issuerPort, login: balancer.URL + "/oauth/authorize?"}
	layOut := func(port string) *guide {
		return p.guide(t, "http://127.0.0.1:8080 {", "http://:"+port+" {\n\tbind 127.0.0.1", "store sqlite durward.db", "store postgres {env.DATABASE}")
	}
	pages, conversations := layOut(ports[1]), layOut(ports[0])
	pages.start([]string{loginSecret}, node(t), "provider.mjs").WaitForListener(t, "127.0.0.1:"+issuerPort)
	pages.gatewayWith("http://127.0.0.1:"+ports[1], key, database)
	p.durward = conversations.gatewayWith("http://127.0.0.1:"+ports[0], key, database)
	p.root = pages.login([]string{"GATE=" + p.gate, "ISSUER=" + p.issuer}, "root", pagesOfOIDCProvider(p.gate).browse)
	return p
}
