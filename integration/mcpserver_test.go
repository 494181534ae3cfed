package integration

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpServer is a go-sdk server whose tools are held and released by the test.
type mcpServer struct {
	*mcp.Server
	url       string
	proceed   chan struct{} // "wait" goes on when something comes
	cancelled chan struct{} // gets one when a call of "wait" was cancelled

	mu      sync.Mutex
	methods []string // of HTTP requests
}

type (
	echoArguments struct {
		Text string `json:"text"`
	}
	nothing struct{}
)

func newMCPServer(t testing.TB, options *mcp.StreamableHTTPOptions) *mcpServer {
	t.Helper()
	s := &mcpServer{
		Server:  mcp.NewServer(&mcp.Implementation{Name: "upstream", Version: "1"}, nil),
		proceed: make(chan struct{}), cancelled: make(chan struct{}, 1),
	}
	mcp.AddTool(s.Server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in echoArguments) (*mcp.CallToolResult, any, error) {
		return text(in.Text), nil, nil
	})
	mcp.AddTool(s.Server, &mcp.Tool{Name: "upper"}, func(_ context.Context, _ *mcp.CallToolRequest, in echoArguments) (*mcp.CallToolResult, any, error) {
		return text(strings.ToUpper(in.Text)), nil, nil
	})
	mcp.AddTool(s.Server, &mcp.Tool{Name: "wait"}, s.wait)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.Server }, options)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.methods = append(s.methods, r.Method)
		s.mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		close(s.proceed)
		server.CloseClientConnections()
		server.Close()
	})
	s.url = server.URL + "/mcp"
	return s
}

// wait reports progress once and answers when the test says so.
func (s *mcpServer) wait(ctx context.Context, request *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
	if progress := request.Params.GetProgressToken(); progress != nil {
		err := request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: progress, Progress: 1, Total: 2, Message: "halfway"})
		if err != nil {
			return nil, nil, err
		}
	}
	select {
	case <-s.proceed:
		return text("done"), nil, nil
	case <-ctx.Done():
		s.cancelled <- struct{}{}
		return nil, nil, ctx.Err()
	}
}

// count returns the number of HTTP requests of a method.
func (s *mcpServer) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, m := range s.methods {
		if m == method {
			n++
		}
	}
	return n
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// textOf returns the first text of a result.
func textOf(r *mcp.CallToolResult) string {
	if len(r.Content) > 0 {
		if c, ok := r.Content[0].(*mcp.TextContent); ok {
			return c.Text
		}
	}
	return ""
}
