package oauth

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// Bounds of one exchange with an untrusted server (attack S09).
const (
	exchangeTimeout = 5 * time.Second
	// A refresh has a longer time-out than other requests. The provider rotates the refresh token whether or not the
	// answer is waited for: giving up too early costs the user the connection. Most refreshes begin before the access
	// token expires, and then nobody waits for them.
	refreshTimeout = 10 * time.Second
	maxBody        = 1 << 20
)

// jsonLimits bounds every JSON text that this package reads.
var jsonLimits = strictjson.Limits{MaxBytes: maxBody, MaxDepth: 32, MaxMembers: 1_000}

// Client sends requests to authorization servers. It is safe for concurrent use.
type Client struct {
	guard *netguard.Guard
	http  *http.Client
	slow  *http.Client // for refreshes
	now   func() time.Time
}

// New makes a client whose connections go through guard. now is the clock for computing expiry times; nil means
// time.Now.
func New(guard *netguard.Guard, now func() time.Time) *Client {
	if now == nil {
		now = time.Now
	}
	return &Client{guard: guard, http: guard.FetchClient(exchangeTimeout, maxBody), slow: guard.FetchClient(refreshTimeout, maxBody), now: now}
}

// trusting returns the client with other certificate authorities; nil keeps the present ones.
func (c *Client) trusting(roots *x509.CertPool) *Client {
	if roots == nil {
		return c
	}
	return New(c.guard.Trusting(roots), c.now)
}

// checkURL refuses URLs to which no request can be sent or no browser should be sent (attack S06).
func (c *Client) checkURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return errors.New("it is not a URL") // the error of url.Parse repeats the text, which is untrusted
	}
	return c.guard.CheckURL(u)
}

// answer holds a response that has been read completely.
type answer struct {
	status int
	header http.Header
	body   []byte
	// proof proved the client in the request. Some servers repeat it (attack A10).
	proof seal.Secret
}

// do sends a request and reads the answer. Errors are ErrUnavailable (network) or ErrMalformed (redirects, excess).
func (c *Client) do(req *http.Request) (answer, error) { return send(c.http, req) }

func send(by *http.Client, req *http.Request) (answer, error) {
	req.Header.Set("User-Agent", "durward")
	resp, err := by.Do(req)
	if err != nil {
		return answer{}, transportError(req, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil && !busy(resp.StatusCode) { // for a busy server the status is enough
		return answer{}, transportError(req, err)
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: body}, nil
}

// transportError classifies an error below HTTP. It leaves out the URL that net/http puts into its errors and names
// the host only.
func transportError(req *http.Request, err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	class := ErrUnavailable
	if errors.Is(err, netguard.ErrRedirect) || errors.Is(err, netguard.ErrTooLarge) || errors.Is(err, netguard.ErrEncoded) {
		class = ErrMalformed
	}
	return fmt.Errorf("asking %s: %w: %w", req.URL.Host, class, err)
}

// isJSON reports whether the Content-Type of an answer is JSON.
func (a answer) isJSON() bool {
	media, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	return err == nil && (media == "application/json" || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json"))
}

func parseObject(b []byte) (strictjson.Value, error) {
	v, err := strictjson.Parse(b, jsonLimits)
	if err != nil {
		return strictjson.Value{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if v.Kind() != strictjson.Object {
		return strictjson.Value{}, fmt.Errorf("%w: not an object", ErrMalformed)
	}
	return v, nil
}

// errAbsent says that there is no document at an address. Callers then try the next address.
var errAbsent = errors.New("no such document")

// document fetches a metadata document. It returns errAbsent for a redirect, for an error status, and for an answer
// that neither is JSON nor calls itself JSON (a web application's page for every path). A busy server is
// ErrUnavailable.
func (c *Client) document(ctx context.Context, address string) (strictjson.Value, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return strictjson.Value{}, fmt.Errorf("%w: address of a document", ErrMalformed)
	}
	req.Header.Set("Accept", "application/json")
	a, err := c.do(req)
	switch {
	case errors.Is(err, netguard.ErrRedirect):
		return strictjson.Value{}, errAbsent
	case err != nil:
		return strictjson.Value{}, err
	case busy(a.status):
		return strictjson.Value{}, fmt.Errorf("asking %s: %w: status %d", req.URL.Host, ErrUnavailable, a.status)
	case a.status != http.StatusOK:
		return strictjson.Value{}, errAbsent
	}
	v, err := parseObject(a.body)
	if err != nil && !a.isJSON() {
		return strictjson.Value{}, errAbsent
	}
	return v, err
}

// text reads an optional string member; null counts as absent.
func text(v strictjson.Value, name string) (string, error) {
	m, ok := v.Get(name)
	if !ok || m.Kind() == strictjson.Null {
		return "", nil
	}
	if m.Kind() != strictjson.String {
		return "", fmt.Errorf("%w: %s is not a string", ErrMalformed, name)
	}
	return m.Str(), nil
}

// texts reads an optional member that is an array of strings. given distinguishes an empty array from an absent one.
func texts(v strictjson.Value, name string) (list []string, given bool, err error) {
	m, ok := v.Get(name)
	if !ok || m.Kind() == strictjson.Null {
		return nil, false, nil
	}
	if m.Kind() != strictjson.Array {
		return nil, false, fmt.Errorf("%w: %s is not an array", ErrMalformed, name)
	}
	for _, e := range m.Elems() {
		if e.Kind() != strictjson.String {
			return nil, false, fmt.Errorf("%w: %s holds something else than strings", ErrMalformed, name)
		}
		list = append(list, e.Str())
	}
	return list, true, nil
}

// flag reads an optional boolean member.
func flag(v strictjson.Value, name string) (bool, error) {
	m, ok := v.Get(name)
	if !ok || m.Kind() == strictjson.Null {
		return false, nil
	}
	if m.Kind() != strictjson.Bool {
		return false, fmt.Errorf("%w: %s is not a boolean", ErrMalformed, name)
	}
	return m.Bool(), nil
}
