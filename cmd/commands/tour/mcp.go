package tour

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/durward-gateway/durward/internal/seal"
)

const mcpPath = "/mcp/" + serverSlug

// maxRefusal bounds the part of a refusal's body that is read.
const maxRefusal = 64 << 10

// bearer puts the user's token on requests to the gateway. This is the only difference to an MCP client without a
// login. It remembers the last refusal, because clients do not show the body.
type bearer struct {
	next  http.RoundTripper
	token seal.Secret
	host  string

	mu      sync.Mutex
	refusal answer
}

// RoundTrip implements http.RoundTripper.
func (b *bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Host == b.host {
		request = request.Clone(request.Context())
		request.Header.Set("Authorization", "Bearer "+b.token.Reveal())
	}
	response, err := b.next.RoundTrip(request)
	if err != nil || response.StatusCode < http.StatusBadRequest {
		return response, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	// A server without a stream of its own answers 405, which is no refusal.
	if response.StatusCode != http.StatusMethodNotAllowed {
		b.mu.Lock()
		b.refusal = answer{status: response.StatusCode, body: body}
		b.mu.Unlock()
	}
	return response, nil
}

func (b *bearer) refused() answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refusal
}

// open begins a conversation as an unmodified MCP client does. options may be nil.
func (w *walk) open(ctx context.Context, options *mcp.ClientOptions) (*mcp.ClientSession, *bearer, error) {
	gateway, err := url.Parse(w.Gateway)
	if err != nil {
		return nil, nil, err
	}
	next := w.Client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	carrier := &bearer{next: next, token: w.token, host: gateway.Host}
	client := mcp.NewClient(&mcp.Implementation{Name: "durward-tour", Title: "durward tour", Version: "1.0.0"}, options)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: w.Gateway + mcpPath, HTTPClient: &http.Client{Transport: carrier, CheckRedirect: w.Client.CheckRedirect}, MaxRetries: -1,
	}, nil)
	return session, carrier, err
}

// explain prefers the gateway's own error to the client's version of it.
func explain(err error, carrier *bearer) error {
	if carrier == nil {
		return err
	}
	if refused := carrier.refused(); refused.status != 0 {
		return refused.unexpected()
	}
	return err
}

func listTools(ctx context.Context, w *walk) ([]string, error) {
	session, carrier, err := w.open(ctx, nil)
	if err != nil {
		return nil, explain(err, carrier)
	}
	defer session.Close()
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return nil, explain(err, carrier)
	}
	detail := []string{
		fmt.Sprintf("POST %s with the token of %s: %s, protocol %s", mcpPath, w.email, session.InitializeResult().ServerInfo.Name, session.InitializeResult().ProtocolVersion),
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	if len(names) == 0 {
		return detail, errors.New("the server lists no tools")
	}
	return append(detail, "tools: "+list(names)), nil
}

func callTools(ctx context.Context, w *walk) ([]string, error) {
	session, carrier, err := w.open(ctx, nil)
	if err != nil {
		return nil, explain(err, carrier)
	}
	defer session.Close()
	var sum struct {
		Sum float64 `json:"sum"`
	}
	if err := call(ctx, session, "add", map[string]any{"a": 19, "b": 23}, &sum); err != nil {
		return nil, explain(err, carrier)
	}
	if sum.Sum != 42 {
		return nil, fmt.Errorf("add {19, 23} answered %v", sum.Sum)
	}
	detail := []string{"tools/call add {a: 19, b: 23} -> 42"}
	var who struct {
		Account string `json:"account"`
	}
	if err := call(ctx, session, "whoami", nil, &who); err != nil {
		return detail, explain(err, carrier)
	}
	if who.Account != w.account && !w.connected {
		return detail, fmt.Errorf("whoami answered %q; the connected account is %q", who.Account, w.account)
	}
	return append(detail,
		fmt.Sprintf("tools/call whoami {} -> %s: the third party saw a token of its own account, not the one that the client sent", who.Account)), nil
}

func call(ctx context.Context, session *mcp.ClientSession, tool string, arguments map[string]any, result any) error {
	got, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return err
	}
	if got.IsError {
		return fmt.Errorf("%s failed: %s", tool, text(got))
	}
	structured, err := json.Marshal(got.StructuredContent)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(structured, result); err != nil {
		return fmt.Errorf("%s answered something else than it promises: %w", tool, err)
	}
	return nil
}

func text(result *mcp.CallToolResult) string {
	for _, content := range result.Content {
		if t, ok := content.(*mcp.TextContent); ok {
			return t.Text
		}
	}
	return "no reason given"
}

// callUnconnected makes a call of a user who is not connected. With `unconnected guide` gateways answer it with
// guidance.
func callUnconnected(ctx context.Context, session *mcp.ClientSession) ([]string, error) {
	got, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "add", Arguments: map[string]any{"a": 19, "b": 23}})
	if err != nil {
		return nil, err
	}
	if said := text(got); got.IsError && strings.Contains(said, "/connect/"+serverSlug) {
		return []string{"tools/call add {a: 19, b: 23} -> not made: ServerNotConnected", "the client is told where to connect: " + said}, nil
	}
	return nil, errors.New("the gateway let the call through without a connection")
}

// callAgain passes when a client that begins anew gets only as far as the gateway, and is told where to connect.
func callAgain(ctx context.Context, w *walk) ([]string, error) {
	session, carrier, err := w.open(ctx, nil)
	if err == nil {
		defer session.Close()
		return callUnconnected(ctx, session)
	}
	if carrier == nil {
		return nil, err
	}
	refused := carrier.refused()
	if refused.status == 0 {
		return nil, err
	}
	var said serviceError
	if refused.status != http.StatusForbidden || json.Unmarshal(refused.body, &said) != nil || said.Name != "ServerNotConnected" {
		return nil, refused.unexpected()
	}
	return []string{
		fmt.Sprintf("POST %s -> %d %s", mcpPath, refused.status, said.Name),
		"the client is told where to connect: " + said.Details.ConnectURL,
	}, nil
}
