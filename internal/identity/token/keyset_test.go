package token

import (
	"compress/gzip"
	"context"
	"crypto"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// provider is an identity provider whose answers the tests change.
type provider struct {
	*httptest.Server
	keys, metadata atomic.Int32 // requests seen
	answer         atomic.Pointer[http.HandlerFunc]
}

func newProvider(t testing.TB) *provider {
	t.Helper()
	p := &provider{}
	p.serve(jwks(with(rsaJWK(&rsaTestKey().PublicKey), "kid", "rsa")))
	mux := http.NewServeMux()
	mux.HandleFunc("/jwks", func(w http.ResponseWriter, r *http.Request) {
		p.keys.Add(1)
		(*p.answer.Load())(w, r)
	})
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.metadata.Add(1)
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, p.URL, p.URL+"/jwks")
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) respond(f http.HandlerFunc) { p.answer.Store(&f) }

func (p *provider) serve(document []byte) {
	p.respond(func(w http.ResponseWriter, _ *http.Request) { w.Write(document) })
}

func (p *provider) fail() {
	p.respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
}

// wantFetches fails unless the keys were fetched n times so far.
func (p *provider) wantFetches(t *testing.T, n int32) {
	t.Helper()
	if got := p.keys.Load(); got != n {
		t.Fatalf("the keys were fetched %d times, want %d", got, n)
	}
}

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: testNow} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newTestKeySet(t testing.TB, p *provider, c *clock, change func(*KeySetOptions)) *KeySet {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	o := KeySetOptions{Issuer: p.URL, Client: client, Now: c.Now}
	if change != nil {
		change(&o)
	}
	s, err := NewKeySet(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		client.CloseIdleConnections()
	})
	return s
}

// settle waits until no fetch runs.
func (s *KeySet) settle(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	f := s.flight
	s.mu.Unlock()
	if f == nil {
		return
	}
	select {
	case <-f.done:
	case <-time.After(30 * time.Second):
		t.Fatal("a fetch does not end")
	}
}

func wantKey(t *testing.T, s KeySource, kid string) {
	t.Helper()
	if k, err := s.Key(t.Context(), kid, "RS256"); err != nil || k == nil {
		t.Fatalf("kid %q: key %v, error %s", kid, k, Reason(err))
	}
}

func wantNoKey(t *testing.T, s KeySource, kid string, kind error) {
	t.Helper()
	k, err := s.Key(t.Context(), kid, "RS256")
	if k != nil || !errors.Is(err, kind) {
		t.Fatalf("kid %q: key %v, error %v (%s), want %v", kid, k, err, Reason(err), kind)
	}
}

func TestKeySetIsLazy(t *testing.T) {
	p, c := newProvider(t), newClock()
	s := newTestKeySet(t, p, c, nil)
	p.wantFetches(t, 0)
	for range 3 {
		wantKey(t, s, "rsa")
		wantKey(t, s, "")
	}
	p.wantFetches(t, 1)
	if got := p.metadata.Load(); got != 1 {
		t.Errorf("the metadata was fetched %d times", got)
	}
}

func TestKeySetVerifies(t *testing.T) {
	p, c := newProvider(t), newClock()
	v, err := NewVerifier(Options{Issuer: p.URL, Audiences: []string{testAudience}}, newTestKeySet(t, p, c, nil), c.Now)
	if err != nil {
		t.Fatal(err)
	}
	raw := sign(t, jwt.SigningMethodRS256, rsaTestKey(), rsHeader, claims("iss", `"`+p.URL+`"`))
	if _, err := v.Verify(t.Context(), raw, ""); err != nil {
		t.Fatal(Reason(err))
	}
}

func TestKeySetStartsWithoutProvider(t *testing.T) { // J28, Z-A04
	p, c := newProvider(t), newClock()
	p.fail()
	s := newTestKeySet(t, p, c, nil)
	for range 10 {
		wantNoKey(t, s, "rsa", ErrUnavailable)
	}
	p.wantFetches(t, 1)
	c.advance(DefaultRetryAfter - time.Second)
	wantNoKey(t, s, "rsa", ErrUnavailable)
	p.wantFetches(t, 1)
	p.serve(jwks(with(rsaJWK(&rsaTestKey().PublicKey), "kid", "rsa")))
	c.advance(time.Second)
	wantKey(t, s, "rsa")
	p.wantFetches(t, 2)
	for range 2 { // the failure is over: a question for an unknown kid gets that answer
		wantNoKey(t, s, "random", ErrInvalid)
	}
}

func TestKeySetUnknownKids(t *testing.T) { // J24
	p, c := newProvider(t), newClock()
	s := newTestKeySet(t, p, c, nil)
	wantKey(t, s, "rsa")
	p.wantFetches(t, 1)
	var wg sync.WaitGroup
	for worker := range 20 {
		wg.Go(func() {
			for i := range 500 {
				if _, err := s.Key(t.Context(), fmt.Sprintf("random-%d-%d", worker, i), "RS256"); !errors.Is(err, ErrInvalid) {
					t.Errorf("error %v", err)
				}
				if i%50 == 0 {
					if _, err := s.Key(t.Context(), "rsa", "RS256"); err != nil {
						t.Errorf("valid traffic: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	p.wantFetches(t, 2)
	c.advance(DefaultCoolDown - time.Second)
	wantNoKey(t, s, "random", ErrInvalid)
	p.wantFetches(t, 2)
	c.advance(time.Second)
	wantNoKey(t, s, "random", ErrInvalid)
	wantNoKey(t, s, "random", ErrInvalid)
	p.wantFetches(t, 3)
}

func TestKeySetUnknownKidFirst(t *testing.T) { // J24: the first fetch of all is the refetch as well
	p, c := newProvider(t), newClock()
	s := newTestKeySet(t, p, c, nil)
	for i := range 10 {
		wantNoKey(t, s, fmt.Sprint("random-", i), ErrInvalid)
	}
	p.wantFetches(t, 1)
}

func TestKeySetRotation(t *testing.T) { // J25
	p, c := newProvider(t), newClock()
	s := newTestKeySet(t, p, c, nil)
	wantKey(t, s, "rsa")
	entered, release := make(chan struct{}), make(chan struct{})
	p.respond(func(w http.ResponseWriter, _ *http.Request) {
		close(entered) // panics when there is a second fetch
		<-release
		w.Write(jwks(with(rsaJWK(&rsaTestKey().PublicKey), "kid", "rsa"), with(rsaJWK(&otherRSAKey().PublicKey), "kid", "new")))
	})
	var wg sync.WaitGroup
	ask := func() {
		wg.Go(func() {
			if _, err := s.Key(t.Context(), "new", "RS256"); err != nil {
				t.Errorf("J25 new kid: %s", Reason(err))
			}
		})
	}
	ask()
	<-entered
	for range 50 {
		ask()
	}
	wantKey(t, s, "rsa") // does not wait
	close(release)
	wg.Wait()
	p.wantFetches(t, 2)
}

func TestKeySetRemovedKey(t *testing.T) { // J26
	p, c := newProvider(t), newClock()
	s := newTestKeySet(t, p, c, nil)
	wantKey(t, s, "rsa")
	p.serve(jwks(with(rsaJWK(&otherRSAKey().PublicKey), "kid", "new")))
	c.advance(DefaultMaxAge*4/5 - time.Second)
	wantKey(t, s, "rsa")
	s.settle(t)
	p.wantFetches(t, 1)
	t.Run("busy: refreshed in the background", func(t *testing.T) {
		c.advance(time.Second)
		wantKey(t, s, "rsa") // starts the refresh, does not wait
		s.settle(t)
		p.wantFetches(t, 2)
		wantNoKey(t, s, "rsa", ErrInvalid)
		wantKey(t, s, "new")
	})
	t.Run("idle: refreshed before the answer", func(t *testing.T) {
		p.serve(jwks())
		c.advance(DefaultMaxAge)
		wantNoKey(t, s, "new", ErrInvalid)
	})
}

func TestKeySetServesStale(t *testing.T) { // J27
	p, c := newProvider(t), newClock()
	s := newTestKeySet(t, p, c, nil)
	wantKey(t, s, "rsa")
	p.fail()
	for range 59 { // up to one minute before max stale
		c.advance(time.Minute)
		wantKey(t, s, "rsa")
		s.settle(t)
	}
	before := p.keys.Load()
	if before > 60 {
		t.Errorf("%d fetches in an hour of minutely questions", before)
	}
	wantNoKey(t, s, "unknown", ErrUnavailable)
	c.advance(time.Minute)
	for range 10 {
		wantNoKey(t, s, "rsa", ErrUnavailable)
	}
	if got := p.keys.Load(); got > before+2 {
		t.Errorf("%d fetches while failing", got-before)
	}
	p.serve(jwks(with(rsaJWK(&otherRSAKey().PublicKey), "kid", "new"))) // Z-A04: back with new keys
	c.advance(DefaultRetryAfter)
	wantKey(t, s, "new")
	wantNoKey(t, s, "rsa", ErrInvalid)
}

func TestKeySetFirstFailureAfterIdling(t *testing.T) { // J27
	p, c := newProvider(t), newClock()
	s := newTestKeySet(t, p, c, nil)
	wantKey(t, s, "rsa")
	p.fail()
	c.advance(DefaultMaxStale - time.Second)
	wantKey(t, s, "rsa")
	p.wantFetches(t, 2)
}

func TestKeySetBadAnswers(t *testing.T) {
	good := jwks(with(rsaJWK(&rsaTestKey().PublicKey), "kid", "new"))
	var reached atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Store(true)
		w.Write(good)
	}))
	defer elsewhere.Close()
	for name, answer := range map[string]http.HandlerFunc{
		"J27 500":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); w.Write(good) },
		"J27 204":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
		"J27 HTML":      func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html></html>") },
		"J27 keys null": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"keys":null}`) },
		"J27 hang": func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		},
		"J27 hang after the headers": func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte("{"))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"J27 connection cut": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"J27 redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		},
		"J27 endless body": func(w http.ResponseWriter, _ *http.Request) {
			for chunk := []byte(strings.Repeat(" ", 64<<10)); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		},
		"J27 gzip bomb": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			chunk := make([]byte, 1<<20)
			for range 8 {
				if _, err := z.Write(chunk); err != nil {
					return
				}
			}
			z.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, c := newProvider(t), newClock()
			s := newTestKeySet(t, p, c, func(o *KeySetOptions) {
				if strings.Contains(name, "hang") {
					o.FetchTimeout = time.Second // the first fetch, which must succeed, takes milliseconds
				}
			})
			wantKey(t, s, "rsa")
			p.respond(answer)
			wantNoKey(t, s, "new", ErrUnavailable)
			wantKey(t, s, "rsa") // the last good set
		})
	}
	if reached.Load() {
		t.Error("J27 a redirect was followed")
	}
}

func TestKeySetWaiterGivesUp(t *testing.T) {
	p, c := newProvider(t), newClock()
	s := newTestKeySet(t, p, c, nil)
	entered, release := make(chan struct{}), make(chan struct{})
	p.respond(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		w.Write(jwks(with(rsaJWK(&rsaTestKey().PublicKey), "kid", "rsa")))
	})
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp, patient := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := s.Key(ctx, "rsa", "RS256")
		gaveUp <- err
	}()
	<-entered
	go func() {
		_, err := s.Key(t.Context(), "rsa", "RS256")
		patient <- err
	}()
	cancel()
	if err := <-gaveUp; !errors.Is(err, ErrUnavailable) {
		t.Errorf("the waiter that gave up got %v", err)
	}
	close(release)
	if err := <-patient; err != nil {
		t.Errorf("the other waiter got %s", Reason(err))
	}
	p.wantFetches(t, 1)
}

func TestKeySetClose(t *testing.T) {
	p, c := newProvider(t), newClock()
	s := newTestKeySet(t, p, c, func(o *KeySetOptions) { o.FetchTimeout = time.Hour })
	entered, waiting := askHanging(t, p, s, t.Context())
	<-entered
	closeSoon(t, s) // ends the fetch
	if err := <-waiting; !errors.Is(err, ErrUnavailable) || !strings.Contains(Reason(err), errClosed.Error()) {
		t.Errorf("the waiter got %s", Reason(err))
	}
	wantNoKey(t, s, "rsa", ErrUnavailable)
	if _, err := s.Key(t.Context(), "rsa", "RS256"); !strings.Contains(Reason(err), errClosed.Error()) {
		t.Errorf("a closed set says %s", Reason(err))
	}
	s.Close()
	p.wantFetches(t, 1)

	p = newProvider(t)
	loaded := newTestKeySet(t, p, c, func(o *KeySetOptions) { o.FetchTimeout = time.Hour })
	wantKey(t, loaded, "rsa")
	old := loaded.current.Load()
	c.advance(DefaultMaxAge)
	entered, waiting = askHanging(t, p, loaded, t.Context()) // has stale keys to fall back to, until the set is closed
	<-entered
	closeSoon(t, loaded)
	if err := <-waiting; !errors.Is(err, ErrUnavailable) {
		t.Errorf("the waiter with stale keys got %v", err)
	}
	wantNoKey(t, loaded, "rsa", ErrUnavailable)
	if _, err := loaded.refetch(t.Context(), old, false); !errors.Is(err, ErrUnavailable) { // a question that was between two checks at that moment
		t.Errorf("a closed set fetches anew: %v", err)
	}
	wantUnlocked(t, loaded)
}

// askHanging asks for a key of a provider that does not answer until the fetch is given up.
func askHanging(t *testing.T, p *provider, s *KeySet, ctx context.Context) (entered <-chan struct{}, failed <-chan error) {
	t.Helper()
	in, out, freed := make(chan struct{}), make(chan error, 1), make(chan struct{})
	t.Cleanup(func() { close(freed) })
	p.respond(func(_ http.ResponseWriter, r *http.Request) {
		close(in)
		select {
		case <-r.Context().Done():
		case <-freed:
		}
	})
	go func() {
		_, err := s.Key(ctx, "rsa", "RS256")
		out <- err
	}()
	return in, out
}

// closeSoon closes s, which ends whatever it has running.
func closeSoon(t *testing.T, s *KeySet) {
	t.Helper()
	closed := make(chan struct{})
	go func() {
		s.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Fatal("Close waits for a fetch that it did not end")
	}
}

func wantUnlocked(t *testing.T, s *KeySet) {
	t.Helper()
	if !s.mu.TryLock() {
		t.Error("the set is left locked")
	}
	s.mu.Unlock()
}

func TestKeySetDiscovery(t *testing.T) {
	document := jwks(with(rsaJWK(&rsaTestKey().PublicKey), "kid", "rsa"))
	for name, c := range map[string]struct {
		path string // of the issuer
		// metadata is the answer to each well-known path; ISSUER and ROOT stand for addresses.
		metadata map[string]string
		ok       bool
	}{
		"OpenID Connect": {"", map[string]string{
			"/.well-known/openid-configuration": `{"issuer":"ISSUER","jwks_uri":"ROOT/jwks"}`}, true},
		"OpenID Connect with a path": {"/realms/a", map[string]string{
			"/realms/a/.well-known/openid-configuration": `{"issuer":"ISSUER","jwks_uri":"ROOT/jwks"}`}, true},
		"OpenID Connect with a trailing slash": {"/", map[string]string{
			"/.well-known/openid-configuration": `{"issuer":"ISSUER","jwks_uri":"ROOT/jwks"}`}, true},
		"RFC 8414 with a path": {"/realms/a", map[string]string{
			"/.well-known/oauth-authorization-server/realms/a": `{"issuer":"ISSUER","jwks_uri":"ROOT/jwks"}`}, true},
		"RFC 8414 behind a page that answers everything": {"", map[string]string{
			"/.well-known/openid-configuration":       `<html>`,
			"/.well-known/oauth-authorization-server": `{"issuer":"ISSUER","jwks_uri":"ROOT/jwks"}`}, true},
		"J16 another issuer": {"", map[string]string{
			"/.well-known/openid-configuration": `{"issuer":"https://evil.example","jwks_uri":"ROOT/jwks"}`}, false},
		"J16 issuer with a slash more": {"", map[string]string{
			"/.well-known/openid-configuration": `{"issuer":"ISSUER/","jwks_uri":"ROOT/jwks"}`}, false},
		"no issuer": {"", map[string]string{
			"/.well-known/openid-configuration": `{"jwks_uri":"ROOT/jwks"}`}, false},
		"no jwks_uri": {"", map[string]string{
			"/.well-known/openid-configuration": `{"issuer":"ISSUER"}`}, false},
		"jwks_uri over http elsewhere": {"", map[string]string{
			"/.well-known/openid-configuration": `{"issuer":"ISSUER","jwks_uri":"http://keys.example/jwks"}`}, false},
		"jwks_uri of another scheme": {"", map[string]string{
			"/.well-known/openid-configuration": `{"issuer":"ISSUER","jwks_uri":"file:///etc/passwd"}`}, false},
		"jwks_uri with a user": {"", map[string]string{
			"/.well-known/openid-configuration": `{"issuer":"ISSUER","jwks_uri":"https://a@b/jwks"}`}, false},
		"jwks_uri twice": {"", map[string]string{
			"/.well-known/openid-configuration": `{"issuer":"ISSUER","jwks_uri":"ROOT/jwks","jwks_uri":"ROOT/jwks"}`}, false},
		"nothing": {"", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			server := httptest.NewServer(mux)
			defer server.Close()
			issuer := server.URL + c.path
			mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
				text, ok := c.metadata[r.URL.Path]
				switch {
				case r.URL.Path == "/jwks":
					w.Write(document)
				case ok:
					io.WriteString(w, strings.NewReplacer("ISSUER", issuer, "ROOT", server.URL).Replace(text))
				default:
					http.NotFound(w, r)
				}
			})
			s := newTestKeySet(t, &provider{Server: server}, newClock(), func(o *KeySetOptions) { o.Issuer = issuer })
			if c.ok {
				wantKey(t, s, "rsa")
			} else {
				wantNoKey(t, s, "rsa", ErrUnavailable)
			}
		})
	}
}

func TestKeySetFollowsMovedKeys(t *testing.T) {
	c := newClock()
	var moved atomic.Bool
	document := jwks(with(rsaJWK(&rsaTestKey().PublicKey), "kid", "rsa"))
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		path := "/old"
		if moved.Load() {
			path = "/new"
		}
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, server.URL, server.URL+path)
	})
	mux.HandleFunc("/old", func(w http.ResponseWriter, r *http.Request) {
		if moved.Load() {
			http.NotFound(w, r)
			return
		}
		w.Write(document)
	})
	mux.HandleFunc("/new", func(w http.ResponseWriter, _ *http.Request) { w.Write(document) })
	s := newTestKeySet(t, &provider{Server: server}, c, nil)
	wantKey(t, s, "rsa")
	moved.Store(true)
	c.advance(DefaultMaxAge)
	wantKey(t, s, "rsa") // fails at the old address, stale
	c.advance(DefaultMaxStale)
	wantKey(t, s, "rsa") // discovered again
}

func TestKeySetGivenAddress(t *testing.T) {
	p, c := newProvider(t), newClock()
	s := newTestKeySet(t, p, c, func(o *KeySetOptions) { o.Issuer, o.JWKSURL = testIssuer, p.URL+"/jwks" })
	wantKey(t, s, "rsa")
	p.fail()
	c.advance(DefaultMaxStale)
	wantNoKey(t, s, "rsa", ErrUnavailable)
	c.advance(DefaultRetryAfter)
	p.serve(jwks(with(rsaJWK(&rsaTestKey().PublicKey), "kid", "rsa")))
	wantKey(t, s, "rsa")
	if got := p.metadata.Load(); got != 0 {
		t.Errorf("the metadata was fetched %d times", got)
	}
}

func TestKeySetAsksTheGuard(t *testing.T) {
	p, c := newProvider(t), newClock()
	refused := errors.New("refused")
	var seen []string
	s := newTestKeySet(t, p, c, func(o *KeySetOptions) {
		o.CheckURL = func(u *url.URL) error {
			seen = append(seen, u.Path)
			if u.Path == "/jwks" {
				return refused
			}
			return nil
		}
	})
	wantNoKey(t, s, "rsa", ErrUnavailable)
	p.wantFetches(t, 0)
	if got := strings.Join(seen, " "); got != " /.well-known/openid-configuration /jwks" {
		t.Errorf("asked about %q", got)
	}
}

func TestNewKeySetRefuses(t *testing.T) {
	client := &http.Client{}
	for name, o := range map[string]KeySetOptions{
		"no issuer":             {Client: client},
		"no client":             {Issuer: testIssuer},
		"http issuer":           {Issuer: "http://idp.example.com", Client: client},
		"http issuer, address":  {Issuer: "http://192.0.2.1", Client: client},
		"http issuer, localish": {Issuer: "http://localhost.example.com", Client: client},
		"ftp issuer":            {Issuer: "ftp://127.0.0.1", Client: client},
		"issuer with a user":    {Issuer: "https://a@idp.example.com", Client: client},
		"issuer with a query":   {Issuer: "https://idp.example.com?a=b", Client: client},
		"issuer, empty query":   {Issuer: "https://idp.example.com?", Client: client},
		"issuer with a hash":    {Issuer: "https://idp.example.com#a", Client: client},
		"relative issuer":       {Issuer: "/idp", Client: client},
		"keys over http":        {Issuer: testIssuer, JWKSURL: "http://idp.example.com/jwks", Client: client},
		"keys nowhere":          {Issuer: testIssuer, JWKSURL: "jwks", Client: client},
		"negative duration":     {Issuer: testIssuer, Client: client, MaxAge: -1},
	} {
		t.Run(name, func(t *testing.T) {
			if s, err := NewKeySet(o); err == nil {
				s.Close()
				t.Error("accepted")
			}
		})
	}
	for _, issuer := range []string{"http://127.0.0.1:8080/dev/idp", "http://[::1]", "http://localhost:1"} {
		s, err := NewKeySet(KeySetOptions{Issuer: issuer, Client: client})
		if err != nil {
			t.Errorf("%s: %v", issuer, err)
			continue
		}
		s.Close()
	}
}

func BenchmarkKeySetWarm(b *testing.B) {
	p, c := newProvider(b), newClock()
	s := newTestKeySet(b, p, c, nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Key(b.Context(), "rsa", "RS256"); err != nil {
			b.Fatal(Reason(err))
		}
	}
}

// TestFindAgain checks that the last result answers no other question, and that failed lookups are not remembered.
func TestFindAgain(t *testing.T) {
	one, two := &rsa.PublicKey{N: big.NewInt(3), E: 65537}, &rsa.PublicKey{N: big.NewInt(5), E: 65537}
	s := &snapshot{keys: keyList{{"one", "RS256", one}, {"two", "", two}}}
	for _, ask := range []struct {
		kid, alg string
		want     crypto.PublicKey
	}{
		{"one", "RS256", one},
		{"one", "RS256", one},
		{"one", "RS512", nil},
		{"two", "RS512", two},
		{"two", "ES256", nil},
		{"two", "RS512", two},
		{"three", "RS256", nil},
		{"one", "RS256", one},
	} {
		if got, err := s.find(ask.kid, ask.alg); got != ask.want || err != nil {
			t.Errorf("%s, %s: %v, %v", ask.kid, ask.alg, got, err)
		}
		if last := s.found.Load(); last.key == nil || ask.want != nil && *last != (keyFound{ask.kid, ask.alg, ask.want}) {
			t.Errorf("%s, %s: remembered is %+v", ask.kid, ask.alg, last)
		}
	}
	for range 2 {
		if _, err := s.find("", "RS256"); !errors.Is(err, errAmbiguous) {
			t.Errorf("without a kid: %v", err)
		}
	}
}
