package integration

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// withToken is a transport that sends a token, and keeps the session ids that it sent and got.
type withToken struct {
	token string
	base  http.RoundTripper

	mu      sync.Mutex
	session string // the last id that the gateway gave
}

func (w *withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	response, err := w.base.RoundTrip(r)
	if err == nil {
		if id := response.Header.Get("Mcp-Session-Id"); id != "" {
			w.mu.Lock()
			w.session = id
			w.mu.Unlock()
		}
	}
	return response, err
}

func (w *withToken) sessionID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session
}

// mcpClient is a connected go-sdk client.
type mcpClient struct {
	*mcp.ClientSession
	http *withToken
}

// connectMCP connects a go-sdk client of a protocol version to an address; "" is the newest. It is closed with the test.
func connectMCP(t testing.TB, address, token, version string, options *mcp.ClientOptions) *mcpClient {
	t.Helper()
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	c := &mcpClient{http: &withToken{token: token, base: base}}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options).Connect(within(t, callTimeout), &mcp.StreamableClientTransport{
		Endpoint: address, HTTPClient: &http.Client{Transport: c.http}, MaxRetries: -1,
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connecting to %s: %v", address, err)
	}
	t.Cleanup(func() { _ = session.Close() })
	c.ClientSession = session
	return c
}

// call calls a tool and returns its text.
func (c *mcpClient) call(t testing.TB, tool string, arguments map[string]any) string {
	t.Helper()
	result, err := c.CallTool(within(t, callTimeout), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("calling %s: %v", tool, err)
	}
	if result.IsError {
		t.Fatalf("calling %s: %s", tool, textOf(result))
	}
	return textOf(result)
}

// within returns a context that ends with the test, or after a while.
func within(t testing.TB, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// cancellable returns a context that a test ends, or that ends with it.
func cancellable(t testing.TB) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	t.Cleanup(cancel)
	return ctx, cancel
}

// receive waits for a value.
func receive[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(callTimeout):
		t.Fatalf("waited %v for %s", callTimeout, what)
		panic("not reached")
	}
}
func clientProgress(to chan<- string) func(context.Context, *mcp.ProgressNotificationClientRequest) {
	return func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { to <- r.Params.Message }
}

func clientListChanged(to chan<- string) func(context.Context, *mcp.ToolListChangedRequest) {
	return func(context.Context, *mcp.ToolListChangedRequest) { to <- "changed" }
}
