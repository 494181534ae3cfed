package netguard

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Errors of fetches.
var (
	// ErrRedirect says that the answer is a redirect, which is not followed: only the first address was checked, and
	// a 307 would carry a request's secrets along (RFC 9700 section 4.12).
	ErrRedirect = errors.New("the answer is a redirect")
	// ErrTooLarge says that a body is larger than its cap.
	ErrTooLarge = errors.New("the answer is too large")
	// ErrEncoded says that a body has an encoding that was not asked for and is neither gzip nor zstd, or that it is
	// broken.
	ErrEncoded = errors.New("the answer is encoded and cannot be decoded")
)

// FetchClient makes a client for documents and tokens. The whole exchange takes at most timeout. A body has at most
// maxBody bytes, also decoded (ErrTooLarge while reading). No other encoding than gzip and zstd is read (ErrEncoded
// while reading). No redirect is followed (ErrRedirect), and there are no cookies and no proxy. Each request checks
// its URL and has its own connection, so that a request that must not be sent twice, such as a refresh, never fails
// on a connection that the server has just closed.
func (g *Guard) FetchClient(timeout time.Duration, maxBody int64) *http.Client {
	transport := func(dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
		return &http.Transport{
			DialContext:            dial,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true,
			DisableKeepAlives:      true,
			TLSHandshakeTimeout:    timeout,
			MaxResponseHeaderBytes: 64 << 10,
			TLSClientConfig:        &tls.Config{RootCAs: g.roots, MinVersion: tls.VersionTLS12},
		}
	}
	return &http.Client{
		Timeout:   timeout,
		Transport: &fetcher{guard: g, secure: transport(g.DialContext), plain: transport(g.DialPlain), maxBody: maxBody},
	}
}

// fetcher sends requests by the rule of their scheme, and refuses answers that no document and no token endpoint
// should give.
type fetcher struct {
	guard         *Guard
	secure, plain *http.Transport
	maxBody       int64
}

// RoundTrip implements http.RoundTripper. A refused URL is an *Error.
func (f *fetcher) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := f.guard.CheckURL(r.URL); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, &Error{cause: err}
	}
	transport := f.secure
	if r.URL.Scheme == "http" {
		transport = f.plain
	}
	r = r.Clone(r.Context())
	r.Header.Set("Accept-Encoding", "identity")
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("status %d: %w", resp.StatusCode, ErrRedirect)
	}
	if resp.ContentLength > f.maxBody {
		_ = resp.Body.Close()
		return nil, ErrTooLarge
	}
	resp.Body = f.capped(resp.Body)
	f.decode(resp)
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
