package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxSessions    = 500
	sessionTimeout = 30 * time.Minute // without a request
	maxMCPBody     = 4 << 20

	// firstStateless is the first revision without sessions.
	firstStateless = "2026-07-28"
)

// mcpHandler serves the MCP server in both lifecycles. go-sdk's handler speaks one of them, so each request goes to the
// handler of its lifecycle. Requests of 2026-07-28 and later, which name their revision, go to the stateless one; all
// others go to the one with sessions. go-sdk's own check of the Host header against DNS rebinding stays on.
func (d *Demo) mcpHandler() http.Handler {
	server := func(*http.Request) *mcp.Server { return d.server }
	sessions := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{SessionTimeout: sessionTimeout, MaxRequestBodyBytes: maxMCPBody})
	stateless := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: maxMCPBody})
	route := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		modern, err := isStateless(w, r)
		var tooLarge *http.MaxBytesError
		switch {
		case errors.As(err, &tooLarge):
			http.Error(w, "the body is too large", http.StatusRequestEntityTooLarge)
		case err != nil:
			http.Error(w, "the body cannot be read", http.StatusBadRequest)
		case modern:
			stateless.ServeHTTP(w, r)
		case r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" && d.sessions() >= maxSessions:
			unavailable(w, "too many sessions are open")
		default:
			sessions.ServeHTTP(w, r)
		}
	})
	// go-sdk keeps a session to the user who opened it, and hands the token's facts to the tools, when its own middleware
	// has seen the token. The decision was taken before: this function only passes on its result.
	return auth.RequireBearerToken(func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		g := grantOf(ctx)
		return &auth.TokenInfo{UserID: g.Subject, Scopes: g.Scopes, Extra: map[string]any{"client": g.ClientID}}, nil
	}, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(route)
}

// sessions counts the open sessions.
func (d *Demo) sessions() int {
	n := 0
	for range d.server.Sessions() {
		n++
	}
	return n
}

// callerOf returns the account and client whose token a call carries. They belong to each call anew, not to the
// session.
func callerOf(r *mcp.CallToolRequest) identity {
	if r.Extra == nil || r.Extra.TokenInfo == nil {
		return identity{}
	}
	client, _ := r.Extra.TokenInfo.Extra["client"].(string)
	return identity{Account: r.Extra.TokenInfo.UserID, Client: client}
}

// isStateless reports whether a request is of a revision without sessions. It reads the header, or the version in the
// body when there is no header: such a request must not be taken for one of the first revisions, which sent none.
func isStateless(w http.ResponseWriter, r *http.Request) (bool, error) {
	if version := r.Header.Get("Mcp-Protocol-Version"); version != "" || r.Method != http.MethodPost {
		return version >= firstStateless, nil
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMCPBody))
	if err != nil {
		return false, err
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	var message struct {
		Params struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		} `json:"params"`
	}
	_ = json.Unmarshal(b, &message) // go-sdk refuses a message that cannot be read
	return message.Params.Meta["io.modelcontextprotocol/protocolVersion"] != nil, nil
}
