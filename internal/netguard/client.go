package netguard

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Errors of fetches.
var (
	// ErrRedirect is an answer that points elsewhere. It is not followed: what was checked was the first address, and a
	// 307 would carry a request's secrets along (RFC 9700 section 4.12).
	ErrRedirect = errors.New("the answer is a redirect")
	// ErrTooLarge is a body beyond the cap.
	ErrTooLarge = errors.New("the answer is too large")
	// ErrEncoded is a compressed body, which was not asked for: it could be small on the wire and anything in memory.
	ErrEncoded = errors.New("the answer is compressed")
)

// Transport makes a round tripper from base's settings whose every connection goes through the guard, https and http
// each by its own rule. Proxies and dialers of base are dropped. It checks each request's URL before anything is sent.
// base may be nil; it is not changed.
func (g *Guard) Transport(base *http.Transport) *Transport {
	if base == nil {
		base = &http.Transport{ForceAttemptHTTP2: true}
	}
	secure := base.Clone()
	secure.Proxy = nil
	secure.Dial, secure.DialTLS, secure.DialTLSContext = nil, nil, nil //nolint:staticcheck // cleared because they would win
	plain := secure.Clone()
	secure.DialContext = g.DialContext
	plain.DialContext = g.DialPlain
	return &Transport{guard: g, secure: secure, plain: plain}
}

// Transport sends requests through a guard. See Guard.Transport.
type Transport struct {
	guard         *Guard
	secure, plain *http.Transport
}

// RoundTrip implements http.RoundTripper. A refused URL is an *Error.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.guard.CheckURL(r.URL); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, &Error{cause: err}
	}
	if r.URL.Scheme == "http" {
		return t.plain.RoundTrip(r)
	}
	return t.secure.RoundTrip(r)
}

// CloseIdleConnections closes connections that carry no request.
func (t *Transport) CloseIdleConnections() {
	t.secure.CloseIdleConnections()
	t.plain.CloseIdleConnections()
}

// FetchClient makes a client for documents and tokens: the whole exchange takes at most timeout, a body at most maxBody
// bytes (ErrTooLarge while reading), nothing is compressed (ErrEncoded), no redirect is followed (ErrRedirect), there
// are no cookies. It keeps a few idle connections: make one and keep it.
func (g *Guard) FetchClient(timeout time.Duration, maxBody int64) *http.Client {
	return &http.Client{
		Timeout: timeout,
		Transport: &fetcher{
			maxBody: maxBody,
			Transport: g.Transport(&http.Transport{
				ForceAttemptHTTP2:      true,
				DisableCompression:     true,
				MaxIdleConns:           32,
				MaxIdleConnsPerHost:    2,
				IdleConnTimeout:        30 * time.Second,
				TLSHandshakeTimeout:    timeout,
				MaxResponseHeaderBytes: 64 << 10,
				TLSClientConfig:        &tls.Config{RootCAs: g.roots, MinVersion: tls.VersionTLS12},
			}),
		},
	}
}

// fetcher refuses what a document or a token endpoint has no business answering.
type fetcher struct {
	*Transport
	maxBody int64
}

func (f *fetcher) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept-Encoding", "identity")
	resp, err := f.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("status %d: %w", resp.StatusCode, ErrRedirect)
	}
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		_ = resp.Body.Close()
		return nil, ErrEncoded
	}
	if resp.ContentLength > f.maxBody {
		_ = resp.Body.Close()
		return nil, ErrTooLarge
	}
	resp.Body = &cappedBody{ReadCloser: resp.Body, left: f.maxBody}
	return resp, nil
}

// cappedBody fails instead of ending: a document that was cut off must not pass for a whole one.
type cappedBody struct {
	io.ReadCloser
	left int64
}

func (b *cappedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLarge
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, ErrTooLarge
	}
	return n, err
}
