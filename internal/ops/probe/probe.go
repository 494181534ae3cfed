// Package probe examines an MCP server: whether it can be reached, which revisions of MCP it speaks, how it
// authenticates its callers, how many tools it has. Problems are described for the administrator who entered the
// address, with advice on mending them. These texts tell a closed port from a silent one: only administrators may
// have a server probed.
package probe

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/proxy/http1"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/storage"
)

const (
	// maxAnswer bounds one answer of the server, such as a page of its tools.
	maxAnswer = 4 << 20
	// maxPages bounds the pages of tools that are read.
	maxPages = 20
	// aside bounds an optional question: some servers never answer requests that they do not know.
	aside = time.Second
	// legacyVersion is the newest revision that begins with initialize.
	legacyVersion = "2025-11-25"
	// widelySpoken is tried with servers that answer 400 to a revision that is too new for them, like Slack's.
	widelySpoken = "2025-06-18"
)

// Discovery finds a server's authorization server. *oauth.Client implements it.
type Discovery interface {
	Discover(ctx context.Context, t oauth.Target) (oauth.Discovery, error)
}

// Prober probes servers. It is safe for concurrent use.
type Prober struct {
	guard  *netguard.Guard
	oauth  Discovery
	client *http.Client
}

// New makes a prober that reaches servers through guard. timeout bounds a request; the context of Probe bounds all of them.
func New(guard *netguard.Guard, oauth Discovery, timeout time.Duration) *Prober {
	return &Prober{guard: guard, oauth: oauth, client: guard.FetchClient(timeout, maxAnswer)}
}

// Target describes a server to probe.
type Target struct {
	Entry storage.DirectoryEntry
	// Apply puts a user's credential on a request; nil means that the server is asked without one.
	Apply func(*http1.Request) error
}

// Transports of a report.
const (
	StreamableHTTP = "streamable_http"
	HTTPSSE        = "http+sse" // of 2024-11-05
	EventStream    = "event_stream"
)

// Ways of authentication of a report.
const (
	AuthNone  = "none"
	AuthOAuth = "oauth2"
	AuthOther = "other" // a credential is demanded, and no authorization server is known
)

// Report holds the findings. Unknown members are zero.
type Report struct {
	Reachable      bool // an HTTP answer came
	Transport      string
	Revisions      []string // newest first
	Authentication string
	Issuer         string // the authorization server
	Tools          *int
	// Problem names the problem, "" when there is none.
	Problem string
	Message string
	// Cause is for the log, never for users. It is nil when the message is complete.
	Cause error
}

// probing holds the state of probing one server.
type probing struct {
	*Prober
	target  Target
	url     *url.URL
	roots   *x509.CertPool // nil: the system's
	version string         // the negotiated one; "": none yet
	session string
	Report
}

// Probe examines a server. It returns when ctx ends, at the latest.
func (p *Prober) Probe(ctx context.Context, t Target) Report {
	address, events := t.Entry.URL, t.Entry.Protocol == storage.ProtocolSSE
	if events && t.Entry.EventsURL != "" {
		address = t.Entry.EventsURL
	}
	u, err := url.Parse(address)
	if err != nil {
		return Report{Problem: "address", Message: "The server's address is not a URL."}
	}
	roots, err := directory.TrustedRoots(t.Entry.Options.TrustedCA)
	if err != nil {
		return Report{Problem: "trusted_ca", Message: "The entry's trusted_ca cannot be read.", Cause: err}
	}
	if roots != nil {
		p = New(p.guard.Trusting(roots), p.oauth, p.client.Timeout)
	}
	s := &probing{Prober: p, target: t, url: u, roots: roots}
	switch err := p.guard.CheckURL(u); {
	case err != nil:
		s.unreachable(err)
	case events:
		s.readEvents(ctx)
	default:
		s.speak(ctx)
	}
	if s.Problem == "" {
		s.conclude()
	}
	return s.Report
}

// speak talks to the server as a client would: first in one of the revisions with initialize, which most servers
// know.
func (s *probing) speak(ctx context.Context) {
	begin := func(version string) (reply, error) {
		return s.ask(ctx, "initialize", `"protocolVersion":"`+version+`","capabilities":{},"clientInfo":`+clientInfo)
	}
	a, err := begin(legacyVersion)
	if err == nil && a.status == http.StatusBadRequest {
		a, err = begin(widelySpoken)
	}
	if err != nil {
		s.unreachable(err)
		return
	}
	s.Reachable = true
	if demands(a) {
		s.demanded(ctx, a)
		return
	}
	if version := a.text("protocolVersion"); version != "" {
		s.Transport, s.version, s.session = StreamableHTTP, version, a.header.Get(jsonrpc.HeaderSessionID)
		s.Revisions = []string{version}
		s.notify(ctx, "notifications/initialized")
		if a.has("capabilities", "tools") {
			s.countTools(ctx)
		} else {
			s.Tools = new(int)
		}
		s.leave(ctx)
		s.askModern(ctx)
		return
	}
	if s.askModern(ctx) {
		s.countTools(ctx)
		return
	}
	if a.tells4xx() && s.announcesEndpoint(ctx) {
		s.Transport, s.Revisions = HTTPSSE, []string{"2024-11-05"}
		return
	}
	s.notMCP(a)
}

// askModern asks which revisions the server knows, as a client of 2026-07-28 does, and reports whether that is one of them.
func (s *probing) askModern(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, aside)
	defer cancel()
	before := s.version
	s.version, s.session = jsonrpc.Version20260728, ""
	a, err := s.ask(ctx, "server/discover", "")
	var known []string
	if err == nil {
		known = a.texts("supportedVersions")
	}
	if !slices.Contains(known, jsonrpc.Version20260728) {
		s.version = before
		return false
	}
	s.Transport = StreamableHTTP
	for _, version := range append(known, s.Revisions...) {
		if plausible(version) && !slices.Contains(s.Revisions, version) {
			s.Revisions = append(s.Revisions, version)
		}
	}
	slices.Sort(s.Revisions)
	slices.Reverse(s.Revisions)
	return true
}

// plausible reports whether an untrusted word is a date, the name of a revision.
func plausible(version string) bool {
	_, err := time.Parse(time.DateOnly, version)
	return err == nil
}

// countTools reads the list of tools.
func (s *probing) countTools(ctx context.Context) {
	count, cursor := 0, ""
	for range maxPages {
		params := ""
		if cursor != "" {
			params = `"cursor":` + quoted(cursor)
		}
		a, err := s.ask(ctx, "tools/list", params)
		switch {
		case err != nil:
			s.unreachable(err)
			return
		case demands(a):
			s.demanded(ctx, a)
			return
		}
		tools, ok := a.length("tools")
		if !ok {
			s.Problem, s.Message = "tools", "The server answers, and does not list its tools: "+a.says()+"."
			return
		}
		count += tools
		if cursor = a.text("nextCursor"); cursor == "" {
			s.Tools = &count
			return
		}
	}
	s.Tools = &count
}

// kind returns the way of authentication to put into the directory entry.
func (s *probing) kind() storage.Provider {
	if !s.target.Entry.RequiresAuth || s.target.Entry.Provider == "" {
		return storage.ProviderNone
	}
	return s.target.Entry.Provider
}
