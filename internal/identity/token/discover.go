package token

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// fetcher fetches documents of an issuer.
type fetcher struct {
	client *http.Client
	issuer string
	// checkURL is asked before every fetch.
	checkURL func(*url.URL) error
}

// newFetcher copies client and switches redirects off. A key set at another address is named by jwks_uri; following a
// redirect would let the answering server choose the address (J27).
func newFetcher(client *http.Client, issuer string, checkURL func(*url.URL) error) *fetcher {
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	own.Jar = nil
	return &fetcher{client: &own, issuer: issuer, checkURL: checkURL}
}

// httpsOrLoopback checks an address when the operator gives no other rule: https, or http to this machine.
func httpsOrLoopback(u *url.URL) error {
	if u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()) {
		return nil
	}
	return errors.New("only https, or http to the loopback interface, is allowed")
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// parseURL reads an absolute http(s) address without user information and fragment.
func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, errors.New("not an address")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Opaque != "":
		return nil, errors.New("not an absolute http or https address")
	case u.User != nil || u.Fragment != "":
		return nil, errors.New("has user information or a fragment")
	}
	return u, nil
}

// wellKnown returns the addresses of an issuer's metadata in the order of asking: OpenID Connect Discovery 1.0
// section 4 (suffix appended), then RFC 8414 section 3.1 (inserted before the path).
func wellKnown(issuer *url.URL) []string {
	path := strings.TrimSuffix(issuer.EscapedPath(), "/")
	root := issuer.Scheme + "://" + issuer.Host
	return []string{
		root + path + "/.well-known/openid-configuration",
		root + "/.well-known/oauth-authorization-server" + path,
	}
}

// discover returns the jwks_uri of the issuer.
func (f *fetcher) discover(ctx context.Context, issuer *url.URL) (*url.URL, error) {
	var problems []error
	for _, address := range wellKnown(issuer) {
		found, err := f.readMetadata(ctx, address, issuer)
		if err == nil {
			return found, nil
		}
		problems = append(problems, err)
		if unreachable := (*url.Error)(nil); errors.As(err, &unreachable) { // the other address is on the same host
			break
		}
	}
	return nil, fmt.Errorf("discovering the issuer: %w", errors.Join(problems...))
}

func (f *fetcher) readMetadata(ctx context.Context, address string, issuer *url.URL) (*url.URL, error) {
	body, err := f.get(ctx, address)
	if err != nil {
		return nil, err
	}
	root, err := strictjson.Parse(body, strictjson.Limits{MaxBytes: maxDocument, MaxDepth: maxDepth})
	if err != nil {
		return nil, fmt.Errorf("reading the metadata: %w", err)
	}
	if iss, _ := root.Get("issuer"); !iss.Is(f.issuer) { // RFC 8414 section 3.3: identical, or the document is not used
		return nil, errors.New("the metadata is another issuer's")
	}
	uri, _ := root.Get("jwks_uri")
	u, err := parseURL(uri.Str())
	if err != nil {
		return nil, fmt.Errorf("jwks_uri: %w", err)
	}
	if u.Scheme != "https" && issuer.Scheme != "http" {
		return nil, errors.New("jwks_uri: an https issuer's keys come over https")
	}
	return u, nil
}

// get reads one document of at most maxDocument bytes, counted after decompression.
func (f *fetcher) get(ctx context.Context, address string) ([]byte, error) {
	u, err := parseURL(address)
	if err != nil {
		return nil, err
	}
	if err := f.checkURL(u); err != nil {
		return nil, fmt.Errorf("checking the address: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	request.Header.Set("Accept", "application/json, application/jwk-set+json")
	response, err := f.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("fetching: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answered with status %d", response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if len(body) > maxDocument {
		return nil, errors.New("the answer is longer than 1 MiB")
	}
	return body, nil
}
