package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// clientScenarios lists the scenarios of the official suite about logins. Those that prove the possession of a key (RFC 9449)
// are not among them: the gateway does not do that towards upstreams. Nor is authorization-server-migration: an upstream that
// names another issuer is out of order until an administrator agrees. TestConformanceClientObtained has those without a login.
var clientScenarios = []string{
	"metadata-default", "metadata-var1", "metadata-var2", "metadata-var3", "basic-cimd", "scope-from-www-authenticate", "scope-from-scopes-supported",
	"scope-omitted-when-undefined", "scope-step-up", "scope-retry-limit", "token-endpoint-auth-basic", "token-endpoint-auth-post", "token-endpoint-auth-none",
	"pre-registration", "2025-03-26-oauth-metadata-backcompat", "2025-03-26-oauth-endpoint-fallback", "resource-mismatch", "offline-access-scope",
	"offline-access-not-supported", "iss-supported", "iss-not-advertised", "iss-supported-missing", "iss-wrong-issuer",
	"iss-unexpected", "iss-normalized", "metadata-issuer-mismatch",
}

// TestConformanceClient lets the official suite's servers and authorization servers judge the gateway as the client of an
// upstream: its user connects an account, and calls tools.
func TestConformanceClient(t *testing.T) {
	t.Parallel()
	d := devGateway(t, "", "")
	admin, alice := d.tokenOf(t, "admin@example.test"), d.tokenOf(t, "alice@example.test")
	for _, scenario := range clientScenarios {
		t.Run(scenario, func(t *testing.T) {
			_, _ = runClientScenario(t, scenario, func(u *suiteServer) error {
				u.d, u.admin, u.user = d, admin, alice
				return u.use()
			})
		})
	}
}

// runClientScenario runs a scenario whose client is played by use. No check of the suite's may fail. It returns what the suite
// wrote, and what went wrong for the user, which a scenario may want.
func runClientScenario(t *testing.T, scenario string, use func(*suiteServer) error) (output string, said error) {
	t.Helper()
	tools := conformanceTools(t)
	relay, err := filepath.Abs("clients/relay.mjs")
	if err != nil {
		t.Fatal(err)
	}
	client := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		u := suiteServer{t: t, name: scenario}
		if said = json.NewDecoder(r.Body).Decode(&u); said == nil {
			said = use(&u)
		}
	}))
	defer client.Close()
	node := filepath.Join(tools, "node/node_modules/.bin/node")
	command := exec.CommandContext(within(t, suiteTimeout), node, filepath.Join(tools, "new/node_modules/@modelcontextprotocol/conformance/dist/index.js"),
		"client", "--scenario", "auth/"+scenario, "--command", node+" "+relay+" "+client.URL)
	command.Env, command.WaitDelay = append(os.Environ(), "NODE_OPTIONS="), stopTimeout
	// The suite exits with 1 for a warning, too: that a gateway at a plain http address is registered, and not described.
	written, err := command.CombinedOutput()
	if !strings.Contains(string(written), ", 0 failed") {
		t.Errorf("%v, the user was told: %v\n%s", err, said, tail(string(written), 5_000))
	}
	return string(written), said
}

// suiteServer is a server of the suite's, and who uses it.
type suiteServer struct {
	d                 *dev
	t                 *testing.T
	admin, user, name string

	Server  string
	Context struct { // says how the authorization server knows the gateway
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Key    string `json:"private_key_pem"`
		// The identity provider, its client, and what it says of a user.
		Provider string `json:"idp_token_endpoint"`
		Client   string `json:"idp_client_id"`
		IDToken  string `json:"idp_id_token"`
		// What a platform says of the gateway.
		Statement string `json:"valid_jwt"`
	}
}

// use connects the user's account and calls all tools. It connects the account once more where the gateway asks for that.
func (u *suiteServer) use() error {
	id, err := u.make("/api/server-directory", map[string]any{"name": u.name, "url": u.Server, "provider": "oauth2"})
	if err != nil {
		return err
	}
	if err = u.serve(id); err != nil {
		return err
	}
	for range 2 {
		if err = u.connect(); err != nil {
			return err
		}
		if err = u.call(); err == nil || !strings.Contains(err.Error(), "/connect/"+u.name) {
			return err
		}
	}
	return err
}

// serve makes a server of a directory entry, on which everything is allowed.
func (u *suiteServer) serve(entry string) error {
	server := map[string]any{"name": u.name, "mcp_server_directory_id": entry}
	for member, value := range map[string]string{"client_id": u.Context.ID, "client_secret": u.Context.Secret, "client_private_key": u.Context.Key} {
		if value != "" {
			server[member] = value
		}
	}
	id, err := u.make("/api/servers", server)
	if err != nil {
		return err
	}
	rules := []any{map[string]any{"name": "all", "authorized": true}}
	_, err = u.make("/api/policy", map[string]any{"name": u.name, "mcp_server_id": id, "status": "ACTIVE", "rules": rules})
	return err
}

// make makes an object by the API and returns its id.
func (u *suiteServer) make(path string, object map[string]any) (string, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	status, text := u.d.asked(u.t, u.admin, http.MethodPost, path, string(body))
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(text), &made); err != nil || status > 299 {
		return "", fmt.Errorf("%s: %d %s", path, status, text)
	}
	return made.ID, nil
}

func (u *suiteServer) connect() error {
	p := newPerson(u.t)
	page := p.visit(u.d.url + "/connect/" + u.name)
	if devTicket.Match(page.body) {
		page = p.pick(page, "alice@example.test")
	}
	if !strings.Contains(string(page.body), "is connected") {
		return fmt.Errorf("connecting: %d %s", page.status, page.body)
	}
	return nil
}

func (u *suiteServer) call() error {
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(u.t.Context(), callTimeout)
	defer cancel()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: u.d.url + "/mcp/" + u.name, HTTPClient: &http.Client{Transport: &withToken{token: u.user, base: base}}, MaxRetries: -1,
	}, nil)
	if err != nil {
		return fmt.Errorf("beginning a conversation: %w", err)
	}
	defer func() { _ = session.Close() }()
	list, err := session.ListTools(ctx, nil)
	if err != nil {
		return fmt.Errorf("listing tools: %w", err)
	}
	for _, tool := range list.Tools {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool.Name, Arguments: map[string]any{}})
		if err == nil && result.IsError {
			err = errors.New(textOf(result))
		}
		if err != nil {
			return fmt.Errorf("calling %s: %w", tool.Name, err)
		}
	}
	return nil
}
