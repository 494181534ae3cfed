package forward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Credential is put on the upstream request. Apply is called once, after everything else is in place and just before the
// request leaves, with the request's own header map and its own copy of the URL; what it sets replaces. When it fails,
// nothing is sent: a request never goes without the credential it was meant to carry. Names that the transport owns
// (Host, Content-*, Mcp-*, hop-by-hop) are the directory's business to refuse.
type Credential interface {
	Apply(h http.Header, u *url.URL) error
}

// CredentialFunc makes a [Credential] of a function.
type CredentialFunc func(h http.Header, u *url.URL) error

// Apply calls f.
func (f CredentialFunc) Apply(h http.Header, u *url.URL) error { return f(h, u) }

// Request is one judged request.
type Request struct {
	Method string   // GET, POST or DELETE
	URL    *url.URL // the server's own URL, http or https, path and query kept as they are; not changed
	// Query holds parameters that the gateway adds; each replaces one of the same name. The client's query never travels.
	Query      url.Values
	Header     http.Header // the client's; only what is on the allow-list is read
	EventsOnly bool        // ask for text/event-stream whatever the client accepts
	SessionID  string      // the upstream's own session id, unsealed; "" for none
	Body       []byte      // of a POST; must not be changed until the answer is closed
	Credential Credential  // nil: none
	// Cancel ends the context that Do is called with, which the caller does anyway once the answer is closed. It saves Do a
	// context of its own; nil: it makes one.
	Cancel context.CancelCauseFunc
}

// Limits are the bounds of a [Forwarder]'s waits. The zero value is the default.
type Limits struct {
	// HeaderTimeout bounds the way to the answer's headers: connecting, writing and waiting together. 0: 30 s.
	HeaderTimeout time.Duration
	// Idle bounds each silence inside an answer; comments count as a sign of life, and the time a slow client takes does
	// not count. 0: 5 min.
	Idle time.Duration
	// WriteIdle bounds each write to a client, which may have stopped reading. 0: 1 min.
	WriteIdle time.Duration
}

// Forwarder sends requests. Safe for concurrent use.
type Forwarder struct {
	rt            RoundTripper
	headerTimeout time.Duration
	idle          time.Duration
	writeIdle     time.Duration
}

// New makes a forwarder over rt.
func New(rt RoundTripper, l Limits) *Forwarder {
	return &Forwarder{
		rt: rt, headerTimeout: positive(l.HeaderTimeout, 30*time.Second), idle: positive(l.Idle, 5*time.Minute),
		writeIdle: positive(l.WriteIdle, time.Minute),
	}
}

// blank is what upstream requests are copied from: WithContext then costs one allocation instead of two.
var blank http.Request

// Do sends r and waits for the answer's headers. When ctx ends the upstream connection is let go at once, also while the
// body is read; give it the client's request context. The caller must Close the answer.
//
// Any status passes but 1xx, 3xx, 206 and those above 599; 401 is the caller's to hide. Errors are *[HeaderError]
// (nothing was sent, 400), *[Error], or a plain error for a Request that no caller should have made.
func (f *Forwarder) Do(ctx context.Context, r *Request) (*Response, error) {
	u, err := upstreamURL(r)
	if err != nil {
		return nil, err
	}
	header, err := requestHeader(r)
	if err != nil {
		return nil, err
	}
	clock := &watch{cancel: r.Cancel}
	if clock.own = r.Cancel == nil; clock.own {
		ctx, clock.cancel = context.WithCancelCause(ctx)
	}
	out := blank.WithContext(ctx)
	out.Method, out.URL, out.Host, out.Header = r.Method, u, u.Host, header
	out.Proto, out.ProtoMajor, out.ProtoMinor = "HTTP/1.1", 1, 1
	if len(r.Body) > 0 {
		b := r.Body
		out.ContentLength = int64(len(b))
		// This very type: net/http then writes headers and body together. GetBody lets it move to another connection
		// when the idle one it took turns out closed before anything was written.
		out.Body = io.NopCloser(bytes.NewReader(b))
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
	}
	if r.Credential != nil {
		if err := r.Credential.Apply(header, u); err != nil {
			clock.release(nil)
			return nil, fmt.Errorf("putting the credential on the request: %w", err)
		}
	}
	clock.timer = time.AfterFunc(f.headerTimeout, clock.expire)
	res, err := f.rt.RoundTrip(out)
	clock.timer.Stop()
	if err != nil {
		defer clock.release(nil)
		return nil, clock.explain(ctx, err, ErrTimeout)
	}
	answer, bad := newResponse(ctx, res, clock, f.idle)
	if bad != nil {
		clock.release(bad)
		_ = res.Body.Close()
		return nil, bad
	}
	answer.writeIdle = f.writeIdle
	return answer, nil
}

// upstreamURL is the URL the request goes to, a copy that the credential may be added to. There is nothing to join: no
// part of the client's path reaches it (P05).
func upstreamURL(r *Request) (*url.URL, error) {
	switch r.Method {
	case http.MethodGet, http.MethodDelete:
		if len(r.Body) > 0 {
			return nil, errors.New("building the upstream request: a " + r.Method + " has no body")
		}
	case http.MethodPost:
	default:
		return nil, errors.New("building the upstream request: method is not GET, POST or DELETE")
	}
	if r.URL == nil || r.URL.Host == "" || (r.URL.Scheme != "http" && r.URL.Scheme != "https") {
		return nil, errors.New("building the upstream request: the server's URL is not an http or https URL")
	}
	u := *r.URL
	u.User, u.Fragment, u.RawFragment, u.ForceQuery = nil, "", "", false
	for _, name := range slices.Sorted(maps.Keys(r.Query)) {
		for i, v := range r.Query[name] {
			if i == 0 {
				SetQuery(&u, name, v)
				continue
			}
			u.RawQuery += "&" + url.QueryEscape(name) + "=" + url.QueryEscape(v)
		}
	}
	return &u, nil
}

// SetQuery gives u's query exactly one parameter name. All others stay as they are written.
func SetQuery(u *url.URL, name, value string) {
	var kept []string
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		key, _, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(key); part == "" || (err == nil && plain == name) {
			continue
		}
		kept = append(kept, part)
	}
	u.RawQuery = strings.Join(append(kept, url.QueryEscape(name)+"="+url.QueryEscape(value)), "&")
}
