package forward

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/durward-gateway/durward/internal/proxy/http1"
)

// TestRequestsStayWhole covers O12 for outgoing requests. They are made in memory that earlier requests used. Even so,
// every upstream must get complete requests of one caller each. Their sizes differ: some have the body behind the first
// write, and some have more headers than there is room for.
func TestRequestsStayWhole(t *testing.T) { onBoth(t, testRequestsStayWhole) }

func testRequestsStayWhole(t *testing.T, via client) {
	rounds := 600
	if testing.Short() {
		rounds = 100
	}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := r.Header.Get("Mcp-Name")
		if r.Header.Get("Authorization") != "Bearer "+who || r.URL.Query().Get("key") != who || r.URL.Path != "/"+who || r.Header.Get("Mcp-Session-Id") != who {
			t.Errorf("%q got %s with %v", who, r.URL, r.Header)
		}
		for name, values := range r.Header {
			if strings.HasPrefix(name, "Mcp-Param-") && (len(values) != 1 || values[0] != who) {
				t.Errorf("%q got %s: %q", who, name, values)
			}
		}
		if n, _ := strconv.Atoi(who); n%5 < 4 { // the others are answered before their body is read
			body, err := io.ReadAll(r.Body)
			if rest := strings.ReplaceAll(string(body), who+",", ""); err == nil && rest != "" || strings.Trim(rest, who+",") != "" {
				t.Errorf("%q got a body with %.100q", who, rest)
			}
		}
		_, _ = io.WriteString(w, who)
	}))
	t.Cleanup(up.Close)
	f, _ := via.forwarder(t, Options{MaxConnsPerHost: 4}, Limits{})
	var callers sync.WaitGroup
	work := make(chan int)
	for range 16 {
		callers.Go(func() {
			for i := range work {
				callAs(t, f, up.URL, i)
			}
		})
	}
	for i := range rounds {
		work <- i
	}
	close(work)
	callers.Wait()
}

func callAs(t *testing.T, f *Forwarder, address string, i int) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	who := fmt.Sprintf("%06d", i)
	u, err := url.Parse(address + "/" + who + "?key=of-the-server")
	if err != nil {
		t.Error(err)
		return
	}
	r := &Request{
		Method: http.MethodPost, URL: u, Header: http.Header{"Mcp-Name": {who}}, SessionID: who,
		Body: []byte(strings.Repeat(who+",", 1+i%7*1500)),
		Credential: CredentialFunc(func(r *http1.Request) error {
			if i%11 == 10 {
				return io.ErrUnexpectedEOF // after the request was made
			}
			r.Set("Authorization", "Bearer "+who)
			SetQuery(r.URL, "key", who)
			return nil
		}),
	}
	for n := range i % 13 * 3 {
		r.Header["Mcp-Param-P"+strconv.Itoa(n)] = []string{who}
	}
	if i%3 == 2 {
		go cancel()
	}
	answer, err := f.Do(ctx, r)
	if err != nil {
		return // a cancelled or early answered call may fail
	}
	defer answer.Close()
	if b, err := answer.ReadAll(1 << 10); err == nil && string(b) != who {
		t.Errorf("%q got the answer of %q", who, b)
	}
}

// TestOutgoingIsEmptied checks that nothing of a request, above all its credential, stays in the memory of the next
// one.
func TestOutgoingIsEmptied(t *testing.T) {
	o := new(outgoing)
	if err := o.prepare(&Request{Method: http.MethodPost, URL: mustURL("https://a.test/?k=v"), Body: []byte("{}"), SessionID: "s", Header: http.Header{"Mcp-Name": {"n"}}}); err != nil {
		t.Fatal(err)
	}
	o.request.Set("Authorization", "Bearer secret")
	o.release()
	if o.request.URL != nil || o.request.Fields != nil || o.request.Body != nil || o.url != (url.URL{}) || o.fields != [len(o.fields)]http1.Field{} {
		t.Errorf("%+v is left", o)
	}
}
