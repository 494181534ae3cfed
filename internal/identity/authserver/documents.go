package authserver

import (
	"context"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/proxy/loopback"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// ErrDocument is the only message about a client metadata document that cannot be used: a reason would tell open ports
// from closed ones.
var ErrDocument = &Error{Code: "invalid_client", Description: "no usable client metadata document at that address", Status: http.StatusUnauthorized}

// These are the bounds of fetching and keeping metadata documents.
const (
	maxDocuments     = 1_000
	documentTimeout  = 5 * time.Second
	documentFetches  = 4 // at one time
	shortestDocument = time.Minute
	longestDocument  = 24 * time.Hour
	defaultDocument  = 5 * time.Minute
)

// Documents fetches and keeps metadata documents of clients (draft-ietf-oauth-client-id-metadata-document). It is safe
// for concurrent use.
type Documents struct {
	http  *http.Client
	now   func() time.Time
	slots chan struct{} // fetches under way

	mu   sync.Mutex
	kept map[string]keptDocument
}

type keptDocument struct {
	client  *Client
	expires time.Time
}

// NewDocuments makes Documents that fetch with a client, which must not lead into the gateway's own network. Redirects are
// not followed.
func NewDocuments(client *http.Client, now func() time.Time) *Documents {
	strict := *client
	strict.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if strict.Timeout == 0 {
		strict.Timeout = documentTimeout
	}
	return &Documents{http: &strict, now: now, slots: make(chan struct{}, documentFetches), kept: make(map[string]keptDocument)}
}

// Client returns the client whose id is the address of its metadata document. Its error is ErrDocument.
func (d *Documents) Client(ctx context.Context, id string) (*Client, error) {
	if !IsDocumentURL(id) {
		return nil, ErrDocument
	}
	d.mu.Lock()
	k, ok := d.kept[id]
	d.mu.Unlock()
	if ok && d.now().Before(k.expires) {
		return k.client, nil
	}
	waiting, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-waiting.Done():
		return nil, ErrDocument
	}
	c, lifetime, err := d.fetch(ctx, id)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.kept[id]; !known && len(d.kept) >= maxDocuments {
		d.dropFirst()
	}
	d.kept[id] = keptDocument{client: c, expires: d.now().Add(lifetime)}
	return c, nil
}

// dropFirst forgets the document that expires first.
func (d *Documents) dropFirst() {
	first := ""
	for id, k := range d.kept {
		if first == "" || k.expires.Before(d.kept[first].expires) {
			first = id
		}
	}
	delete(d.kept, first)
}

func (d *Documents) fetch(ctx context.Context, id string) (*Client, time.Duration, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return nil, 0, ErrDocument
	}
	r.Header.Set("Accept", "application/json")
	answer, err := d.http.Do(r)
	if err != nil {
		return nil, 0, ErrDocument
	}
	defer func() { _ = answer.Body.Close() }()
	t, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if answer.StatusCode != http.StatusOK || err != nil || t != "application/json" && !strings.HasSuffix(t, "+json") {
		return nil, 0, ErrDocument
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, MaxDocument+1))
	if err != nil || len(body) > MaxDocument {
		return nil, 0, ErrDocument
	}
	c, err := readDocument(id, body)
	return c, lifetimeOf(answer.Header), err
}

// readDocument reads the document at id. The id must be the address, and there is no shared secret (section 4 of the
// draft).
func readDocument(id string, body []byte) (*Client, error) {
	object, err := strictjson.Parse(body, strictjson.Limits{})
	if err != nil || object.Kind() != strictjson.Object {
		return nil, ErrDocument
	}
	m, err := readMetadata(object)
	own, _ := object.Get("client_id")
	_, secret := object.Get("client_secret")
	if err != nil || !own.Is(id) || secret || m.authMethod != "" && m.authMethod != AuthNone {
		return nil, ErrDocument
	}
	c, err := m.client()
	if err != nil {
		return nil, ErrDocument
	}
	c.ID, c.AuthMethod = id, AuthNone
	return c, nil
}

// lifetimeOf returns the time for which a document is kept: what its Cache-Control says, within bounds (RFC 9111 section
// 5.2.2). One login asks for the document several times, so that it is kept for a minute in any case.
func lifetimeOf(header http.Header) time.Duration {
	lifetime := defaultDocument
	for directive := range strings.SplitSeq(strings.Join(header.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(directive)), "=")
		switch name {
		case "no-store", "no-cache":
			return shortestDocument
		case "max-age":
			if seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31); err == nil {
				lifetime = time.Duration(seconds) * time.Second
			}
		}
	}
	return min(max(lifetime, shortestDocument), longestDocument)
}

// IsDocumentURL reports whether id can be a document's address: https, or http on this machine, with a path of its own.
func IsDocumentURL(id string) bool {
	u, err := url.Parse(id)
	if err != nil || len(id) > maxText || u.Host == "" || u.User != nil || strings.Contains(id, "#") || u.Path == "" || u.Path == "/" {
		return false
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return u.Scheme == "https" || u.Scheme == "http" && loopback.IsHost(u.Host)
}
