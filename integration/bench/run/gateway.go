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
	"strings"
	"syscall"
	"time"
)

// Addresses of what takes part; those of nginx, the floor and plain Caddy are in compare and its configurations.
const (
	stubAddress    = "127.0.0.1:9100"
	caddyAddress   = "127.0.0.1:9202"
	gatewayAddress = "127.0.0.1:9300"
	gatewayURL     = "http://" + gatewayAddress
)

// configuration of the gateway: a production node's, except that everything is on this machine.
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
	}
}

<url> {
	bind 127.0.0.1
	durward
}
`

// bench is what all measurements share.
type bench struct {
	options
	directory string // of the gateway's files
	issuer    *issuer
	key       string   // the gateway's master key
	tokens    []string // one per user, seen by the gateway
	client    *http.Client
}

// users of the gateway, each with a token and connections of their own.
const users = 16

// newBench sets up a gateway's store: servers for each kind of traffic, and every user's connections.
func newBench(ctx context.Context, o options, directory string) (*bench, error) {
	b := &bench{options: o, directory: directory, client: &http.Client{Timeout: 30 * time.Second}}
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	b.key = base64.StdEncoding.EncodeToString(key)
	var err error
	if b.issuer, err = startIssuer(); err != nil {
		return nil, fmt.Errorf("starting the issuer: %w", err)
	}
	for n := range users {
		token, err := b.issuer.token(user(n), gatewayURL)
		if err != nil {
			return nil, fmt.Errorf("signing a token: %w", err)
		}
		b.tokens = append(b.tokens, token)
	}
	admin := "off"
	if o.profile != "" {
		admin = "unix/" + b.adminSocket()
	}
	text := strings.NewReplacer("<url>", gatewayURL, "<issuer>", b.issuer.url, "<admin>", admin).Replace(configuration)
	if err := os.WriteFile(filepath.Join(directory, "Caddyfile"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(b.tokenFile(), []byte(strings.Join(b.tokens, "\n")+"\n"), 0o600); err != nil {
		return nil, err
	}
	gateway, err := b.startGateway(ctx)
	if err != nil {
		return nil, err
	}
	defer gateway.stop()
	return b, b.createServers(ctx)
}

func (b *bench) tokenFile() string   { return filepath.Join(b.directory, "tokens") }
func (b *bench) adminSocket() string { return filepath.Join(b.directory, "admin.sock") }

// program is a path of the rig's build.
func (b *bench) program(name string) string { return filepath.Join(b.bench, "bin", name) }

// createServers makes one server for each kind of traffic, and connects every user to each with a token that is then
// injected.
func (b *bench) createServers(ctx context.Context) error {
	stub := "http://" + stubAddress
	for name, entry := range map[string]map[string]any{
		"Bench call":     {"url": stub + "/mcp"},
		"Bench stream":   {"url": stub + "/mcp?as=sse"},
		"Bench events 0": {"url": stub + "/mcp", "events_url": stub + "/sse?rate=0"},
		"Bench events 2": {"url": stub + "/mcp", "events_url": stub + "/sse?rate=2"},
	} {
		entry["name"], entry["protocol"], entry["provider"], entry["requires_auth"] = name, "mcp", "bearer_token", true
		var directory, server struct {
			ID string `json:"id"`
		}
		if err := b.api(ctx, 0, "/api/server-directory", entry, &directory); err != nil {
			return err
		}
		if err := b.api(ctx, 0, "/api/servers", map[string]any{"name": name, "mcp_server_directory_id": directory.ID}, &server); err != nil {
			return err
		}
		if err := b.api(ctx, 0, "/api/policy", policyFor(name, server.ID), nil); err != nil {
			return err
		}
		for n := range users {
			credential := map[string]any{"token": fmt.Sprint("bench-credential-of-user-", n)}
			if err := b.api(ctx, n, "/api/servers/"+server.ID+"/connect", credential, nil); err != nil {
				return err
			}
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

// api posts to the gateway's API as a user.
func (b *bench) api(ctx context.Context, n int, path string, body, target any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, gatewayURL+path, bytes.NewReader(encoded))
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
		return fmt.Errorf("POST %s: status %d: %s", path, response.StatusCode, content)
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

// start runs a program of the rig on one processor and writes its log below out/.
func (b *bench) start(processor, name string, env []string, arguments ...string) (*process, error) {
	log, err := os.Create(filepath.Join(b.bench, "out", name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// What follows taskset replaces it, so that the process is ours to watch and to end.
	p := &process{Cmd: exec.Command("taskset", append([]string{"-c", processor, b.program(name)}, arguments...)...), exited: make(chan struct{})}
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

// launch starts the gateway's process without waiting until it answers.
func (b *bench) launch() (*process, error) {
	return b.start("0", "durward", []string{"DURWARD_BENCH_KEY=" + b.key}, "run", "--config", "Caddyfile", "--adapter", "caddyfile")
}

func (b *bench) startGateway(ctx context.Context) (*process, error) {
	p, err := b.launch()
	if err != nil {
		return nil, err
	}
	return p, p.await(ctx, gatewayAddress)
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
