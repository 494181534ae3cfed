package token

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestKeySetDiscoversAgain checks that the address of the keys is asked for once in MaxStale, and after a failure.
func TestKeySetDiscoversAgain(t *testing.T) {
	p, c := newProvider(t), newClock()
	s := newTestKeySet(t, p, c, nil)
	step := func(d time.Duration, discovered, fetched int32) {
		t.Helper()
		c.advance(d)
		wantKey(t, s, "rsa")
		s.settle(t)
		p.wantFetches(t, fetched)
		if got := p.metadata.Load(); got != discovered {
			t.Fatalf("the metadata was fetched %d times, want %d", got, discovered)
		}
	}
	step(0, 1, 1)
	step(DefaultMaxAge, 1, 2)
	step(DefaultMaxStale-DefaultMaxAge-time.Second, 1, 3)
	step(DefaultMaxAge, 2, 4)
	step(DefaultMaxAge, 2, 5)
	p.fail()
	step(DefaultMaxAge, 2, 6)
	p.serve(jwks(with(rsaJWK(&rsaTestKey().PublicKey), "kid", "rsa")))
	step(DefaultRetryAfter, 3, 7)

	// At exactly MaxStale, too.
	s = newTestKeySet(t, p, c, nil)
	step(0, 4, 8)
	step(DefaultMaxStale-DefaultMaxAge, 4, 9)
	step(DefaultMaxAge, 5, 10)
}

// TestKeySetAmbiguous checks that keys that cannot be told apart are no reason to fetch them again (J24).
func TestKeySetAmbiguous(t *testing.T) {
	p, c := newProvider(t), newClock()
	p.serve(jwks(rsaJWK(&rsaTestKey().PublicKey), rsaJWK(&otherRSAKey().PublicKey)))
	s := newTestKeySet(t, p, c, nil)
	for range 3 {
		wantNoKey(t, s, "", ErrInvalid)
		c.advance(DefaultCoolDown)
	}
	p.wantFetches(t, 1)
}

// TestKeySetStaleGiveUp checks that a caller that gives up during a fetch does not get keys that may have been
// withdrawn.
func TestKeySetStaleGiveUp(t *testing.T) {
	p, c := newProvider(t), newClock()
	s := newTestKeySet(t, p, c, func(o *KeySetOptions) { o.FetchTimeout = time.Hour })
	wantKey(t, s, "rsa")
	c.advance(DefaultMaxAge)
	ctx, cancel := context.WithCancel(t.Context())
	entered, failed := askHanging(t, p, s, ctx)
	<-entered
	cancel()
	if err := <-failed; !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

// TestKeySetNewerMeanwhile checks that a question that missed a kid in keys that were replaced meanwhile uses the new
// ones, without a fetch.
func TestKeySetNewerMeanwhile(t *testing.T) {
	p, c := newProvider(t), newClock()
	s := newTestKeySet(t, p, c, nil)
	wantKey(t, s, "rsa")
	if set, err := s.refetch(t.Context(), &snapshot{}, false); err != nil || set != s.current.Load() {
		t.Errorf("%v, %v", set, err)
	}
	p.wantFetches(t, 1)
	wantUnlocked(t, s)
}

// TestKeySetClock checks that the default clock is this machine's.
func TestKeySetClock(t *testing.T) {
	p := newProvider(t)
	s := newTestKeySet(t, p, nil, func(o *KeySetOptions) { o.Now = nil })
	for range 2 {
		wantKey(t, s, "rsa")
	}
	p.wantFetches(t, 1)
}

// TestKeySetHTTPS checks that the keys of an issuer with https do not come over http, not even from this machine.
func TestKeySetHTTPS(t *testing.T) {
	document := jwks(with(rsaJWK(&rsaTestKey().PublicKey), "kid", "rsa"))
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(document) }))
	defer plain.Close()
	var at atomic.Pointer[string]
	mux := http.NewServeMux()
	mux.HandleFunc("/jwks", func(w http.ResponseWriter, _ *http.Request) { w.Write(document) })
	secure := httptest.NewTLSServer(mux)
	defer secure.Close()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"issuer":"`+secure.URL+`","jwks_uri":"`+*at.Load()+`"}`)
	})
	for _, tc := range []struct {
		uri  string
		good bool
	}{{secure.URL + "/jwks", true}, {plain.URL + "/jwks", false}} {
		at.Store(&tc.uri)
		s := newTestKeySet(t, &provider{Server: secure}, newClock(), func(o *KeySetOptions) { o.Client = secure.Client() })
		if tc.good {
			wantKey(t, s, "rsa")
		} else {
			wantNoKey(t, s, "rsa", ErrUnavailable)
		}
	}
}

// TestKeySetAsksPlainly checks that a fetch says what it accepts, and carries no data of the client.
func TestKeySetAsksPlainly(t *testing.T) {
	p, c := newProvider(t), newClock()
	document := jwks(with(rsaJWK(&rsaTestKey().PublicKey), "kid", "rsa"))
	p.respond(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Cookie") != "" || r.Header.Get("Accept") != "application/json, application/jwk-set+json" {
			t.Errorf("headers %v", r.Header)
		}
		w.Header().Set("Set-Cookie", "a=b")
		w.Write(document)
	})
	s := newTestKeySet(t, p, c, func(o *KeySetOptions) { o.Client.Jar = must(cookiejar.New(nil)) })
	wantKey(t, s, "rsa")
	c.advance(DefaultMaxAge)
	wantKey(t, s, "rsa")
	p.wantFetches(t, 2)
}

// TestKeySetLargest checks that a document may be 1 MiB long, and not a byte longer (J27).
func TestKeySetLargest(t *testing.T) {
	document := jwks(with(rsaJWK(&rsaTestKey().PublicKey), "kid", "rsa"))
	document = append(document, bytes.Repeat([]byte(" "), maxDocument-len(document))...)
	p, c := newProvider(t), newClock()
	p.serve(document)
	wantKey(t, newTestKeySet(t, p, c, nil), "rsa")
	p.serve(append(document, ' '))
	wantNoKey(t, newTestKeySet(t, p, c, nil), "rsa", ErrUnavailable)
}

// roundTrips answers without a network.
type roundTrips func(*http.Request) (*http.Response, error)

func (f roundTrips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// closes counts how often it is closed.
type closes struct {
	io.Reader
	count *int
}

func (c closes) Close() error {
	*c.count++
	return nil
}

// TestFetchCloses checks that every answer is closed, whatever its result is.
func TestFetchCloses(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusInternalServerError} {
		closed := 0
		f := newFetcher(&http.Client{Transport: roundTrips(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Body: closes{strings.NewReader("{}"), &closed}}, nil
		})}, testIssuer, httpsOrLoopback)
		if _, err := f.get(t.Context(), testIssuer); (err == nil) != (status == http.StatusOK) || closed != 1 {
			t.Errorf("status %d: %v, closed %d times", status, err, closed)
		}
	}
}

// TestCloseWaits checks that nothing of the set runs after Close.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s, err := NewKeySet(KeySetOptions{Issuer: testIssuer, Client: &http.Client{Transport: roundTrips(func(r *http.Request) (*http.Response, error) {
			<-release
			return nil, r.Context().Err()
		})}})
		if err != nil {
			t.Fatal(err)
		}
		go s.Key(t.Context(), "rsa", "RS256")
		synctest.Wait()
		var closed atomic.Bool
		go func() {
			s.Close()
			closed.Store(true)
		}()
		synctest.Wait()
		if closed.Load() {
			t.Error("Close returned while a fetch ran")
		}
		close(release)
		synctest.Wait()
		if !closed.Load() {
			t.Error("Close does not return")
		}
	})
}

// TestKeySetLogs checks that a failed fetch is a warning, and that a left-out key is logged only at the debug level.
func TestKeySetLogs(t *testing.T) {
	p, c := newProvider(t), newClock()
	p.serve(jwks(with(rsaJWK(&rsaTestKey().PublicKey), "kid", "rsa"), map[string]any{"kty": "oct"}))
	var out bytes.Buffer
	s := newTestKeySet(t, p, c, func(o *KeySetOptions) {
		o.Logger = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	wantKey(t, s, "rsa")
	if got := out.String(); !strings.Contains(got, "level=DEBUG") || !strings.Contains(got, "key 1: kty or crv is not supported") || strings.Contains(got, "WARN") {
		t.Errorf("after a fetch: %s", got)
	}
	out.Reset()
	p.fail()
	c.advance(DefaultMaxAge)
	wantKey(t, s, "rsa")
	s.settle(t)
	if got := out.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "status 500") || !strings.Contains(got, p.URL) {
		t.Errorf("after a failure: %s", got)
	}
}

// TestDiscoveryTellsWhy checks that the log has the answer of each of the two addresses.
func TestDiscoveryTellsWhy(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, err := newTestKeySet(t, &provider{Server: server}, newClock(), nil).Key(t.Context(), "rsa", "RS256")
	if strings.Count(Reason(err), "status 404") != 2 {
		t.Error(Reason(err))
	}
}

func TestParseURL(t *testing.T) {
	for text, want := range map[string]bool{
		"https://a": true, "http://a:1/b?c": true, "HTTPS://a": true,
		"": false, "a": false, "/a": false, "//a": false, "https:": false, "https:a": false, "https:///a": false, "ftp://127.0.0.1": false,
		"https://u@a": false, "https://a#f": false, "https://a/\x7f": false, "https://[": false,
	} {
		if u, err := parseURL(text); (err == nil) != want || (u == nil) == want {
			t.Errorf("%q: %v, %v", text, u, err)
		}
	}
	for text, want := range map[string]bool{
		"https://a": true, "http://127.0.0.1": true, "http://[::1]:1": true, "http://[::ffff:127.0.0.1]": true, "http://localhost": true,
		"http://a": false, "http://192.0.2.1": false, "ftp://127.0.0.1": false, "file://localhost/a": false,
	} {
		if err := httpsOrLoopback(must(url.Parse(text))); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
