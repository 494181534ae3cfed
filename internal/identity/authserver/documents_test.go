package authserver

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestIsDocumentURL(t *testing.T) {
	for id, want := range map[string]bool{
		"https://a.test/client.json": true, "http://127.0.0.1:1/c": true, "https://a.test/c?x": true,
		"https://a.test": false, "https://a.test/": false, "http://a.test/c": false, "https://a.test/../c": false, "https://a.test/c#": false,
		"https://u:p@a.test/c": false, "file:///c": false, "http://169.254.169.254/latest": false, "http://[::ffff:127.0.0.1]/c": false,
		"https://a.test/" + strings.Repeat("c", maxText): false, "https://a.test/./c": false, "//a.test/c": false,
	} {
		if got := IsDocumentURL(id); got != want {
			t.Errorf("IsDocumentURL(%.60q) = %v, want %v", id, got, want)
		}
	}
}

const documentID = "https://client.test/client.json"

// site answers fetches of documents, and counts them.
type site struct {
	status  int
	header  http.Header
	body    string
	fetches int
}

func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	s.fetches++
	return &http.Response{StatusCode: s.status, Header: s.header, Body: io.NopCloser(strings.NewReader(s.body)), Request: r}, nil
}

// document returns a site with a document that has further members.
func document(members string) *site {
	return &site{
		status: http.StatusOK, header: http.Header{"Content-Type": {"application/json"}},
		body: `{"client_id":"` + documentID + `","client_name":"An editor","redirect_uris":["http://127.0.0.1/cb"]` + members + `}`,
	}
}

// TestDocuments checks which documents are taken for a client's, and that a refusal gives no reason.
func TestDocuments(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*site)
		good   bool
	}{
		"as the draft shows it":       {func(*site) {}, true},
		"another JSON type":           {func(s *site) { s.header.Set("Content-Type", "application/oauth+json; charset=utf-8") }, true},
		"members that are not known":  {func(s *site) { s.body = document(`,"logo_uri":"https://x.test/l.png","jwks":{}`).body }, true},
		"no secret said":              {func(s *site) { s.body = document(`,"token_endpoint_auth_method":"none"`).body }, true},
		"another address":             {func(s *site) { s.body = strings.Replace(s.body, documentID, documentID+"?", 1) }, false},
		"no id":                       {func(s *site) { s.body = `{"redirect_uris":["http://127.0.0.1/cb"]}` }, false},
		"the id twice":                {func(s *site) { s.body = document(`,"client_id":"` + documentID + `"`).body }, false},
		"a secret":                    {func(s *site) { s.body = document(`,"client_secret":"s"`).body }, false},
		"a secret's method":           {func(s *site) { s.body = document(`,"token_endpoint_auth_method":"client_secret_basic"`).body }, false},
		"no redirect URI":             {func(s *site) { s.body = `{"client_id":"` + documentID + `"}` }, false},
		"a redirect URI elsewhere":    {func(s *site) { s.body = strings.Replace(s.body, "127.0.0.1", "a.test", 1) }, false},
		"redirect URIs as a text":     {func(s *site) { s.body = document(`,"redirect_uris":"https://a.test/cb"`).body }, false},
		"HTML":                        {func(s *site) { s.header.Set("Content-Type", "text/html") }, false},
		"no type":                     {func(s *site) { s.header.Del("Content-Type") }, false},
		"a list":                      {func(s *site) { s.body = "[" + s.body + "]" }, false},
		"something behind it":         {func(s *site) { s.body += "{}" }, false},
		"nothing":                     {func(s *site) { s.body = "" }, false},
		"an error":                    {func(s *site) { s.status = http.StatusNotFound }, false},
		"a redirect":                  {func(s *site) { s.status = http.StatusFound; s.header.Set("Location", "https://b.test/c") }, false},
		"5 KiB":                       {func(s *site) { s.body += strings.Repeat(" ", MaxDocument-len(s.body)) }, true},
		"more than 5 KiB":             {func(s *site) { s.body += strings.Repeat(" ", MaxDocument+1-len(s.body)) }, false},
		"a name that cannot be shown": {func(s *site) { s.body = strings.Replace(s.body, "An editor", "\u202erotide", 1) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := document("")
			c.change(s)
			got, err := NewDocuments(&http.Client{Transport: s}, time.Now).Client(t.Context(), documentID)
			if !c.good {
				if !errors.Is(err, ErrDocument) || got != nil {
					t.Errorf("client %+v, error %v", got, err)
				}
				return
			}
			if err != nil || got.ID != documentID || got.AuthMethod != AuthNone || !got.Public() || len(got.RedirectURIs) != 1 {
				t.Errorf("client %+v, error %v", got, err)
			}
		})
	}
	s := document("")
	if _, err := NewDocuments(&http.Client{Transport: s}, time.Now).Client(t.Context(), "https://client.test"); !errors.Is(err, ErrDocument) || s.fetches > 0 {
		t.Errorf("an id that is no document's: error %v, %d fetches", err, s.fetches)
	}
}

// TestDocumentsAreKept checks that a document is kept as long as its server says, within bounds.
func TestDocumentsAreKept(t *testing.T) {
	for directive, want := range map[string]time.Duration{
		"":                        defaultDocument,
		"max-age=3600":            time.Hour,
		"public, Max-Age=\"600\"": 10 * time.Minute,
		"max-age=1":               shortestDocument,
		"max-age=31536000":        longestDocument,
		"max-age=-1":              defaultDocument,
		"max-age=1e9":             defaultDocument,
		"no-store":                shortestDocument,
		"max-age=3600, no-cache":  shortestDocument,
	} {
		now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
		s := document("")
		s.header.Set("Cache-Control", directive)
		d := NewDocuments(&http.Client{Transport: s}, func() time.Time { return now })
		fetch := func() {
			t.Helper()
			if _, err := d.Client(t.Context(), documentID); err != nil {
				t.Fatal(err)
			}
		}
		fetch()
		now = now.Add(want - time.Nanosecond)
		fetch()
		if s.fetches != 1 {
			t.Errorf("%q: fetched anew before %s", directive, want)
		}
		now = now.Add(time.Nanosecond)
		fetch()
		if s.fetches != 2 {
			t.Errorf("%q: %d fetches after %s", directive, s.fetches, want)
		}
	}
}

// TestDocumentsAway checks that a document which cannot be fetched is asked for again after a while, and serves meanwhile when it
// was there before, but not when its place says something else.
func TestDocumentsAway(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	s := document("")
	d := NewDocuments(&http.Client{Transport: s}, func() time.Time { return now })
	ask := func(what string, good bool, fetches int) {
		t.Helper()
		if _, err := d.Client(t.Context(), documentID); (err == nil) != good || s.fetches != fetches {
			t.Errorf("%s: %v after %d fetches", what, err, s.fetches)
		}
	}
	s.status = http.StatusBadGateway
	ask("away", false, 1)
	s.status = http.StatusOK
	ask("at once", false, 1)
	now = now.Add(failedDocument)
	ask("later", true, 2)
	now = now.Add(defaultDocument)
	s.status = http.StatusServiceUnavailable
	ask("away again", true, 3)
	ask("at once again", true, 3)
	now = now.Add(longestDocument)
	ask("away for a day", false, 4)
	s.status = http.StatusOK
	now = now.Add(failedDocument)
	ask("back", true, 5)
	now = now.Add(defaultDocument)
	s.status = http.StatusNotFound
	ask("taken away", false, 6)
}

// TestDocumentsOfHungHost checks that a host that does not answer keeps nobody out whose document is elsewhere.
func TestDocumentsOfHungHost(t *testing.T) {
	// Those that come late begin after the first ones have ended, and nobody reads of them.
	hung, began := make(chan struct{}), make(chan struct{}, 2*documentFetches)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer close(hung)
	good := document("")
	d := NewDocuments(&http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host == "slow.test" {
			began <- struct{}{}
			<-hung
			return nil, io.ErrUnexpectedEOF
		}
		return good.RoundTrip(r)
	})}, time.Now)
	for i := range 2 * documentFetches {
		asking.Go(func() { _, _ = d.Client(t.Context(), fmt.Sprintf("https://slow.test/%d", i)) })
	}
	for range hostFetches {
		<-began
	}
	if _, err := d.Client(t.Context(), documentID); err != nil {
		t.Errorf("another host's: %v", err)
	}
	if len(d.slots) > hostFetches {
		t.Errorf("one host has %d fetches", len(d.slots))
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestDocumentsAreBounded keeps more documents than fit: the one that expires first makes room.
func TestDocumentsAreBounded(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	s := document("")
	d := NewDocuments(&http.Client{Transport: s}, func() time.Time { return now })
	ask := func(i int) {
		t.Helper()
		id := fmt.Sprintf("https://client.test/%d", i)
		s.body = strings.Replace(document("").body, documentID, id, 1)
		if _, err := d.Client(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	for i := range maxDocuments + 1 {
		ask(i)
		now = now.Add(time.Millisecond)
	}
	if len(d.kept) != maxDocuments {
		t.Errorf("%d documents are kept", len(d.kept))
	}
	before := s.fetches
	ask(1)
	if ask(0); s.fetches != before+1 {
		t.Errorf("%d fetches, not the first one's alone", s.fetches-before)
	}
}

// TestDocumentsOfOneHost checks that many clients of one host are let in at once: each waits for its turn.
func TestDocumentsOfOneHost(t *testing.T) {
	d := NewDocuments(&http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		s := document("")
		s.body = strings.Replace(s.body, documentID, r.URL.String(), 1)
		return s.RoundTrip(r)
	})}, time.Now)
	var asking sync.WaitGroup
	for i := range 4 * hostFetches {
		asking.Go(func() {
			if _, err := d.Client(t.Context(), fmt.Sprintf("https://client.test/%d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	if len(d.hosts) != 0 {
		t.Errorf("%d hosts are remembered", len(d.hosts))
	}
}
