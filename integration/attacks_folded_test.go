package integration

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestAttackFoldedToken checks that a token that is folded over two lines (obs-fold) is nobody's (H07). Where HTTP/1.1
// comes in plain, the request is answered 400 before it is read. Over the gateway's own TLS, net/http joins the lines
// by a blank, as RFC 9112 section 5.2 allows: a token that has one in it is refused, and one whose fold stands where a
// blank stands anyway is the token that the client sent.
func TestAttackFoldedToken(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{global: "skip_install_trust\n\tauto_https disable_redirects"})
	upstream := answering(t)
	s := g.createServer(upstream.url, nil)
	port := freePort(t)
	g.mustReload(g.written() + fmt.Sprintf("\nhttps://localhost:%s {\n\tbind 127.0.0.1\n\ttls internal\n\tdurward\n}\n", port))
	overTLS := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}} //nolint:gosec // the certificate is made for this test
	dial := func() *tls.Conn {
		connection, err := tls.Dial("tcp", "localhost:"+port, overTLS)
		if err != nil {
			return nil
		}
		return connection
	}
	g.eventually("the site has a certificate", func() bool {
		connection := dial()
		return connection != nil && connection.Close() == nil
	})
	token := g.token(alice)
	half := len(token) / 2
	for _, tc := range []struct {
		name, authorization string
		overTLS             int
	}{
		{"as it is", "Bearer " + token, http.StatusOK},
		{"in the token", "Bearer " + token[:half] + "\r\n " + token[half:], http.StatusUnauthorized},
		{"in the token, by a tab", "Bearer " + token[:half] + "\r\n\t" + token[half:], http.StatusUnauthorized},
		{"before the last character", "Bearer " + token[:len(token)-1] + "\r\n " + token[len(token)-1:], http.StatusUnauthorized},
		{"in the scheme", "Bea\r\n rer " + token, http.StatusUnauthorized},
		{"behind another token", "Bearer x\r\n Bearer " + token, http.StatusUnauthorized},
		{"behind another token and a comma", "Bearer x,\r\n Bearer " + token, http.StatusUnauthorized},
		{"before another line of it", "Bearer\r\n " + token + "\r\nAuthorization: Bearer " + token, http.StatusUnauthorized},
		{"in the place of the blank", "Bearer\r\n " + token, http.StatusOK},
	} {
		request := func(host string) string {
			return "POST " + s.path + " HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: " + tc.authorization + "\r\nContent-Type: application/json\r\nAccept: " +
				bothKinds + "\r\nConnection: close\r\n" + lengthLine(pingMessage) + "\r\n" + pingMessage
		}
		for where, status := range map[string]int{"plain": http.StatusBadRequest, "TLS": tc.overTLS} {
			if where == "plain" && !strings.Contains(tc.authorization, "\r\n ") && !strings.Contains(tc.authorization, "\r\n\t") {
				continue
			}
			t.Run(tc.name+"/"+where, func(t *testing.T) {
				upstream.forget()
				var answers []answer
				if where == "plain" {
					answers = g.exchange(request(strings.TrimPrefix(g.url, "http://")))
				} else {
					answers = g.exchangeOn(dial(), request("localhost:"+port))
				}
				if len(answers) != 1 || answers[0].status != status {
					t.Fatalf("answered %v instead of %d", statuses(answers), status)
				}
				if status != http.StatusOK {
					upstream.wantNothing(t)
				}
			})
		}
	}
}
