package authserver

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/durward-gateway/durward/internal/proxy/loopback"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// ErrDocument is the only message about a client metadata document that cannot be used: a reason would tell open ports
// from closed ones.
var ErrDocument = &Error{Code: "invalid_client", Description: "no usable client metadata document at that address", Status: http.StatusUnauthorized}

// errAway reports that a document could not be fetched now. Its place says nothing about it.
var errAway = errors.New("the document's host does not answer")

// errBusy reports that others were fetching all the time.
var errBusy = errors.New("too many documents are being fetched")

// These are the bounds of fetching and keeping metadata documents.
const (
	maxDocuments     = 1_000
	documentTimeout  = 5 * time.Second
	documentFetches  = 32 // at one time
	hostFetches      = 2  // of one host, which may not answer
	failedDocument   = 10 * time.Second
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

	mu    sync.Mutex
	kept  map[string]keptDocument
	hosts map[string]*turns // of the hosts that are asked now

	flights singleflight.Group // by id
}

// turns holds the places for fetches from one host.
type turns struct {
	places chan struct{}
	users  int // those who have a place or wait for one
}

// keptDocument is the client of a document; nil when it could not be used.
type keptDocument struct {
	client  *Client
	expires time.Time
	// good is the time until which the document serves while it cannot be fetched anew.
	good time.Time
}

// NewDocuments makes Documents that fetch with a client, which must not lead into the gateway's own network. Redirects are
// not followed.
func NewDocuments(client *http.Client, now func() time.Time) *Documents {
	strict := *client
	strict.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if strict.Timeout == 0 {
		strict.Timeout = documentTimeout
	}
	return &Documents{http: &strict, now: now, slots: make(chan struct{}, documentFetches), kept: make(map[string]keptDocument), hosts: make(map[string]*turns)}
}

// Client returns the client whose id is the address of its metadata document. A document that cannot be fetched any more is
// good for a while longer. Its error is ErrDocument.
func (d *Documents) Client(ctx context.Context, id string) (*Client, error) {
	if !IsDocumentURL(id) {
		return nil, ErrDocument
	}
	d.mu.Lock()
	k, ok := d.kept[id]
	d.mu.Unlock()
	if !ok || !d.now().Before(k.expires) {
		// Whoever asks first fetches for all. That one may go away meanwhile.
		former := k
		fetched, _, _ := d.flights.Do(id, func() (any, error) { return d.renewed(context.WithoutCancel(ctx), id, former), nil })
		k, _ = fetched.(keptDocument)
	}
	if k.client == nil {
		return nil, ErrDocument
	}
	return k.client, nil
}

// renewed fetches a document, remembers it and returns it.
func (d *Documents) renewed(ctx context.Context, id string, former keptDocument) keptDocument {
	made, lifetime, err := d.fetchInTurn(ctx, id)
	if errors.Is(err, errBusy) { // nothing is known of the document: the next one may have more luck
		if !d.now().Before(former.good) {
			former.client = nil
		}
		return former
	}
	k := keptDocument{made, d.now().Add(lifetime), d.now().Add(lifetime + longestDocument)}
	if err != nil { // whoever asks at once again would only hold up others
		k = keptDocument{expires: d.now().Add(failedDocument), good: former.good}
		if errors.Is(err, errAway) && d.now().Before(former.good) {
			k.client = former.client
		}
	}
	d.keep(id, k)
	return k
}

func (d *Documents) keep(id string, k keptDocument) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.kept[id]; !known && len(d.kept) >= maxDocuments {
		d.dropFirst()
	}
	d.kept[id] = k
}

// fetchInTurn fetches a document when it is its host's turn, and then everybody's. Who waits for a host takes no place of the
// others': otherwise whoever has a host that does not answer could keep all other clients out. Its error is errBusy when the
// turn did not come.
func (d *Documents) fetchInTurn(ctx context.Context, id string) (*Client, time.Duration, error) {
	u, err := url.Parse(id)
	if err != nil {
		return nil, 0, ErrDocument
	}
	waiting, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	host := strings.ToLower(u.Host)
	own := d.lineUp(host)
	defer d.leave(host, own)
	for _, places := range []chan struct{}{own.places, d.slots} {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		case <-waiting.Done():
			return nil, 0, errBusy
		}
	}
	return d.fetch(ctx, id)
}

func (d *Documents) lineUp(host string) *turns {
	d.mu.Lock()
	defer d.mu.Unlock()
	own := d.hosts[host]
	if own == nil {
		own = &turns{places: make(chan struct{}, hostFetches)}
		d.hosts[host] = own
	}
	own.users++
	return own
}

func (d *Documents) leave(host string, own *turns) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(d.hosts, host)
	}
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
		return nil, 0, errAway
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode >= http.StatusInternalServerError {
		return nil, 0, errAway
	}
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
