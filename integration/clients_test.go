package integration

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/durward-gateway/durward/integration/rig"
)

// clientUser logs in with the clients of these tests, and clientAccount is the account that she has connected at the
// demo.
const (
	clientUser    = "alice@example.test"
	clientAccount = "demo-bob"
)

// TestClientsLogIn checks that unmodified MCP clients get from nothing but a server's URL to a tool's answer: 401,
// metadata, registration, login with PKCE, call.
func TestClientsLogIn(t *testing.T) {
	t.Parallel()
	tools := conformanceTools(t)
	clients := officialClients(t)
	d := newDevHome(t).start(t)
	d.connect(t, d.token(t), clientAccount)
	server := d.url + "/mcp/demo"

	t.Run("go-sdk", func(t *testing.T) {
		if got := loginWithGoSDK(t, server); got != clientAccount {
			t.Errorf("whoami says %q", got)
		}
	})
	for _, era := range []string{"legacy", "modern"} {
		t.Run("TypeScript "+era, func(t *testing.T) {
			said := strings.Split(runNode(t, tools, "clients/login.mjs", server, clientUser, clients, era), "\n")
			if said[0] != clientAccount {
				t.Errorf("whoami says %q", said[0])
			}
			if era == "modern" && said[1] != "2026-07-28" {
				t.Errorf("agreed on %q", said[1])
			}
		})
	}
	d.process.stop(t)
	d.process.checkLog(t)
}

// loginWithGoSDK lets go-sdk's client log in and returns the answer of whoami.
func loginWithGoSDK(t *testing.T, server string) string {
	t.Helper()
	user := newPerson(t)
	redirect := newLanding(t) + "/callback"
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			RedirectURIs: []string{redirect}, ClientName: "go-sdk", TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"},
		}},
		AuthorizationCodeFetcher: func(_ context.Context, arguments *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			back, err := user.letIn(arguments.URL, redirect, clientUser)
			if err != nil {
				return nil, err
			}
			return &auth.AuthorizationResult{Code: back.Get("code"), State: back.Get("state"), Iss: back.Get("iss")}, nil
		},
		Client: newClient(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(within(t, callTimeout), &mcp.StreamableClientTransport{
		Endpoint: server, HTTPClient: &http.Client{Transport: transport}, OAuthHandler: handler, MaxRetries: -1,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(within(t, callTimeout), &mcp.CallToolParams{Name: "whoami"})
	if err != nil {
		t.Fatal(err)
	}
	return textOf(result)
}

// letIn plays the browser of a user who logs in at a client's authorization request, agrees to the client and connects no
// account. It returns the parameters with which the browser comes back.
func (p *person) letIn(address, redirect, email string) (url.Values, error) {
	page := p.visit(address)
	for range 4 {
		for _, v := range p.seen {
			if strings.HasPrefix(v.location, redirect+"?") {
				back, err := url.Parse(v.location)
				if err != nil {
					return nil, err
				}
				return back.Query(), nil
			}
		}
		last := p.seen[len(p.seen)-1]
		question := consentForm.FindStringSubmatch(string(page.body))
		switch {
		case devTicket.Match(page.body):
			page = p.pick(page, email)
		case question != nil:
			decision := "approve"
			if strings.Contains(string(page.body), `value="later"`) {
				decision = "later"
			}
			page = p.submit(last.url.Scheme+"://"+last.url.Host+html.UnescapeString(question[1]), url.Values{"form": {question[2]}, "decision": {decision}})
		default:
			return nil, fmt.Errorf("neither a login nor a question: %d %s", page.status, page.body)
		}
	}
	return nil, fmt.Errorf("the browser does not come back from %s", address)
}

// officialClients returns the directory of the SDKs of TypeScript.
func officialClients(t *testing.T) string {
	t.Helper()
	return rig.Tools(t, "clients")
}

// runNode runs a script with the Node that the conformance suites brought, and returns what it writes.
func runNode(t *testing.T, tools, script string, arguments ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), suiteTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(tools, "node/node_modules/.bin/node"), append([]string{script}, arguments...)...)
	command.Env = append(os.Environ(), "NODE_OPTIONS=")
	command.WaitDelay = callTimeout
	var complaint strings.Builder
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", script, err, output, complaint.String())
	}
	return string(output)
}
