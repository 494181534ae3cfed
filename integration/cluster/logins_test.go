package cluster

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
)

const (
	clientBack = "http://127.0.0.1:1/back"
	verifier   = "a-verifier-of-enough-characters-0123456789-abcdef"
)

// login is a user's login with an OAuth client at the gateway.
type login struct {
	c               *cluster
	client          string
	access, refresh string
}

// browser is a browser of one user: each of its requests goes to the next node, as a load balancer may send them.
type browser struct {
	c       *cluster
	client  *http.Client
	cookies map[string]string
	turn    int
}

// open opens an address of the gateway, or sends a form there, and returns the page, or the address to which it leads.
func (b *browser) open(path string, form url.Values) (page, location string) {
	b.c.t.Helper()
	b.turn++
	method, body, header := http.MethodGet, any(nil), []string{"Accept", "text/html"}
	var cookies []string
	for name, value := range b.cookies {
		cookies = append(cookies, name+"="+value)
	}
	if header = append(header, "Cookie", strings.Join(cookies, "; ")); form != nil {
		method, body, header = http.MethodPost, form.Encode(), append(header, "Content-Type", "application/x-www-form-urlencoded")
	}
	a := b.c.nodes[b.turn%len(b.c.nodes)].send(b.client, method, path, "", body, header...)
	if a.err != nil || a.status >= http.StatusBadRequest {
		b.c.t.Fatalf("%s: %v", path, a)
	}
	for _, set := range (&http.Response{Header: a.header}).Cookies() {
		b.cookies[set.Name] = set.Value
	}
	return string(a.body), a.header.Get("Location")
}

var consent = regexp.MustCompile(`action="(/oauth/authorize[^"]*)"[^>]*>\s*<input type="hidden" name="form" value="([^"]+)"`)

// logIn logs a user in with a client that registers itself, for the whole gateway.
func (c *cluster) logIn(claims members) *login {
	c.t.Helper()
	client := newClient(c.t)
	defer client.CloseIdleConnections()
	l := &login{c: c, client: c.nodes[0].api(client, "", http.MethodPost, "/oauth/register", members{
		"client_name": "An editor", "redirect_uris": []string{clientBack}, "token_endpoint_auth_method": "none",
		"grant_types": []string{"authorization_code", "refresh_token"},
	})["client_id"].(string)}
	sum := sha256.Sum256([]byte(verifier))
	b := &browser{c: c, client: client, cookies: make(map[string]string)}
	at := "/oauth/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {l.client}, "redirect_uri": {clientBack}, "state": {"s"}, "code_challenge_method": {"S256"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])},
	}.Encode()
	for range 8 {
		page, location := b.open(at, nil)
		if question := consent.FindStringSubmatch(page); question != nil {
			_, location = b.open(html.UnescapeString(question[1]), url.Values{"form": {question[2]}, "decision": {"approve"}})
		}
		to, err := url.Parse(location)
		switch {
		case err != nil || location == "":
			c.t.Fatalf("%s leads nowhere: %s", at, page)
		case strings.HasPrefix(location, clientBack):
			status, got := l.ask(c.nodes[1], client, url.Values{
				"grant_type": {"authorization_code"}, "code": {to.Query().Get("code")}, "redirect_uri": {clientBack}, "code_verifier": {verifier},
			})
			if status != http.StatusOK {
				c.t.Fatalf("the code: %d %v", status, got)
			}
			l.access, l.refresh = got["access_token"].(string), got["refresh_token"].(string)
			return l
		case strings.HasPrefix(location, c.issuer.URL()):
			whole := members{"org_id": organization}
			maps.Copy(whole, claims)
			code := c.issuer.Code(c.t, "approver", to.Query().Get("nonce"), whole)
			at = "/login/callback?" + url.Values{"code": {code}, "state": {to.Query().Get("state")}}.Encode()
		default:
			at = strings.TrimPrefix(location, c.url)
		}
	}
	c.t.Fatal("the login does not end")
	return nil
}

// ask sends a form to the token endpoint of a node.
func (l *login) ask(n *node, client *http.Client, form url.Values) (int, members) {
	l.c.t.Helper()
	form.Set("client_id", l.client)
	a := n.send(client, http.MethodPost, "/oauth/token", "", form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	var got members
	if err := json.Unmarshal(a.body, &got); a.err != nil || err != nil {
		l.c.t.Fatalf("the token endpoint of %s: %v", n.name, a)
	}
	return a.status, got
}

// session returns the id of the session, which the access token names.
func (l *login) session() string {
	l.c.t.Helper()
	var claims struct{ SID string }
	_, rest, _ := strings.Cut(l.access, ".")
	payload, _, _ := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err == nil {
		err = json.Unmarshal(text, &claims)
	}
	if err != nil || claims.SID == "" {
		l.c.t.Fatalf("the access token names no session: %s", text)
	}
	return claims.SID
}

// TestRefreshOnAllNodes checks that a client which sends one refresh token to three nodes at once stays logged in, and that a
// token which was replaced long ago ends the login on all of them (RFC 9700 section 4.14.2).
func TestRefreshOnAllNodes(t *testing.T) {
	c := startCluster(t)
	client := newClient(t)
	s := c.nodes[0].newServer(client, newUpstream(t).entry())
	for range number(t, "CLUSTER_REFRESHES", 5) {
		l := c.logIn(person())
		first := l.refresh
		var all sync.WaitGroup
		renewed := make([]members, len(c.nodes))
		for i, n := range c.nodes {
			all.Go(func() {
				status, got := l.ask(n, client, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {first}})
				if status != http.StatusOK {
					t.Errorf("%s: %d %v", n.name, status, got)
				}
				renewed[i] = got
			})
		}
		all.Wait()
		if t.Failed() {
			return
		}
		for i, n := range c.nodes {
			access, _ := renewed[i]["access_token"].(string)
			if a := n.call(client, access, s); !a.passed() {
				t.Errorf("%s with its new token: %v", n.name, a)
			}
		}
		second, _ := renewed[0]["refresh_token"].(string)
		if status, got := l.ask(c.nodes[0], client, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {second}}); status != http.StatusOK {
			t.Errorf("the next refresh: %d %v", status, got)
		}
		if status, _ := l.ask(c.nodes[1], client, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {first}}); status != http.StatusBadRequest {
			t.Errorf("a token that was replaced twice: %d", status)
		}
		for _, n := range c.nodes {
			eventually(t, n.name+" to refuse a token of the login that was ended", func() bool { return n.call(client, l.access, s).status == http.StatusUnauthorized })
		}
	}
}
