package integration

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAttackLogs checks that a Caddyfile that asks for more logs of requests than is good gets no secret of one. Every
// request has the same ones, wherever clients put them.
func TestAttackLogs(t *testing.T) {
	t.Parallel()
	beside, front, plain, secure := freePort(t), freePort(t), freePort(t), freePort(t)
	g := startGateway(t, settings{
		global: "skip_install_trust\n\thttp_port " + plain + "\n\thttps_port " + secure + "\n\tservers {\n\t\tlog_credentials\n\t}",
		site: `log
	log also {
		output file console.log
		format console
	}
	log_append address {http.request.orig_uri}
	log_append address_early {http.request.uri} {
		early
	}
	log_append query {http.request.uri.query}
	log_append parameter {http.request.uri.query.code}
	log_append header {http.request.header.X-Api-Key}
	log_append bearer {http.request.header.Authorization}
	log_append cookie {http.request.cookie.durward}
	log_append answer {http.response.header.Location}
	header /moved Location /login?code={query.code}
	respond /moved 302
	error /broken "cannot serve {uri} to {header.X-Api-Key}" 500`,
	})
	written := g.written() + strings.NewReplacer("<beside>", beside, "<front>", front, "<gateway>", strings.TrimPrefix(g.url, "http://")).Replace(`
http://:<beside> {
	bind 127.0.0.1
	log
	respond here
}
http://:<front> {
	bind 127.0.0.1
	log
	reverse_proxy <gateway>
}
https://localhost {
	bind 127.0.0.1
	log
	tls internal
	durward
}
`)
	g.mustReload(written)
	s := newSweep()
	code, key, bearer, cookie := s.draw("authorization code"), s.draw("API key"), s.draw("authorization code"), s.draw("authorization code")
	for _, address := range []string{g.url, "http://127.0.0.1:" + beside, "http://127.0.0.1:" + front, "http://localhost:" + plain} {
		for _, path := range []string{"/api/oauth/callback", "/moved", "/broken", "/mcp/nothing", "/healthz"} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+path+"?code="+code+"&state="+url.QueryEscape(key), nil)
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{
				"X-Api-Key": key, "Authorization": "Bearer " + bearer, "Cookie": "a=b; durward=" + cookie, "Referer": "https://x.example/?access_token=" + bearer,
				"X-Forwarded-Uri": "/?state=" + code,
			} {
				request.Header.Set(name, value)
			}
			response, err := g.client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, response.Body)
			if closed := response.Body.Close(); err != nil || closed != nil {
				t.Fatal(err, closed)
			}
			if address == "http://localhost:"+plain && response.StatusCode != http.StatusPermanentRedirect {
				t.Errorf("status %d instead of the way to https", response.StatusCode)
			}
		}
	}
	g.stop(t)
	console, err := os.ReadFile(filepath.Join(g.directory, "console.log"))
	if err != nil {
		t.Fatal(err)
	}
	logs := map[string]string{"the log": g.output.String(), "the log for a console": string(console)}
	for where, text := range logs {
		if n := strings.Count(text, "handled request"); n < 5 {
			t.Errorf("%s has %d requests", where, n)
		}
		for line := range strings.Lines(text) {
			if found := s.find([]byte(line)); len(found) > 0 {
				t.Errorf("%s: %v in %s", where, found, tail(line, 2_000))
			}
		}
	}
	for _, want := range []string{
		`"parameter":"REDACTED"`, `"header":"REDACTED"`, `"bearer":"REDACTED"`, `"cookie":"REDACTED"`, `"answer":"/login?code=REDACTED"`,
		`"address":"/moved?code=REDACTED&state=REDACTED"`, `"Location":["https://localhost/moved?code=REDACTED&state=REDACTED"]`,
		`"msg":"cannot serve /broken?code=REDACTED&state=REDACTED to REDACTED"`,
	} {
		if !strings.Contains(logs["the log"]+strings.ReplaceAll(logs["the log for a console"], `": `, `":`), want) {
			t.Errorf("no log says %s", want)
		}
	}
}
