package probe

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/proxy/http1"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/storage"
)

// resolver knows a few names.
type resolver map[string]string

func (r resolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	address, known := r[host]
	if !known {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return []netip.Addr{netip.MustParseAddr(address)}, nil
}

// discovery finds an issuer; "": none.
type discovery string

// assumed is an issuer that publishes no metadata, as oauth finds one for every server.
const assumed = "assumed"

func (d discovery) Discover(_ context.Context, t oauth.Target) (found oauth.Discovery, err error) {
	if d == assumed {
		u, err := url.Parse(t.URL)
		found.Assumed, found.Endpoints.AuthorizationEndpoint = true, "http://"+u.Host+"/authorize"
		return found, err
	}
	if d == "" {
		return found, errors.New("no metadata")
	}
	found.Endpoints.Issuer = string(d)
	return found, nil
}

func newProber(issuer string) *Prober {
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	guard := netguard.New(netguard.Policy{Allow: loopback, HTTP: loopback}, netguard.WithResolver(resolver{"inner.example": "10.1.2.3", "here.example": "127.0.0.1"}))
	return New(guard, discovery(issuer), 20*time.Second)
}

func open(url string) storage.DirectoryEntry {
	return storage.DirectoryEntry{URL: url, Protocol: storage.ProtocolMCP, Provider: storage.ProviderNone}
}

func demanding(url string, provider storage.Provider) storage.DirectoryEntry {
	return storage.DirectoryEntry{URL: url, Protocol: storage.ProtocolMCP, Provider: provider, RequiresAuth: true}
}

// legacyServer returns a server of the revisions with initialize. It answers as JSON or in an event stream, in pages of two tools.
func legacyServer(events bool, tools int, left *int) http.HandlerFunc {
	answer := func(w http.ResponseWriter, body string) {
		if events {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			fmt.Fprintf(w, ": hello\n\nid: 1\ndata:\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\ndata: %s\n\n", body)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		inSession := r.Header.Get("Mcp-Session-Id") == "s-1" && r.Header.Get("Mcp-Protocol-Version") == "2025-06-18"
		switch text := string(body); {
		case r.Method == http.MethodDelete && inSession:
			*left++
		case strings.Contains(text, `"method":"initialize"`):
			w.Header().Set("Mcp-Session-Id", "s-1")
			answer(w, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`)
		case !inSession:
			w.WriteHeader(http.StatusBadRequest)
			answer(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: no valid session ID provided"}}`)
		case strings.Contains(text, `notifications/initialized`):
			w.WriteHeader(http.StatusAccepted)
		case strings.Contains(text, `"method":"tools/list"`):
			page, more := 0, ""
			if i := strings.Index(text, `"cursor":"p`); i >= 0 {
				page = int(text[i+len(`"cursor":"p`)] - '0')
			}
			n := min(tools-2*page, 2)
			if 2*page+n < tools {
				more = fmt.Sprintf(`,"nextCursor":"p%d"`, page+1)
			}
			answer(w, `{"jsonrpc":"2.0","id":1,"result":{"tools":[`+strings.TrimSuffix(strings.Repeat(`{"name":"t"},`, n), ",")+`]`+more+`}}`)
		}
	}
}

func modernServer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	switch method := r.Header.Get("Mcp-Method"); {
	case r.Header.Get("Mcp-Protocol-Version") != "2026-07-28" || !strings.Contains(string(body), `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`):
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"Unsupported protocol version"}}`)
	case method == "server/discover":
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28","<script>"],"capabilities":{"tools":{}}}}`)
	case method == "tools/list":
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"only"}]}}`)
	}
}

func answering(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// zipped compresses a handler's answers.
func zipped(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		handler(zipper{w, z}, r)
	}
}

type zipper struct {
	http.ResponseWriter
	z *gzip.Writer
}

func (z zipper) Write(p []byte) (int, error) { return z.z.Write(p) }

func number(n int) *int { return &n }

// TestProbe checks the description of servers, and of their problems.
func TestProbe(t *testing.T) {
	t.Parallel()
	left := 0
	sse := func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: endpoint\ndata: /messages?sessionId=1\n\n")
	}
	withKey := func(r *http1.Request) error { r.Set("Authorization", "Bearer good"); return nil }
	wantsKey := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer good" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		legacyServer(false, 3, new(int))(w, r)
	}
	for _, tc := range []struct {
		name    string
		handler http.HandlerFunc
		entry   func(url string) storage.DirectoryEntry
		apply   func(*http1.Request) error
		issuer  string
		want    Report
		says    string
	}{
		{name: "older, JSON", handler: legacyServer(false, 5, &left), says: "shows 5 tools",
			want: Report{Reachable: true, Transport: StreamableHTTP, Revisions: []string{"2025-06-18"}, Authentication: AuthNone, Tools: number(5)}},
		{name: "older, events", handler: legacyServer(true, 1, new(int)), says: "shows 1 tool.",
			want: Report{Reachable: true, Transport: StreamableHTTP, Revisions: []string{"2025-06-18"}, Authentication: AuthNone, Tools: number(1)}},
		{name: "older, JSON, gzip", handler: zipped(legacyServer(false, 5, new(int))), says: "shows 5 tools",
			want: Report{Reachable: true, Transport: StreamableHTTP, Revisions: []string{"2025-06-18"}, Authentication: AuthNone, Tools: number(5)}},
		{name: "older, events, gzip", handler: zipped(legacyServer(true, 1, new(int))), says: "shows 1 tool.",
			want: Report{Reachable: true, Transport: StreamableHTTP, Revisions: []string{"2025-06-18"}, Authentication: AuthNone, Tools: number(1)}},
		{name: "older, and refuses a newer revision, as Slack's", says: "shows 2 tools",
			handler: func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if strings.Contains(string(body), `"protocolVersion":"2025-11-25"`) {
					answering(400, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unsupported protocol version"}}`)(w, r)
					return
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				legacyServer(false, 2, new(int))(w, r)
			},
			want: Report{Reachable: true, Transport: StreamableHTTP, Revisions: []string{"2025-06-18"}, Authentication: AuthNone, Tools: number(2)}},
		{name: "newer", handler: modernServer, says: "shows 1 tool.",
			want: Report{Reachable: true, Transport: StreamableHTTP, Revisions: []string{"2026-07-28"}, Authentication: AuthNone, Tools: number(1)}},
		{name: "HTTP+SSE", handler: sse, says: "2024-11-05",
			want: Report{Reachable: true, Transport: HTTPSSE, Revisions: []string{"2024-11-05"}, Authentication: AuthNone}},
		{name: "connected", handler: wantsKey, apply: withKey, says: "shows 3 tools",
			entry: func(url string) storage.DirectoryEntry { return demanding(url, storage.ProviderBearerToken) },
			want:  Report{Reachable: true, Transport: StreamableHTTP, Revisions: []string{"2025-06-18"}, Authentication: AuthOther, Tools: number(3)}},
		{name: "not connected", handler: wantsKey, issuer: "https://id.example", says: "Connect an account",
			entry: func(url string) storage.DirectoryEntry { return demanding(url, storage.ProviderOAuth2) },
			want:  Report{Reachable: true, Transport: StreamableHTTP, Authentication: AuthOAuth, Issuer: "https://id.example"}},
		{name: "not connected, a key", handler: wantsKey, says: "Connect an account",
			entry: func(url string) storage.DirectoryEntry { return demanding(url, storage.ProviderAPIKey) },
			want:  Report{Reachable: true, Transport: StreamableHTTP, Authentication: AuthOther}},
		{name: "no metadata, and nothing where it is assumed", handler: wantsKey, issuer: assumed, says: "administrator gives the directory entry authorization_endpoint and token_endpoint",
			entry: func(url string) storage.DirectoryEntry { return demanding(url, storage.ProviderOAuth2) },
			want:  Report{Reachable: true, Transport: StreamableHTTP, Authentication: AuthOther, Problem: "no_oauth_metadata"}},
		{name: "no metadata, of MCP 2025-03-26", issuer: assumed, says: "Connect an account",
			handler: func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/authorize" {
					http.Redirect(w, r, "/login", http.StatusFound)
					return
				}
				wantsKey(w, r)
			},
			entry: func(url string) storage.DirectoryEntry { return demanding(url, storage.ProviderOAuth2) },
			want:  Report{Reachable: true, Transport: StreamableHTTP, Authentication: AuthOAuth}},
		{name: "no metadata", handler: wantsKey, says: "authorization_endpoint",
			entry: func(url string) storage.DirectoryEntry { return demanding(url, storage.ProviderOAuth2) },
			want:  Report{Reachable: true, Transport: StreamableHTTP, Authentication: AuthOther, Problem: "no_oauth_metadata"}},
		{name: "a login not expected", handler: wantsKey, issuer: "https://id.example", says: "provider to oauth2",
			want: Report{Reachable: true, Transport: StreamableHTTP, Authentication: AuthOAuth, Issuer: "https://id.example", Problem: "credential_demanded"}},
		{name: "a credential not expected", handler: wantsKey, says: "api_key, bearer_token or basic_auth",
			want: Report{Reachable: true, Transport: StreamableHTTP, Authentication: AuthOther, Problem: "credential_demanded"}},
		{name: "credential refused", handler: answering(401, "text/plain", "no"), apply: withKey, says: "anew",
			entry: func(url string) storage.DirectoryEntry { return demanding(url, storage.ProviderBearerToken) },
			want:  Report{Reachable: true, Transport: StreamableHTTP, Authentication: AuthOther, Problem: "credential_refused"}},
		{name: "a token of the identity provider's refused", handler: answering(401, "text/plain", "no"), apply: withKey, says: "that the identity provider gives for you",
			entry: func(url string) storage.DirectoryEntry { return demanding(url, storage.ProviderTokenExchange) },
			want:  Report{Reachable: true, Transport: StreamableHTTP, Authentication: AuthOther, Problem: "credential_refused"}},
		{name: "a token of the gateway's own refused", handler: answering(401, "text/plain", "no"), apply: withKey, says: "that its authorization server gives the gateway",
			entry: func(url string) storage.DirectoryEntry { return demanding(url, storage.ProviderClientCredentials) },
			want:  Report{Reachable: true, Transport: StreamableHTTP, Authentication: AuthOther, Problem: "credential_refused"}},
		{name: "no client yet", handler: wantsKey, issuer: "https://id.example", says: "a token that its authorization server gives the gateway. Test it once",
			entry: func(url string) storage.DirectoryEntry { return demanding(url, storage.ProviderClientCredentials) },
			want:  Report{Reachable: true, Transport: StreamableHTTP, Authentication: AuthOAuth, Issuer: "https://id.example"}},
		{name: "no client yet, vouched for", handler: wantsKey, issuer: "https://id.example", says: "a token that its authorization server gives for you",
			entry: func(url string) storage.DirectoryEntry {
				e := demanding(url, storage.ProviderTokenExchange)
				e.Options.RequestedTokenType = storage.TokenIdentityAssertion
				return e
			},
			want: Report{Reachable: true, Transport: StreamableHTTP, Authentication: AuthOAuth, Issuer: "https://id.example"}},
		{name: "no authorization server for the gateway", handler: wantsKey, says: "gives the directory entry the issuer",
			entry: func(url string) storage.DirectoryEntry { return demanding(url, storage.ProviderClientCredentials) },
			want:  Report{Reachable: true, Transport: StreamableHTTP, Authentication: AuthOther, Problem: "no_oauth_metadata"}},
		{name: "a firewall's 403", handler: answering(403, "text/html", "<html>no"), says: "addresses",
			want: Report{Reachable: true, Transport: StreamableHTTP, Authentication: AuthOther, Problem: "forbidden"}},
		{name: "wrong path", handler: answering(404, "text/plain", "404 page not found"), says: "/mcp", want: Report{Reachable: true, Problem: "not_found"}},
		{name: "page", handler: answering(200, "text/html; charset=utf-8", "<!DOCTYPE html><p>Welcome"), says: "web page", want: Report{Reachable: true, Problem: "page"}},
		{name: "page without a label", handler: answering(200, "", "<!DOCTYPE html><p>Welcome"), says: "web page", want: Report{Reachable: true, Problem: "page"}},
		{name: "no POST", handler: answering(405, "text/plain", ""), says: "405", want: Report{Reachable: true, Problem: "method"}},
		{name: "another API", handler: answering(200, "application/json", `{"hello":"world"}`), says: "another API", want: Report{Reachable: true, Problem: "not_mcp"}},
		{name: "JSON-RPC, an error", handler: answering(200, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"<script>"}}`), says: "-32601",
			want: Report{Reachable: true, Problem: "initialize"}},
		{name: "an empty answer", handler: answering(200, "text/event-stream", ""), says: "not as an MCP server", want: Report{Reachable: true, Problem: "not_mcp"}},
		{name: "a broken proxy", handler: answering(502, "text/plain", "bad gateway"), says: "502", want: Report{Reachable: true, Problem: "server_error"}},
		{name: "too many requests", handler: answering(429, "text/plain", ""), says: "429", want: Report{Reachable: true, Problem: "busy"}},
		{name: "redirect", handler: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/mcp/", http.StatusPermanentRedirect)
		}, says: "slash",
			want: Report{Problem: "redirect"}},
		{name: "compressed", handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			answering(200, "application/json", "x")(w, r)
		}, says: "gzip and zstd", want: Report{Problem: "encoded"}},
		{name: "event stream", handler: answering(200, "text/event-stream", "data: 1\n\n"), says: "event stream answers",
			entry: func(url string) storage.DirectoryEntry {
				return storage.DirectoryEntry{URL: url, EventsURL: url + "/events", Protocol: storage.ProtocolSSE}
			},
			want: Report{Reachable: true, Transport: EventStream, Authentication: AuthNone}},
		{name: "no event stream", handler: answering(200, "application/json", "{}"), says: "events_url",
			entry: func(url string) storage.DirectoryEntry {
				return storage.DirectoryEntry{URL: url, Protocol: storage.ProtocolSSE}
			},
			want: Report{Reachable: true, Problem: "no_events"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := httptest.NewServer(tc.handler)
			defer server.Close()
			entry := open(server.URL + "/path")
			if tc.entry != nil {
				entry = tc.entry(server.URL + "/path")
			}
			got := newProber(tc.issuer).Probe(t.Context(), Target{Entry: entry, Apply: tc.apply})
			if !strings.Contains(got.Message, tc.says) || strings.Contains(got.Message, "<script>") {
				t.Errorf("it says %q", got.Message)
			}
			got.Message = ""
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(Report{}, "Cause")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if left != 1 {
		t.Errorf("%d sessions were ended", left)
	}
}

// TestUnreachable checks the description of errors below MCP.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(legacyServer(false, 1, new(int)))
	defer secure.Close()
	secure.Config.ErrorLog = nil
	plain := httptest.NewServer(legacyServer(false, 1, new(int)))
	defer plain.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	broken := listen(t, func(c net.Conn) { _ = c.Close() })
	silent := listen(t, func(net.Conn) {})
	for _, tc := range []struct{ name, url, problem, says string }{
		{"DNS", "https://nowhere.example/mcp", "dns", "nowhere.example"},
		{"refused", closed.URL, "refused", "Nothing listens on 127.0.0.1:"},
		{"unknown authority", secure.URL, "tls_unknown_authority", "trusted_ca {file./path/to/ca.pem}"},
		{"no TLS", strings.Replace(plain.URL, "http:", "https:", 1), "tls", "http RANGE"},
		{"private", "https://10.1.2.3/mcp", "private_address", "allow 10.1.2.3/32"},
		{"private IPv6", "https://[fd00::1]/mcp", "private_address", "allow fd00::1/128"},
		{"private, http", "http://10.1.2.3/mcp", "private_address", "http 10.1.2.3/32"},
		{"public, http", "http://192.0.2.1/mcp", "private_address", "http 192.0.2.1/32"},
		{"a private name", "https://inner.example/mcp", "private_address", "allow ADDRESS/32"},
		{"another scheme", "ftp://example.com/", "address", "scheme"},
		{"broken", "http://" + broken, "broken", "broke"},
		{"silent", "http://" + silent, "timeout", "in time"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			if tc.name == "silent" {
				cancel()
				ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
			}
			defer cancel()
			got := newProber("").Probe(ctx, Target{Entry: open(tc.url)})
			if got.Problem != tc.problem || !strings.Contains(got.Message, tc.says) || got.Reachable || got.Cause == nil {
				t.Errorf("%+v", got)
			}
			if strings.Contains(got.Message, "10.1.2.3") && !strings.Contains(tc.url, "10.1.2.3") {
				t.Error("it says what the name resolves to")
			}
		})
	}
}

// listen accepts connections and hands them on.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		// The garbage collector closes a connection that nothing holds: the silent server would break it.
		var open []net.Conn
		defer func() {
			for _, c := range open {
				_ = c.Close()
			}
		}()
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			open = append(open, c)
			serve(c)
		}
	}()
	return listener.Addr().String()
}

// TestCredentialStaysSecret checks that a connection error repeats no credential of the query.
func TestCredentialStaysSecret(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(nil)
	closed.Close()
	got := newProber("").Probe(t.Context(), Target{Entry: open(closed.URL), Apply: func(r *http1.Request) error {
		u := *r.URL
		u.RawQuery = "key=canary"
		r.URL = &u
		return nil
	}})
	if text := fmt.Sprint(got.Message, got.Cause); strings.Contains(text, "canary") || got.Problem != "refused" {
		t.Error(text)
	}
}

// TestCertificates checks a certificate for other names, and an expired one.
func TestCertificates(t *testing.T) {
	t.Parallel()
	here := mustParse(t, "https://here.example/mcp")
	for problem, err := range map[string]error{
		"tls_name":    &tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: new(x509.Certificate), Host: "here.example"}},
		"tls_expired": &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}},
		"tls":         &tls.CertificateVerificationError{Err: errors.New("something else")},
	} {
		if got, message := Words(here, fmt.Errorf("handshake: %w", err)); got != problem || !strings.Contains(message, "here.example") {
			t.Errorf("%s: %s %s", problem, got, message)
		}
	}
}

func mustParse(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
