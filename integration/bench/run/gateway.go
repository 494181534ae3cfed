package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// These are the addresses of the programs that take part; those of nginx, the floor and plain Caddy are in compare and
// its configurations.
const (
	stubAddress    = "127.0.0.1:9100"
	caddyAddress   = "127.0.0.1:9202"
	gatewayAddress = "127.0.0.1:9300"
	otherAddress   = "127.0.0.1:9303"
)

// tlsAddresses holds the addresses on which gateways listen with TLS.
var tlsAddresses = map[string]string{
	gatewayAddress: "127.0.0.1:9310", smallAddress: "127.0.0.1:9311", largeAddress: "127.0.0.1:9312", otherAddress: "127.0.0.1:9313",
}

// configuration is the configuration of the gateway: that of a production node, except that everything is on this
// machine.
const configuration = `{
	admin <admin>
	persist_config off
	auto_https off
	grace_period 1s
	durward {
		public_url <url>
		store sqlite durward.db
		master_key {env.DURWARD_BENCH_KEY}
		identity oidc <issuer> {
			audience <url>
		}
		egress {
			http 127.0.0.0/8
		}
		agents auto_register
		streams {
			max_per_user 10000
		}
		provider openai bench {
			base_url http://<stub>/v1
			key {env.DURWARD_BENCH_PROVIDER_KEY}
		}
		alias bench-chat {
			target bench gpt-4o-mini
		}
	}
}

<url> {
	bind 127.0.0.1
	durward
}
`

// tlsSite is added to the configuration for P11.
const tlsSite = `
<tlsurl> {
	bind 127.0.0.1
	tls <certificate>/tls.crt <certificate>/tls.key {
		protocols tls1.3
	}
	durward
}
`

// bench is a gateway to be started, and the data that its measurements share.
type bench struct {
	options
	address   string // of the gateway
	binary    string // of the gateway
	other     *bench // the gateway with which this one is compared beside plain Caddy; nil: none
	directory string // of the gateway's files
	issuer    *issuer
	key       string            // the gateway's master key
	tokens    []string          // one per user, seen by the gateway
	keys      []string          // API keys, one per user
	servers   map[string]string // ids by name
	client    *http.Client
}

// users is the number of users of the gateway, each with a token and connections of their own.
const users = 16

// newBench sets up a gateway's store: servers for each kind of traffic, every user's connections and API key, rate limits.
// The directory is the gateway's own and exists.
func newBench(ctx context.Context, o options, directory, address string) (*bench, error) {
	b, err := prepareBench(o, directory, address)
	if err != nil {
		return nil, err
	}
	return b, b.fill(ctx)
}

// prepareBench makes the issuer, tokens and files of a gateway that was not started yet.
func prepareBench(o options, directory, address string) (*bench, error) {
	b := &bench{options: o, address: address, binary: filepath.Join(o.bench, "bin", "durward"), directory: directory, servers: make(map[string]string), client: &http.Client{Timeout: 30 * time.Second}}
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	b.key = base64.StdEncoding.EncodeToString(key)
	var err error
	if b.issuer, err = startIssuer(); err != nil {
		return nil, fmt.Errorf("starting the issuer: %w", err)
	}
	for n := range users {
		token, err := b.issuer.token(user(n), b.url())
		if err != nil {
			return nil, fmt.Errorf("signing a token: %w", err)
		}
		b.tokens = append(b.tokens, token)
	}
	if err := writeCertificate(directory); err != nil {
		return nil, err
	}
	values := strings.NewReplacer("<url>", b.url(), "<issuer>", b.issuer.url, "<admin>", "unix/"+b.adminSocket(), "<stub>", stubAddress,
		"<tlsurl>", b.tlsURL(), "<certificate>", directory)
	for name, text := range map[string]string{"Caddyfile": configuration, "tls.Caddyfile": configuration + tlsSite} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(values.Replace(text)), 0o600); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(b.tokenFile(), []byte(strings.Join(b.tokens, "\n")+"\n"), 0o600); err != nil {
		return nil, err
	}
	return b, nil
}

// fill makes the store's servers, connections, API keys and limits.
func (b *bench) fill(ctx context.Context) error {
	gateway, err := b.startGateway(ctx)
	if err != nil {
		return err
	}
	defer gateway.stop()
	for _, create := range []func(context.Context) error{b.createServers, b.createKeys, b.createLimits} {
		if err := create(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) url() string         { return "http://" + b.address }
func (b *bench) tlsURL() string      { return "https://" + tlsAddresses[b.address] }
func (b *bench) tokenFile() string   { return filepath.Join(b.directory, "tokens") }
func (b *bench) keyFile() string     { return filepath.Join(b.directory, "keys") }
func (b *bench) adminSocket() string { return filepath.Join(b.directory, "admin.sock") }

// program returns the path of a program of the rig's build.
func (b *bench) program(name string) string { return filepath.Join(b.bench, "bin", name) }

// createServers makes one server for each kind of traffic.
func (b *bench) createServers(ctx context.Context) error {
	stub := "http://" + stubAddress
	for name, entry := range map[string]map[string]any{
		"Bench call":     {"url": stub + "/mcp"},
		"Bench stream":   {"url": stub + "/mcp?as=sse"},
		"Bench events 0": {"url": stub + "/mcp", "events_url": stub + "/sse?rate=0"},
		"Bench events 2": {"url": stub + "/mcp", "events_url": stub + "/sse?rate=2"},
	} {
		entry["provider"] = "bearer_token"
		if err := b.createServer(ctx, name, entry); err != nil {
			return err
		}
	}
	return nil
}

// createServer makes a server and its policy. When it needs a connection, every user is connected with a token that is then
// injected.
func (b *bench) createServer(ctx context.Context, name string, entry map[string]any) error {
	entry["name"], entry["protocol"], entry["requires_auth"] = name, "mcp", entry["provider"] != "none"
	var directory, server struct {
		ID string `json:"id"`
	}
	if err := b.api(ctx, 0, "/api/server-directory", entry, &directory); err != nil {
		return err
	}
	if err := b.api(ctx, 0, "/api/servers?test=false", map[string]any{"name": name, "mcp_server_directory_id": directory.ID}, &server); err != nil {
		return err
	}
	b.servers[name] = server.ID
	if err := b.api(ctx, 0, "/api/policy", policyFor(name, server.ID), nil); err != nil {
		return err
	}
	for n := range users {
		if entry["provider"] == "none" {
			break
		}
		credential := map[string]any{"token": fmt.Sprint("bench-credential-of-user-", n)}
		if err := b.api(ctx, n, "/api/servers/"+server.ID+"/connect", credential, nil); err != nil {
			return err
		}
	}
	return nil
}

// policyFor grants streams, and calls by one of their arguments.
func policyFor(name, serverID string) map[string]any {
	return map[string]any{
		"name": name, "mcp_server_id": serverID, "status": "ACTIVE",
		"rules": []any{
			map[string]any{
				"name": "minor calls", "authorized": true, "actions": []string{"tools/call:*"},
				"condition": map[string]any{"match": map[string]any{"expr": "R.attr.priority < 5"}},
			},
			map[string]any{"name": "streams", "authorized": true, "actions": []string{"sse/stream"}},
		},
	}
}

// createKeys makes an API key for every user, which may ask models.
func (b *bench) createKeys(ctx context.Context) error {
	for n := range users {
		var made struct {
			Key string `json:"key"`
		}
		body := map[string]any{"name": "Bench", "scopes": []string{"llm"}}
		if err := b.api(ctx, n, "/api/llm-gateway/user/api-keys", body, &made); err != nil {
			return err
		}
		b.keys = append(b.keys, made.Key)
	}
	return os.WriteFile(b.keyFile(), []byte(strings.Join(b.keys, "\n")+"\n"), 0o600)
}

// plenty is a limit per minute that no measurement reaches.
const plenty = 1_000_000_000_000

// createLimits makes limits of requests and tokens so that four match each call: of the organization and of each user, then of
// the users' group and each server, or of each API key and alias.
func (b *bench) createLimits(ctx context.Context) error {
	for _, limit := range []map[string]any{
		{"scope_type": "org"},
		{"scope_type": "user"},
		{"scope_type": "group", "scope_value": "engineering"},
		{"scope_type": "mcp_server"},
		{"scope_type": "api_key"},
		{"scope_type": "model_alias"},
	} {
		limit["name"], limit["traffic_type"] = fmt.Sprint("Bench ", limit["scope_type"]), "all"
		limit["requests_per_minute"], limit["tokens_per_minute"] = plenty, plenty
		if err := b.api(ctx, 0, limitsPath, limit, nil); err != nil {
			return err
		}
	}
	return nil
}

const limitsPath = "/api/llm-gateway/admin/rate-limits"

// api posts to the gateway's API as a user.
func (b *bench) api(ctx context.Context, n int, path string, body, target any) error {
	return b.ask(ctx, http.MethodPost, n, path, body, target)
}

// ask sends a request to the gateway's API as a user. A body or target of nil is none.
func (b *bench) ask(ctx context.Context, method string, n int, path string, body, target any) error {
	var encoded []byte
	if body != nil {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, b.url()+path, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+b.tokens[n])
	response, err := b.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: status %d: %s", method, path, response.StatusCode, content)
	}
	if target == nil {
		return nil
	}
	return json.Unmarshal(content, target)
}

// process is a program that was started pinned, as compare starts its own.
type process struct {
	*exec.Cmd
	exited chan struct{}
}

// start runs a program of the rig on the processors that taskset is told, with GOMAXPROCS=1 unless env says otherwise, and
// writes its log below out/.
func (b *bench) start(processors, name string, env []string, arguments ...string) (*process, error) {
	return b.startBinary(processors, name, b.program(name), env, arguments...)
}

func (b *bench) startBinary(processors, name, binary string, env []string, arguments ...string) (*process, error) {
	log, err := os.Create(filepath.Join(b.bench, "out", b.logName(name)))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// taskset is replaced by the program that it starts, so that the process can be watched and ended.
	p := &process{Cmd: exec.Command("taskset", append([]string{"-c", processors, binary}, arguments...)...), exited: make(chan struct{})}
	p.Dir, p.Stdout, p.Stderr = b.directory, log, log
	p.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.directory, "GOMAXPROCS=1"}, env...)
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		_ = p.Wait()
		close(p.exited)
	}()
	return p, nil
}

// logName returns a name that differs between gateways that run at the same time.
func (b *bench) logName(program string) string {
	if b.address == gatewayAddress {
		return program + ".log"
	}
	return program + "-" + strings.TrimPrefix(b.address, "127.0.0.1:") + ".log"
}

// stop ends the process and waits for it.
func (p *process) stop() {
	_ = p.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(20 * time.Second):
		_ = p.Process.Kill()
		<-p.exited
	}
}

// way describes the processors and threads of a gateway.
type way struct {
	processors string // as taskset takes them
	threads    int    // that run Go
	file       string // the configuration
}

// narrow is the usual way of gateways: on a processor of their own.
var narrow = way{processors: "0", threads: 1, file: "Caddyfile"}

// wide returns the way on all processors.
func wide() way {
	return way{processors: fmt.Sprint("0-", runtime.NumCPU()-1), threads: runtime.NumCPU(), file: "Caddyfile"}
}

// launch starts the gateway's process without waiting until it answers.
func (b *bench) launch(as way) (*process, error) {
	env := []string{"DURWARD_BENCH_KEY=" + b.key, "DURWARD_BENCH_PROVIDER_KEY=bench-credential-of-the-provider", fmt.Sprint("GOMAXPROCS=", as.threads)}
	return b.startBinary(as.processors, "durward", b.binary, env, "run", "--config", as.file, "--adapter", "caddyfile")
}

func (b *bench) startGateway(ctx context.Context) (*process, error) {
	return b.startGatewayAs(ctx, narrow)
}

func (b *bench) startGatewayAs(ctx context.Context, as way) (*process, error) {
	p, err := b.launch(as)
	if err != nil {
		return nil, err
	}
	return p, p.await(ctx, b.address)
}

func (b *bench) startStub(ctx context.Context) (*process, error) {
	p, err := b.start("1", "stub", nil, "-addr", stubAddress)
	if err != nil {
		return nil, err
	}
	return p, p.await(ctx, stubAddress)
}

func (b *bench) startCaddy(ctx context.Context) (*process, error) {
	p, err := b.start("0", "caddy", nil, "run", "--config", filepath.Join(b.bench, "caddy.Caddyfile"))
	if err != nil {
		return nil, err
	}
	return p, p.await(ctx, caddyAddress)
}

// await waits until the process listens on an address, and ends it when it does not.
func (p *process) await(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			connection.Close()
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("nothing listens on %s: the process has ended, its log is in the rig's out/", address)
		case <-ctx.Done():
			p.stop()
			return errors.Join(fmt.Errorf("nothing listens on %s", address), ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
