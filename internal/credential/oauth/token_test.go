package oauth

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/seal"
)

func exchange(t *testing.T, c *Client, base string, client ClientAuth) (Tokens, error) {
	t.Helper()
	return c.Exchange(t.Context(), ExchangeRequest{
		Endpoint: base + "/token", Client: client, Code: seal.NewSecret("CODE-CANARY"), RedirectURI: "https://gw.example/cb", Verifier: seal.NewSecret("VERIFIER-CANARY"),
		Resource: "https://mcp.example/mcp",
	})
}

func TestTokenResponse(t *testing.T) {
	day := 24 * time.Hour
	for _, tc := range []struct {
		name   string
		answer reply
		expiry time.Duration // 0: no expiry
		want   error
		code   string
	}{
		{"plain", ok(`{"access_token":"a","token_type":"Bearer","expires_in":3600}`), time.Hour, nil, ""},
		{"201 and lower case", reply{201, nil, `{"access_token":"a","token_type":"bearer","expires_in":3600}`}, time.Hour, nil, ""},
		{"A09 no token_type", ok(`{"access_token":"a"}`), 0, nil, ""},
		{"A09 token_type of another scheme", ok(`{"access_token":"a","token_type":"N_A"}`), 0, ErrMalformed, ""},
		{"A09 token_type mac", ok(`{"access_token":"a","token_type":"mac"}`), 0, ErrMalformed, ""},
		{"A09 token_type DPoP", ok(`{"access_token":"a","token_type":"DPoP"}`), 0, ErrMalformed, ""},
		{"A09 expires_in a string", ok(`{"access_token":"a","token_type":"Bearer","expires_in":"3600"}`), time.Hour, nil, ""},
		{"A09 expires_in a string that is no number", ok(`{"access_token":"a","token_type":"Bearer","expires_in":"an hour"}`), 0, nil, ""},
		{"A09 expires_in not a number", ok(`{"access_token":"a","token_type":"Bearer","expires_in":"NaN"}`), 0, nil, ""},
		{"A09 expires_in -1", ok(`{"access_token":"a","token_type":"Bearer","expires_in":-1}`), 0, nil, ""},
		{"A09 expires_in 0", ok(`{"access_token":"a","token_type":"Bearer","expires_in":0}`), 0, nil, ""},
		{"A09 expires_in 0.2", ok(`{"access_token":"a","token_type":"Bearer","expires_in":0.2}`), time.Second, nil, ""},
		{"A09 expires_in 1e12", ok(`{"access_token":"a","token_type":"Bearer","expires_in":1e12}`), 365 * day, nil, ""},
		{"A09 expires_in 1e999", ok(`{"access_token":"a","token_type":"Bearer","expires_in":1e999}`), 365 * day, nil, ""},
		{"A09 expires_in -1e999", ok(`{"access_token":"a","token_type":"Bearer","expires_in":-1e999}`), 0, nil, ""},
		{"A09 expires_in missing", ok(`{"access_token":"a","token_type":"Bearer"}`), 0, nil, ""},
		{"A09 expires_in null", ok(`{"access_token":"a","token_type":"Bearer","expires_in":null}`), 0, nil, ""},
		{"A09 expires_in a list", ok(`{"access_token":"a","token_type":"Bearer","expires_in":[1]}`), 0, nil, ""},
		{"A09 unsigned id_token and more are ignored", ok(`{"access_token":"a","token_type":"Bearer","id_token":"e30.e30.","x":{}}`), 0, nil, ""},
		{"A09 HTML", reply{200, map[string]string{"Content-Type": "text/html"}, `<html>access_token=a</html>`}, 0, ErrMalformed, ""},
		{"A09 307", reply{307, map[string]string{"Location": "/elsewhere"}, ``}, 0, ErrMalformed, ""},
		{"A09 duplicate access_token", ok(`{"access_token":"a","access_token":"b","token_type":"Bearer"}`), 0, ErrMalformed, ""},
		{"access_token empty", ok(`{"access_token":"","token_type":"Bearer"}`), 0, ErrMalformed, ""},
		{"access_token with a line break", ok(`{"access_token":"a\r\nX: y","token_type":"Bearer"}`), 0, ErrMalformed, ""},
		{"access_token with a blank", ok(`{"access_token":"a b","token_type":"Bearer"}`), 0, ErrMalformed, ""},
		{"access_token not ASCII", ok(`{"access_token":"ä","token_type":"Bearer"}`), 0, ErrMalformed, ""},
		{"access_token too long", ok(`{"access_token":"` + strings.Repeat("a", maxToken+1) + `","token_type":"Bearer"}`), 0, ErrMalformed, ""},
		{"refresh_token with a NUL", ok(`{"access_token":"a","token_type":"Bearer","refresh_token":"\u0000"}`), 0, ErrMalformed, ""},
		{"scope not a string", ok(`{"access_token":"a","token_type":"Bearer","scope":["a"]}`), 0, nil, ""},
		{"not an object", ok(`[]`), 0, ErrMalformed, ""},
		{"A14 invalid_grant", reply{400, nil, `{"error":"invalid_grant"}`}, 0, nil, CodeInvalidGrant},
		{"invalid_client", reply{401, nil, `{"error":"invalid_client"}`}, 0, nil, CodeInvalidClient},
		{"an error with status 200", ok(`{"error":"bad_verification_code"}`), 0, nil, "bad_verification_code"},
		{"temporarily_unavailable", reply{400, nil, `{"error":"temporarily_unavailable"}`}, 0, ErrUnavailable, ""},
		{"Z-A01 503", reply{503, nil, `{"error":"invalid_grant"}`}, 0, ErrUnavailable, ""},
		{"Z-A01 429", reply{429, nil, ``}, 0, ErrUnavailable, ""},
		{"400 without words", reply{400, nil, `{}`}, 0, ErrMalformed, ""},
		{"400 with a page", reply{400, map[string]string{"Content-Type": "text/html"}, `<html>`}, 0, ErrMalformed, ""},
		{"A10 error with markup", reply{400, nil, `{"error":"<script>"}`}, 0, ErrMalformed, ""},
		{"A10 the code for an error", reply{400, nil, `{"error":"CODE-CANARY"}`}, 0, ErrMalformed, ""},
		{"A10 the verifier in an error, with status 200", ok(`{"error":"bad.VERIFIER-CANARY"}`), 0, ErrMalformed, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake(t, map[string]reply{"POST /token": tc.answer})
			got, err := exchange(t, newClient(), f.URL, ClientAuth{ID: "id", Method: AuthNone})
			if tc.code != "" {
				if Code(err) != tc.code {
					t.Fatalf("got %v, want code %s", err, tc.code)
				}
				return
			}
			if !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if err != nil {
				if Code(err) != "" {
					t.Errorf("code %q", Code(err))
				}
				return
			}
			if got.Access.Reveal() != "a" {
				t.Errorf("token %q", got.Access.Reveal())
			}
			var want time.Time
			if tc.expiry != 0 {
				want = start.Add(tc.expiry)
			}
			if !got.ExpiresAt.Equal(want) {
				t.Errorf("expires %v, want %v", got.ExpiresAt, want)
			}
		})
	}
}

// TestEncodedAnswer checks B06: an answer that is compressed unasked still gives the refresh token, and a busy server
// is busy in any encoding.
func TestEncodedAnswer(t *testing.T) {
	var zipped strings.Builder
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, `{"access_token":"a","token_type":"Bearer","refresh_token":"r2"}`)
	_ = z.Close()
	for _, tc := range []struct {
		encoding, body string
		status         int
		class          Class
	}{
		{"gzip", zipped.String(), 200, Good},
		{"IDENTITY", `{"access_token":"a","token_type":"Bearer","refresh_token":"r2"}`, 200, Good},
		{"br", "x", 200, Refused},
		{"br", "x", 503, Later},
		{"gzip", "x", 429, Later},
	} {
		f := newFake(t, map[string]reply{"POST /token": {tc.status, map[string]string{"Content-Encoding": tc.encoding}, tc.body}})
		got, err := exchange(t, newClient(), f.URL, ClientAuth{ID: "id", Method: AuthNone})
		if ClassOf(err) != tc.class || (tc.class == Good && got.Refresh.Reveal() != "r2") {
			t.Errorf("%s, %d: %v", tc.encoding, tc.status, err)
		}
	}
}

func TestExchangeRequest(t *testing.T) {
	f := newFake(t, map[string]reply{"POST /token": ok(`{"access_token":"a","token_type":"Bearer","refresh_token":"r","scope":"b  a"}`)})
	c := newClient()
	secret := seal.NewSecret("p:w %")
	for _, tc := range []struct {
		method       string
		id, password string // in the form
		basic        string
	}{
		{AuthNone, "i:d", "", ""},
		{AuthPost, "i:d", "p:w %", ""},
		{AuthBasic, "", "", "i%3Ad:p%3Aw+%25"},
	} {
		t.Run(tc.method, func(t *testing.T) {
			got, err := exchange(t, c, f.URL, ClientAuth{ID: "i:d", Secret: secret, Method: tc.method})
			if err != nil {
				t.Fatal(err)
			}
			if got.Refresh.Reveal() != "r" || got.Scope != "b a" {
				t.Errorf("%q %q", got.Refresh.Reveal(), got.Scope)
			}
			s := f.last(t)
			for name, want := range map[string]string{
				"grant_type": "authorization_code", "code": "CODE-CANARY", "redirect_uri": "https://gw.example/cb", "code_verifier": "VERIFIER-CANARY",
				"resource": "https://mcp.example/mcp", "client_id": tc.id, "client_secret": tc.password,
			} {
				if s.form.Get(name) != want {
					t.Errorf("%s is %q, want %q", name, s.form.Get(name), want)
				}
			}
			want := ""
			if tc.basic != "" {
				want = "Basic " + base64.StdEncoding.EncodeToString([]byte(tc.basic))
			}
			if got := s.header.Get("Authorization"); got != want {
				t.Errorf("Authorization %q, want %q", got, want)
			}
		})
	}
	if _, err := exchange(t, c, f.URL, ClientAuth{ID: "id", Method: "private_key_jwt"}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("unknown method: %v", err)
	}
}

func TestSecretsStayOutOfErrors(t *testing.T) {
	f := newFake(t, map[string]reply{"POST /token": {400, nil,
		`{"error":"invalid_grant","error_description":"code CODE-CANARY verifier VERIFIER-CANARY secret SECRET-CANARY <script>\u001b[0m"}`}})
	_, err := exchange(t, newClient(), f.URL, ClientAuth{ID: "id", Secret: seal.NewSecret("SECRET-CANARY"), Method: AuthPost})
	pe, ok := errors.AsType[*ProtocolError](err)
	if !ok {
		t.Fatal(err)
	}
	if s := pe.Error() + pe.Description; strings.Contains(s, "CANARY") || strings.Contains(s, "\x1b") {
		t.Errorf("A10 %q", s)
	}
	if strings.Contains(pe.Error(), "script") {
		t.Errorf("A10 the server's words are in the error's text: %q", pe)
	}
	closed := newFake(t, nil)
	closed.Close()
	_, err = newClient().Refresh(t.Context(), RefreshRequest{Endpoint: closed.URL + "/token?k=CANARY", Client: ClientAuth{ID: "id", Method: AuthNone}, Token: seal.NewSecret("CANARY")})
	if !errors.Is(err, ErrUnavailable) || strings.Contains(err.Error(), "CANARY") {
		t.Errorf("Z-A01 closed port: %v", err)
	}
}

func TestRefresh(t *testing.T) {
	f := newFake(t, map[string]reply{"POST /token": ok(`{"access_token":"a2","token_type":"Bearer","expires_in":60}`)})
	c := newClient()
	r := RefreshRequest{Endpoint: f.URL + "/token", Client: ClientAuth{ID: "id", Method: AuthNone}, Token: seal.NewSecret("r1"), Resource: "https://mcp.example/mcp"}
	got, err := c.Refresh(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if got.Access.Reveal() != "a2" || !got.Refresh.Empty() {
		t.Errorf("%+v", got)
	}
	form := f.last(t).form
	if form.Get("grant_type") != "refresh_token" || form.Get("refresh_token") != "r1" || form.Get("resource") != r.Resource || form.Has("scope") {
		t.Errorf("form %v", form)
	}
	r.Scope = "api://app/read offline_access"
	if _, err := c.Refresh(t.Context(), r); err != nil || f.last(t).form.Get("scope") != r.Scope {
		t.Errorf("form %v, %v", f.last(t).form, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Refresh(ctx, r); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUnavailable) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestRevoke(t *testing.T) {
	f := newFake(t, map[string]reply{"POST /revoke": {status: 200}})
	c := newClient()
	r := RevokeRequest{Endpoint: f.URL + "/revoke", Client: ClientAuth{ID: "id", Method: AuthNone}, Refresh: seal.NewSecret("r"), Access: seal.NewSecret("a")}
	if err := c.Revoke(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range f.seen {
		got = append(got, s.form.Get("token_type_hint")+"="+s.form.Get("token"))
	}
	if strings.Join(got, " ") != "refresh_token=r access_token=a" {
		t.Errorf("A16 revoked %q", got)
	}
	r.Endpoint = f.URL + "/none"
	if err := c.Revoke(t.Context(), r); err == nil {
		t.Error("a missing endpoint passes")
	}
	if n := len(f.paths()); n != 4 {
		t.Errorf("A16 %d requests, want 4: the second token is tried after the first failed", n)
	}
}

// TestRevokeUnsupported asks servers that revoke no access tokens: with the refresh token revoked there is nothing left to ask.
func TestRevokeUnsupported(t *testing.T) {
	for name, tc := range map[string]struct {
		refresh string
		takes   string
		done    bool
	}{
		"the refresh token alone": {"r", "r", true},
		"neither":                 {"r", "", false},
		"an access token alone":   {"", "r", false},
		"the access token alone":  {"r", "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.FormValue("token") == tc.takes {
					return
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"error":"unsupported_token_type"}`)
			}))
			defer server.Close()
			err := newClient().Revoke(t.Context(), RevokeRequest{
				Endpoint: server.URL, Client: ClientAuth{ID: "id", Method: AuthNone}, Refresh: seal.NewSecret(tc.refresh), Access: seal.NewSecret("a"),
			})
			if (err == nil) != tc.done {
				t.Error(err)
			}
		})
	}
}

func FuzzTokens(f *testing.F) {
	f.Add(`{"access_token":"a","token_type":"Bearer","expires_in":3600,"refresh_token":"r","scope":"a b"}`)
	f.Add(`{"access_token":"a","token_type":"bearer","expires_in":"1"}`)
	f.Add(`{"error":"invalid_grant","error_description":"x"}`)
	f.Add(`access_token=a&token_type=bearer&expires=5183814`)
	f.Add(`{"ok":true,"authed_user":{"access_token":"a","token_type":"user","scope":"a,b"}}`)
	f.Add(`{"access_token":"a","token_type":"DPoP","refresh_token":"r"}`)
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := judgeTokens(400, []byte(s), start); ClassOf(err) == Good {
			t.Fatal("no error")
		}
		got, err := judgeTokens(200, []byte(s), start)
		if err != nil {
			if r := HandedOut(err).Reveal(); r != "" && !isToken(r) {
				t.Fatalf("refresh token %q", r)
			}
			return
		}
		a := got.Access.Reveal()
		if a == "" || strings.ContainsAny(a, " \r\n") || len(a) > maxToken {
			t.Fatalf("token %q", a)
		}
		if _, err := url.ParseQuery("t=" + url.QueryEscape(got.Refresh.Reveal())); err != nil {
			t.Fatal(err)
		}
		if left := got.ExpiresAt.Sub(start); !got.ExpiresAt.IsZero() && (left < minLifetime || left > maxLifetime) {
			t.Fatalf("expires in %v", left)
		}
	})
}
