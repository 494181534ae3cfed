package demo

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// TestClientFromNothingButTheURL checks that an unmodified go-sdk client goes 401 -> metadata -> registration -> PKCE
// -> call.
func TestClientFromNothingButTheURL(t *testing.T) {
	b := open(t, t.TempDir())
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			RedirectURIs: []string{callback}, ClientName: "go-sdk", GrantTypes: []string{"authorization_code", "refresh_token"},
		}},
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			u, err := url.Parse(args.URL)
			if err != nil {
				return nil, err
			}
			back := b.login(u.Query(), DefaultAccount)
			return &auth.AuthorizationResult{Code: back.Get("code"), State: back.Get("state"), Iss: back.Get("iss")}, nil
		},
		Client: b.client,
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(context.Background(), &mcp.StreamableClientTransport{
		Endpoint: b.demo.MCPURL(), HTTPClient: &http.Client{Transport: b.client.Transport}, OAuthHandler: handler,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "whoami"})
	if err != nil || r.IsError || r.Content[0].(*mcp.TextContent).Text != DefaultAccount {
		t.Errorf("%+v, %v", r, err)
	}
}
