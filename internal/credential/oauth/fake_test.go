package oauth

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/proxy/netguard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reply is the answer of a fake. "BASE" in it stands for the fake's own URL.
type reply struct {
	status int
	header map[string]string
	body   string
}

// seen is a request that a fake has answered.
type seen struct {
	path   string // METHOD path?query
	header http.Header
	form   url.Values
	body   string
}

// fake is a server on loopback whose every answer is prescribed; all else is 404.
type fake struct {
	*httptest.Server
	mu      sync.Mutex
	replies map[string]reply // by "METHOD path?query"
	seen    []seen
}

func newFake(t *testing.T, replies map[string]reply) *fake {
	t.Helper()
	f := &fake{replies: replies}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(b))
	key := r.Method + " " + r.URL.RequestURI()
	f.mu.Lock()
	f.seen = append(f.seen, seen{key, r.Header.Clone(), form, string(b)})
	answer, ok := f.replies[key]
	f.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	base := "http://" + r.Host
	w.Header().Set("Content-Type", "application/json")
	for k, v := range answer.header {
		w.Header().Set(k, strings.ReplaceAll(v, "BASE", base))
	}
	w.WriteHeader(answer.status)
	_, _ = io.WriteString(w, strings.ReplaceAll(answer.body, "BASE", base))
}

// paths returns the requests so far.
func (f *fake) paths() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, s := range f.seen {
		out = append(out, s.path)
	}
	return out
}

func (f *fake) last(t *testing.T) seen {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.seen) == 0 {
		t.Fatal("nothing was asked")
	}
	return f.seen[len(f.seen)-1]
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// newClient makes a client that may speak http to loopback.
func newClient() *Client {
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	return New(netguard.New(netguard.Policy{Allow: loopback, HTTP: loopback}), func() time.Time { return start })
}
