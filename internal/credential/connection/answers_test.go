package connection

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// say makes an answer of the token endpoint to refreshes.
func say(status int, body string) func(http.ResponseWriter, url.Values) bool {
	return func(w http.ResponseWriter, form url.Values) bool {
		if form.Get("grant_type") != "refresh_token" {
			return false
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		return true
	}
}

// TestRefusedRefresh checks W12: for any words in which a provider refuses a refresh, the user is told to connect
// again, at once, and the provider is left alone.
func TestRefusedRefresh(t *testing.T) {
	for name, refusal := range map[string]struct {
		status int
		body   string
	}{
		"invalid_request":            {http.StatusBadRequest, `{"error":"invalid_request","error_description":"refresh_token is invalid"}`},
		"bad_refresh_token in a 200": {http.StatusOK, "error=bad_refresh_token"},
		"Slack":                      {http.StatusOK, `{"ok":false,"error":"invalid_refresh_token"}`},
		"a plain 401":                {http.StatusUnauthorized, ""},
		"a page":                     {http.StatusForbidden, "<html>"},
		"tokens of another scheme":   {http.StatusOK, `{"access_token":"a","token_type":"DPoP"}`},
		"half an object":             {http.StatusOK, `{"access_token":"a"`},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.connect()
			b.provider.set(func(p *provider) { p.instead = say(refusal.status, refusal.body) })
			b.clock.advance(time.Hour)
			for range 3 {
				if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) {
					t.Fatalf("%v", err)
				}
				b.clock.advance(time.Hour)
			}
			if n := b.refreshes(); n != 1 {
				t.Errorf("%d refreshes", n)
			}
			if got := b.status(); got != storage.ConnectionError {
				t.Errorf("status %s", got)
			}
			if !strings.Contains(b.log.String(), "msg=refreshing") {
				t.Error("the provider's answer is not logged")
			}
			b.provider.set(func(p *provider) { p.instead = nil })
			b.connect()
			b.use(b.Broker)
		})
	}
}

// TestRefreshLater checks that a response that is no answer leaves the connection as it is.
func TestRefreshLater(t *testing.T) {
	for _, status := range []int{http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway} {
		b := setup(t)
		b.connect()
		b.provider.set(func(p *provider) { p.instead = say(status, `{"error":"invalid_grant"}`) })
		b.clock.advance(time.Hour)
		if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%d: %v", status, err)
		}
		b.provider.set(func(p *provider) { p.instead = nil })
		b.clock.advance(2 * lastWait)
		b.use(b.Broker)
	}
}

// TestRefreshTokenOfUnusableAnswer checks W10: a new refresh token is kept, whatever came with it, and the spent one is
// never sent again. A provider that answers so twice is given up, and told to revoke the last token.
func TestRefreshTokenOfUnusableAnswer(t *testing.T) {
	type sent struct{ tokens []string }
	begin := func(t *testing.T, answers ...string) (*bundle, *sent) {
		b, s := setup(t), new(sent)
		b.connect()
		b.provider.set(func(p *provider) {
			p.instead = func(w http.ResponseWriter, form url.Values) bool {
				s.tokens = append(s.tokens, form.Get("refresh_token"))
				if n := len(s.tokens); n <= len(answers) {
					return say(http.StatusOK, answers[n-1])(w, form)
				}
				return false
			}
		})
		b.clock.advance(time.Hour)
		return b, s
	}
	t.Run("once", func(t *testing.T) {
		b, s := begin(t, `{"refresh_token":"r2","token_type":"DPoP","access_token":"a"}`, `access_token=good&refresh_token=r3&expires_in=60`)
		if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("%v", err)
		}
		b.counted(map[Event]int64{RefreshFailed: 1})
		b.clock.advance(lastWait)
		restarted := b.node() // r2 is durable
		c, err := restarted.Credential(t.Context(), b.key, &b.server)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.header(c); got != "Bearer good" {
			t.Errorf("%q", got)
		}
		if len(s.tokens) != 2 || s.tokens[1] != "r2" {
			t.Errorf("sent %q", s.tokens)
		}
	})
	t.Run("twice", func(t *testing.T) {
		b, s := begin(t, `{"refresh_token":"r2"}`, `{"refresh_token":"r3"}`)
		_, _ = b.Credential(t.Context(), b.key, &b.server)
		b.clock.advance(lastWait)
		for range 3 {
			if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) {
				t.Errorf("%v", err)
			}
		}
		if len(s.tokens) != 2 {
			t.Errorf("sent %q", s.tokens)
		}
		b.settle(func() bool {
			revoked := get(b.provider, func(p *provider) []string { return p.revoked })
			return len(revoked) > 0 && revoked[0] == "r3"
		})
	})
	t.Run("and the store is away", func(t *testing.T) {
		b, s := begin(t, `{"refresh_token":"r2"}`, `access_token=good&expires_in=60`)
		full := func() error { return storage.ErrUnavailable }
		b.store.afterEdit.Store(&full)
		if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("%v", err)
		}
		b.store.afterEdit.Store(nil)
		b.clock.advance(lastWait)
		var got string
		for range 3 { // the kept token is stored first, beside the expired one
			if c, err := b.Credential(t.Context(), b.key, &b.server); err == nil {
				got = b.header(c)
			}
		}
		if got != "Bearer good" {
			t.Errorf("%q\n%s", got, b.log)
		}
		if len(s.tokens) != 2 || s.tokens[1] != "r2" {
			t.Errorf("sent %q", s.tokens)
		}
	})
}

// TestRefreshRotatesNothing checks a provider that returns no new refresh token: the old one is used again (RFC 6749
// section 6).
func TestRefreshRotatesNothing(t *testing.T) {
	b := setup(t)
	b.connect()
	var sent []string
	b.provider.set(func(p *provider) {
		p.instead = func(w http.ResponseWriter, form url.Values) bool {
			sent = append(sent, form.Get("refresh_token"))
			return say(http.StatusOK, `{"access_token":"good","token_type":"Bearer","expires_in":3600}`)(w, form)
		}
	})
	for range 2 {
		b.clock.advance(time.Hour)
		if c, err := b.Credential(t.Context(), b.key, &b.server); err != nil || b.header(c) != "Bearer good" {
			t.Fatal(err)
		}
	}
	if len(sent) != 2 || sent[0] == "" || sent[0] != sent[1] {
		t.Errorf("sent %q", sent)
	}
}
