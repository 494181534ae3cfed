package probe

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/proxy/sse"
	"github.com/durward-gateway/durward/storage"
)

// demands reports whether an answer asks for a credential, or for another one.
func demands(a reply) bool {
	return a.status == http.StatusUnauthorized || a.status == http.StatusForbidden && !a.found
}

// demanded reports which authentication a server demands that refuses the probe.
func (s *probing) demanded(ctx context.Context, a reply) {
	s.Transport = StreamableHTTP
	s.Authentication = AuthOther
	found, err := s.oauth.Discover(ctx, oauth.Target{URL: s.target.Entry.URL, Known: s.target.Entry.OAuth, Grant: oauth.GrantOf(&s.target.Entry), Roots: s.roots})
	if err == nil && (!found.Assumed || s.kind() == storage.ProviderOAuth2 && s.hasAssumed(ctx, found.Endpoints.AuthorizationEndpoint)) {
		s.Authentication, s.Issuer = AuthOAuth, found.Endpoints.Issuer
	}
	switch {
	case s.target.Apply != nil && a.status == http.StatusForbidden:
		s.Problem, s.Message = "forbidden", "The server refuses your account (403): it lacks a permission there, or the connection was made with too few scopes."
	case s.target.Apply != nil && s.kind().Obtained():
		s.Problem, s.Message = "credential_refused", "The server refuses the token that "+s.giver()+" (401). Look at audience, resource and scopes of its directory entry."
	case s.target.Apply != nil:
		s.Problem, s.Message = "credential_refused", "The server refuses your credential (401). Connect your account to it anew."
	case a.status == http.StatusForbidden && s.Authentication != AuthOAuth:
		s.Problem, s.Message = "forbidden", "The server refuses the gateway (403) without asking who it is. Something before it may let only some addresses in: have the gateway's added."
	case s.kind() == storage.ProviderNone && s.Authentication == AuthOAuth:
		s.Problem, s.Message = "credential_demanded", "The server demands a login, and its directory entry says that it needs none. Set its provider to oauth2, and requires_auth to true."
	case s.kind() == storage.ProviderNone:
		s.Problem, s.Message = "credential_demanded", fmt.Sprintf("The server demands a credential (%d), names no authorization server, and its directory entry says that it needs none. "+
			"Set provider to api_key, bearer_token or basic_auth, or to oauth2 with authorization_endpoint and token_endpoint, and requires_auth to true.", a.status)
	case s.kind() == storage.ProviderOAuth2 && s.Authentication != AuthOAuth:
		s.Cause = err
		s.Problem, s.Message = "no_oauth_metadata", "The server demands a token, and does not say which authorization server gives it (no RFC 9728 or RFC 8414 metadata), so that no account can be connected. "+
			"An administrator gives the directory entry authorization_endpoint and token_endpoint, or provider bearer_token if the server takes tokens that users paste."
	case s.target.Entry.OwnServer() && s.Authentication != AuthOAuth:
		s.Cause = err
		s.Problem, s.Message = "no_oauth_metadata", "The server demands a token, and does not say which authorization server gives it (no RFC 9728 or RFC 8414 metadata with the grant of its directory entry). "+
			"An administrator gives the directory entry the issuer, or looks at its provider."
	case s.kind().Obtained():
		s.Message = "The server answers and wants a credential, a token that " + s.giver() + ". Test it once it has its OAuth client to see its tools."
	default:
		s.Message = "The server answers and wants a credential. Connect an account to see its tools."
	}
}

// giver says, within a sentence, who gives the token of a server whose users connect no account.
func (s *probing) giver() string {
	switch {
	case s.kind().ForItself():
		return "its authorization server gives the gateway"
	case s.target.Entry.Asserts():
		return "its authorization server gives for you"
	}
	return "the identity provider gives for you"
}

// hasAssumed reports whether anything answers at an assumed authorization endpoint. Endpoints of a server without
// metadata are assumed, as MCP 2025-03-26 prescribes. A request without parameters gets an error of the endpoint's
// own, or a page.
func (s *probing) hasAssumed(ctx context.Context, endpoint string) bool {
	ctx, cancel := context.WithTimeout(ctx, aside)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, http.NoBody)
	if err != nil {
		return false
	}
	response, err := s.client.Do(r)
	if err != nil {
		return errors.Is(err, netguard.ErrRedirect) // to a login
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
		return false
	}
	return true
}

// notMCP describes an answer that is not MCP.
func (s *probing) notMCP(a reply) {
	switch {
	case a.code() != "":
		s.Problem, s.Message = "initialize", "The server speaks JSON-RPC, and refuses to begin a conversation with error "+a.code()+". Its own log says why."
	case a.status == http.StatusNotFound:
		s.Problem, s.Message = "not_found", fmt.Sprintf("There is nothing at %s (404). Check the path: MCP servers are often at /mcp, older ones at /sse.", s.url.Path)
	case a.page:
		s.Problem, s.Message = "page", "The address answers with a web page. Enter the address of the MCP server itself, often the same with /mcp at the end."
	case a.status == http.StatusMethodNotAllowed:
		s.Problem, s.Message = "method", "The address takes no POST (405), so it is no MCP server. Check the path: MCP servers are often at /mcp, older ones at /sse."
	case a.status == http.StatusTooManyRequests:
		s.Problem, s.Message = "busy", "The server answers that it gets too many requests (429). Try again in a while."
	case a.status >= http.StatusInternalServerError:
		s.Problem, s.Message = "server_error", fmt.Sprintf("The server, or a proxy before it, fails (status %d). Its own log says why.", a.status)
	case a.json:
		s.Problem, s.Message = "not_mcp", fmt.Sprintf("The address answers with JSON that is not MCP (status %d). Check the path: this may be another API of the same server.", a.status)
	default:
		s.Problem, s.Message = "not_mcp", fmt.Sprintf("The address answers (status %d), but not as an MCP server does. Check the path.", a.status)
	}
}

// says describes an answer, for use within a sentence.
func (a *reply) says() string {
	if code := a.code(); code != "" {
		return "it answers with error " + code
	}
	return fmt.Sprintf("it answers with status %d", a.status)
}

// announcesEndpoint reports whether the server is one of 2024-11-05: a GET opens a stream that says where to post.
func (s *probing) announcesEndpoint(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, aside)
	defer cancel()
	response, err := s.send(ctx, http.MethodGet, "", "")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	if !isEventStream(response) {
		return false
	}
	event, err := sse.NewReader(response.Body, 0).Next()
	return err == nil && event.Name == "endpoint"
}

// readEvents probes a server's event stream that is not MCP.
func (s *probing) readEvents(ctx context.Context) {
	response, err := s.send(ctx, http.MethodGet, "", "")
	if err != nil {
		s.unreachable(err)
		return
	}
	defer response.Body.Close()
	s.Reachable = true
	a := reply{status: response.StatusCode, header: response.Header}
	switch {
	case demands(a):
		s.demanded(ctx, a)
	case isEventStream(response) && response.StatusCode == http.StatusOK:
		s.Transport = EventStream
	default:
		s.Problem, s.Message = "no_events", fmt.Sprintf("The address answers (status %d), but not with an event stream. Check events_url; if it is an MCP server, the entry's protocol is mcp.", response.StatusCode)
	}
}

func isEventStream(response *http.Response) bool {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream"
}

// conclude completes the report of a server without problems.
func (s *probing) conclude() {
	if s.Authentication == "" {
		s.Authentication = AuthNone
		if s.target.Apply != nil {
			s.Authentication = map[bool]string{true: AuthOAuth, false: AuthOther}[s.kind() == storage.ProviderOAuth2]
		}
	}
	switch {
	case s.Message != "":
	case s.Transport == HTTPSSE:
		s.Message = "The server answers, and speaks only the transport of 2024-11-05 (HTTP+SSE), which newer clients may not. " +
			"If it has another address for streamable HTTP, often /mcp instead of /sse, enter that."
	case s.Transport == EventStream:
		s.Message = "The server's event stream answers."
	case s.Tools == nil:
		s.Message = "The server answers."
	case *s.Tools == 1:
		s.Message = "The server answers and shows 1 tool."
	default:
		s.Message = fmt.Sprintf("The server answers and shows %d tools.", *s.Tools)
	}
}
