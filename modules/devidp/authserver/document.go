package authserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/proxy/loopback"
)

// errDocument is the only message about a document that cannot be used: a reason would tell open ports from closed
// ones.
var errDocument = errors.New("no usable client metadata document at that address")

// documents fetches and keeps client-id metadata documents (draft-ietf-oauth-client-id-metadata-document).
type documents struct {
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

func newDocuments(c *http.Client, now func() time.Time) *documents {
	strict := *c
	strict.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if strict.Timeout == 0 {
		strict.Timeout = 5 * time.Second
	}
	return &documents{http: &strict, now: now, slots: make(chan struct{}, 4), kept: make(map[string]keptDocument)}
}

// client returns the client whose id is the address of its metadata document.
func (d *documents) client(ctx context.Context, id string) (*Client, error) {
	if !isDocumentURL(id) {
		return nil, errDocument
	}
	d.mu.Lock()
	k, ok := d.kept[id]
	d.mu.Unlock()
	if ok && d.now().Before(k.expires) {
		return k.client, nil
	}
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		return nil, errDocument
	}
	c, err := d.fetch(ctx, id)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.kept) >= maxDocuments {
		delete(d.kept, first(d.kept, func(k keptDocument) time.Time { return k.expires }))
	}
	d.kept[id] = keptDocument{client: c, expires: d.now().Add(documentLifetime)}
	return c, nil
}

func (d *documents) fetch(ctx context.Context, id string) (*Client, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return nil, errDocument
	}
	r.Header.Set("Accept", "application/json")
	answer, err := d.http.Do(r)
	if err != nil {
		return nil, errDocument
	}
	defer func() { _ = answer.Body.Close() }()
	t, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if answer.StatusCode != http.StatusOK || err != nil || t != "application/json" && !strings.HasSuffix(t, "+json") {
		return nil, errDocument
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxBody+1))
	if err != nil || len(body) > maxBody {
		return nil, errDocument
	}
	var m struct {
		registration
		ClientID string `json:"client_id"`
		Secret   string `json:"client_secret"`
	}
	// Section 4 of the draft: the id must be the address, and there is no shared secret.
	if err := json.Unmarshal(body, &m); err != nil || m.ClientID != id || m.Secret != "" || m.AuthMethod != "" && m.AuthMethod != authNone {
		return nil, errDocument
	}
	c, err := m.client()
	if err != nil {
		return nil, errDocument
	}
	c.ID, c.AuthMethod = id, authNone
	return c, nil
}

// isDocumentURL reports whether id can be a document's address: https, or http on this machine, with a path of its own.
func isDocumentURL(id string) bool {
	u, err := url.Parse(id)
	if err != nil || len(id) > maxText || u.Host == "" || u.User != nil || strings.Contains(id, "#") || u.Path == "" || u.Path == "/" {
		return false
	}
	for _, segment := range strings.Split(u.Path, "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return u.Scheme == "https" || u.Scheme == "http" && loopback.IsHost(u.Host)
}
