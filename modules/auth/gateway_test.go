package auth_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/standard" // the modules that the shipped binary links

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app"
	_ "github.com/durward-gateway/durward/modules/auth"
	"github.com/durward-gateway/durward/modules/caddytest"
	_ "github.com/durward-gateway/durward/modules/identities"
	_ "github.com/durward-gateway/durward/modules/stores"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
)

type object = caddytest.Object

const (
	public = "https://gate.example.com"
	bound  = 30 * time.Second
)

// gateway is a running configuration whose pipeline is durward_auth and a handler that keeps the requests it gets.
type gateway struct {
	t       *testing.T
	address string
	issuer  *caddytest.Issuer
	log     string // the path of the log

	mu     sync.Mutex
	passed []*app.Call // of the requests that were let through
	then   func(http.ResponseWriter, *http.Request)
}

func newGateway(t *testing.T, change object) *gateway {
	t.Helper()
	return newGatewayOf(t, change, object{})
}

// newGatewayOf starts a gateway with these identities, which are of the kind oidc; where they name no issuer it is g.issuer.
func newGatewayOf(t *testing.T, change object, identities ...object) *gateway {
	t.Helper()
	dir := caddytest.Directory(t)
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte(seal.NewMasterKey().Reveal()), 0o600); err != nil {
		t.Fatal(err)
	}
	g := &gateway{t: t, address: caddytest.Address(t), issuer: caddytest.NewIssuer(t), log: filepath.Join(dir, "log")}
	for _, identity := range identities {
		identity["kind"] = "oidc"
		if identity["issuer"] == nil {
			identity["issuer"] = g.issuer.URL
		}
	}
	config := object{
		"public_url": public, "store": object{"driver": "sqlite", "path": sqlitetest.PathIn(t, dir)}, "master_key": []string{"{file." + key + "}"},
		"identity": identities, "egress": object{"http": []string{"127.0.0.0/8"}},
		"origins": []string{"https://app.example.com"},
	}
	for k, v := range change {
		config[k] = v
	}
	var whole object
	handlers := []any{caddytest.Named("durward_auth"), caddytest.Handle(t, g.pass)}
	if err := json.Unmarshal(caddytest.Config(config, g.address, handlers...), &whole); err != nil {
		t.Fatal(err)
	}
	whole["apps"].(object)["http"].(object)["servers"].(object)["srv"].(object)["logs"] = object{} // access log
	whole["logging"] = object{"logs": object{"default": object{"level": "DEBUG", "writer": object{"output": "file", "filename": g.log, "roll": false}}}}
	encoded, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	if err := caddytest.Load(t, encoded); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *gateway) pass(w http.ResponseWriter, r *http.Request) {
	call, ok := app.CallOf(r)
	if !ok {
		g.t.Error("a request came through without a call")
		return
	}
	g.mu.Lock()
	g.passed = append(g.passed, call)
	then := g.then
	g.mu.Unlock()
	if then != nil {
		then(w, r)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// calls returns, and forgets, the calls of the requests that were let through.
func (g *gateway) calls() []*app.Call {
	g.mu.Lock()
	defer g.mu.Unlock()
	passed := g.passed
	g.passed = nil
	return passed
}

// answer is a response that was read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

// send writes a request as it stands, so that nothing is made better on the way. Lines end in LF here.
func (g *gateway) send(text string) answer {
	g.t.Helper()
	var dialer net.Dialer
	ctx, cancel := context.WithTimeout(g.t.Context(), bound)
	defer cancel()
	connection, err := dialer.DialContext(ctx, "tcp", g.address)
	if err != nil {
		g.t.Fatal(err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(bound))
	if _, err := io.WriteString(connection, strings.ReplaceAll(text, "\n", "\r\n")+"\r\n\r\n"); err != nil {
		g.t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		g.t.Fatalf("%q: %v", text, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		body = append(body, []byte("<"+err.Error()+">")...)
	}
	return answer{response.StatusCode, response.Header, string(body)}
}

// get asks for a path under the public name, with more header lines.
func (g *gateway) get(path string, lines ...string) answer {
	g.t.Helper()
	return g.send("GET " + path + " HTTP/1.1\nHost: gate.example.com\nConnection: close" + join(lines))
}

func join(lines []string) string {
	out := ""
	for _, line := range lines {
		out += "\n" + line
	}
	return out
}

func (g *gateway) token() string { return g.issuer.Token(public, nil) }

// logged returns the log so far.
func (g *gateway) logged() string {
	g.t.Helper()
	content, err := os.ReadFile(g.log)
	if err != nil {
		g.t.Fatal(err)
	}
	return string(content)
}

// stop ends the gateway, so that every request is logged, and returns the log.
func (g *gateway) stop() string {
	g.t.Helper()
	if err := caddy.Stop(); err != nil {
		g.t.Fatal(err)
	}
	return g.logged()
}

// service checks that an answer is a service error of that name.
func (a answer) service(t *testing.T, status int, name string) {
	t.Helper()
	var body struct{ Error, Message string }
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || body.Error != name || body.Message == "" || a.status != status {
		t.Errorf("%d %s, want %d %s", a.status, a.body, status, name)
	}
	if a.header.Get("Content-Type") != "application/json" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", a.header)
	}
}
