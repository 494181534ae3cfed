package forward

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/proxy/http1"
)

// Credential adds the credential to the upstream request. Apply is called once, after everything else is in place and
// just before the request leaves, with the request's own fields and its own copy of the URL. Fields that it sets
// replace earlier ones. It must not keep the request. When it fails, nothing is sent: a request never goes without its
// intended credential. The directory refuses names that the transport owns (Host, Content-*, Mcp-*, hop-by-hop).
type Credential interface {
	Apply(r *http1.Request) error
}

// CredentialFunc makes a [Credential] from a function.
type CredentialFunc func(r *http1.Request) error

// Apply calls f.
func (f CredentialFunc) Apply(r *http1.Request) error { return f(r) }

// Request is one authorized request.
type Request struct {
	Method string   // GET, POST or DELETE
	URL    *url.URL // the server's own URL, http or https; path and query stay unchanged; not written to
	// Query holds parameters that the gateway adds; each replaces one of the same name. The client's query is never
	// sent.
	Query      url.Values
	Header     http.Header // from the client; only headers on the allow-list are read
	EventsOnly bool        // ask for text/event-stream only, whatever the client accepts
	SessionID  string      // the upstream's own session id, unsealed; "" for none
	Body       []byte      // of a POST; must not be changed until the answer is closed
	Credential Credential  // nil: none
	// TraceParent and TraceState name the place in a trace from which the request goes out (W3C Trace Context). They take the
	// place of the client's own, whatever Rules says. TraceParent "": the request has no place of its own.
	TraceParent, TraceState string
	// Rules holds the allow-lists of headers; nil: MCP's.
	Rules *Rules
	// HeaderTimeout and Idle replace the forwarder's limits. 0: they do not.
	HeaderTimeout, Idle time.Duration
	// HTTP1 reports whether the client of this request speaks HTTP/1, where deadlines that pass between writes do no
	// harm.
	HTTP1 bool
	// Cancel ends the context that Do is called with. The caller ends it anyway once the answer is closed. With it Do
	// needs no context of its own; nil: it makes one.
	Cancel context.CancelCauseFunc
}

// Limits holds the bounds of a [Forwarder]'s waits. The zero value is the default.
type Limits struct {
	// HeaderTimeout bounds the time until the answer's headers: connecting, writing and waiting together. 0: 30 s.
	HeaderTimeout time.Duration
	// Idle bounds each silence inside an answer. Comments count as a sign of life. The time that a slow client takes
	// does not count. 0: 5 min.
	Idle time.Duration
	// LoopID names the gateway in CDN-Loop (RFC 8586), so that it recognizes requests that come back; "": it sends no
	// such header.
	LoopID string
	// WriteIdle bounds each write to a client, which may have stopped reading. 0: 1 min.
	WriteIdle time.Duration
}

// Forwarder sends requests. Safe for concurrent use.
type Forwarder struct {
	to            Sender
	headerTimeout time.Duration
	idle          time.Duration
	writeIdle     time.Duration
	loopID        string
	timers        sync.Pool // of *timer that are not in use and have not run out
}

// New makes a forwarder that sends through to.
func New(to Sender, l Limits) *Forwarder {
	return &Forwarder{
		to: to, headerTimeout: positive(l.HeaderTimeout, 30*time.Second), idle: positive(l.Idle, 5*time.Minute),
		writeIdle: positive(l.WriteIdle, time.Minute), loopID: l.LoopID,
	}
}

// outgoing is a request while it is sent.
type outgoing struct {
	request http1.Request
	url     url.URL
	fields  [24]http1.Field
}

var outgoings = sync.Pool{New: func() any { return new(outgoing) }}

// release clears o and returns it to the pool. It clears the credential first of all.
func (o *outgoing) release() {
	*o = outgoing{}
	outgoings.Put(o)
}

// prepare makes the request, without the credential.
func (o *outgoing) prepare(r *Request) error {
	if err := o.setURL(r); err != nil {
		return err
	}
	fields, err := requestFields(o.fields[:0], r)
	if err != nil {
		return err
	}
	o.request = http1.Request{Method: r.Method, URL: &o.url, Fields: fields, Body: r.Body}
	return nil
}

// Do sends r and waits for the answer's headers. When ctx ends the upstream connection is released at once, even while
// the body is read; pass the client's request context. The caller must Close the answer.
//
// Any status passes except 1xx, 3xx, 206 and those above 599; the caller must hide 401. Errors are *[HeaderError]
// (nothing was sent, 400), *[Error], or a plain error for an invalid Request, which is a bug of the caller.
func (f *Forwarder) Do(ctx context.Context, r *Request) (*Response, error) {
	out := outgoings.Get().(*outgoing)
	defer out.release()
	if err := out.prepare(r); err != nil {
		return nil, err
	}
	if f.loopID != "" {
		out.request.Fields = append(out.request.Fields, http1.Field{Name: loopHeader, Value: loop(r.Header[loopHeader], f.loopID)})
	}
	if r.Credential != nil {
		if err := r.Credential.Apply(&out.request); err != nil {
			return nil, fmt.Errorf("putting the credential on the request: %w", err)
		}
	}
	response := &Response{rules: r.Rules, writeIdle: f.writeIdle, http1: r.HTTP1}
	clock := &response.body.watch
	clock.timers, clock.cancel = &f.timers, r.Cancel
	if clock.own = r.Cancel == nil; clock.own {
		ctx, clock.cancel = context.WithCancelCause(ctx)
	}
	bound := clock.begin(positive(r.HeaderTimeout, f.headerTimeout))
	answer, err := f.to.Send(ctx, &out.request)
	clock.end(bound)
	if err != nil {
		defer clock.release(nil)
		return nil, clock.explain(ctx, err, ErrTimeout)
	}
	if bad := response.take(ctx, answer, positive(r.Idle, f.idle)); bad != nil {
		clock.release(bad)
		_ = answer.Body.Close()
		return nil, bad
	}
	return response, nil
}

// setURL sets the URL of the request to a copy, to which the credential may be added. There is nothing to join: no part
// of the client's path reaches it (P05).
func (o *outgoing) setURL(r *Request) error {
	switch r.Method {
	case http.MethodGet, http.MethodDelete:
		if len(r.Body) > 0 {
			return errors.New("building the upstream request: a " + r.Method + " has no body")
		}
	case http.MethodPost:
	default:
		return errors.New("building the upstream request: method is not GET, POST or DELETE")
	}
	if r.URL == nil || r.URL.Host == "" || (r.URL.Scheme != "http" && r.URL.Scheme != "https") {
		return errors.New("building the upstream request: the server's URL is not an http or https URL")
	}
	u := &o.url
	*u = *r.URL
	u.User, u.Fragment, u.RawFragment, u.ForceQuery = nil, "", "", false
	if len(r.Query) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(r.Query)) {
		for i, v := range r.Query[name] {
			if i == 0 {
				SetQuery(u, name, v)
				continue
			}
			u.RawQuery += "&" + url.QueryEscape(name) + "=" + url.QueryEscape(v)
		}
	}
	return nil
}

// SetQuery gives u's query exactly one parameter with that name. All others keep their spelling.
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
