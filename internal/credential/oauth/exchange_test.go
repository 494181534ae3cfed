package oauth

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/seal"
)

func exchangeToken(t *testing.T, f *fake, change func(*TokenExchangeRequest)) (Tokens, error) {
	t.Helper()
	r := TokenExchangeRequest{
		Endpoint: f.URL + "/token", Client: ClientAuth{ID: "id", Secret: seal.NewSecret("SECRET-CANARY"), Method: AuthPost},
		Subject: seal.NewSecret("SUBJECT-CANARY"), SubjectType: "access_token", RequestedType: "access_token",
	}
	if change != nil {
		change(&r)
	}
	return newClient().ExchangeToken(t.Context(), r)
}

// TestExchangeTokenRequest checks what is sent, and that nothing is sent empty.
func TestExchangeTokenRequest(t *testing.T) {
	f := newFake(t, map[string]reply{"POST /token": ok(`{"access_token":"a","token_type":"bearer","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","refresh_token":"r","id_token":"i","expires_in":60}`)})
	got, err := exchangeToken(t, f, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Access.Reveal() != "a" || !got.Refresh.Empty() || !got.IDToken.Empty() || !got.ExpiresAt.Equal(start.Add(time.Minute)) {
		t.Errorf("%+v, refresh %v, id %v", got, !got.Refresh.Empty(), !got.IDToken.Empty())
	}
	least := url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {"SUBJECT-CANARY"},
		"subject_token_type":   {"urn:ietf:params:oauth:token-type:access_token"},
		"requested_token_type": {"urn:ietf:params:oauth:token-type:access_token"}, "client_id": {"id"}, "client_secret": {"SECRET-CANARY"},
	}
	if diff := cmp.Diff(least, f.last(t).form); diff != "" {
		t.Error(diff)
	}
	if _, err := exchangeToken(t, f, func(r *TokenExchangeRequest) {
		r.SubjectType, r.RequestedType, r.Audience, r.Resource, r.Scope = "id_token", "jwt", "payroll", "https://payroll.example/mcp", "read write"
	}); err != nil {
		t.Fatal(err)
	}
	form := f.last(t).form
	for name, want := range map[string]string{
		"subject_token_type": "urn:ietf:params:oauth:token-type:id_token", "requested_token_type": "urn:ietf:params:oauth:token-type:jwt",
		"audience": "payroll", "resource": "https://payroll.example/mcp", "scope": "read write",
	} {
		if form.Get(name) != want {
			t.Errorf("%s is %q", name, form.Get(name))
		}
	}
}

// TestExchangeTokenAnswer judges answers to token exchanges: only bearer tokens in JSON are used.
func TestExchangeTokenAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		answer reply
		class  Class
		code   string
	}{
		"a jwt":                     {ok(`{"access_token":"a","token_type":"Bearer","issued_token_type":"urn:ietf:params:oauth:token-type:jwt"}`), Good, ""},
		"no issued_token_type":      {ok(`{"access_token":"a","token_type":"BEARER"}`), Good, ""},
		"no token_type":             {ok(`{"access_token":"a"}`), Refused, ""},
		"token_type N_A":            {ok(`{"access_token":"a","token_type":"N_A"}`), Refused, ""},
		"token_type DPoP":           {ok(`{"access_token":"a","token_type":"DPoP"}`), Refused, ""},
		"token_type user":           {ok(`{"access_token":"a","token_type":"user"}`), Refused, ""},
		"a refresh token":           {ok(`{"access_token":"a","token_type":"Bearer","issued_token_type":"urn:ietf:params:oauth:token-type:refresh_token"}`), Refused, ""},
		"issued_token_type a list":  {ok(`{"access_token":"a","token_type":"Bearer","issued_token_type":["x"]}`), Refused, ""},
		"a form":                    {ok(`access_token=a&token_type=bearer`), Refused, ""},
		"the token in another part": {ok(`{"token_type":"Bearer","authed_user":{"access_token":"a","token_type":"Bearer"}}`), Refused, ""},
		"a token twice":             {ok(`{"access_token":"a","access_token":"b","token_type":"Bearer"}`), Refused, ""},
		"too much":                  {ok(`{"access_token":"a","token_type":"Bearer","x":"` + strings.Repeat("x", maxBody) + `"}`), Refused, ""},
		"a redirect":                {reply{307, map[string]string{"Location": "/elsewhere"}, ``}, Refused, ""},
		"invalid_target":            {reply{400, nil, `{"error":"invalid_target"}`}, Refused, CodeInvalidTarget},
		"access_denied in a 200":    {ok(`{"error":"access_denied"}`), Refused, CodeAccessDenied},
		"the subject for a code":    {reply{400, nil, `{"error":"SUBJECT-CANARY"}`}, Refused, ""},
		"busy":                      {reply{503, nil, `{"error":"invalid_grant"}`}, Later, ""},
	} {
		f := newFake(t, map[string]reply{"POST /token": c.answer})
		got, err := exchangeToken(t, f, nil)
		if ClassOf(err) != c.class || Code(err) != c.code || (err == nil) == got.Access.Empty() {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error()+Description(err), "CANARY") {
			t.Errorf("A10 %s: %v shows a secret", name, err)
		}
	}
	f := newFake(t, map[string]reply{"POST /token": {400, nil, `{"error":"invalid_request","error_description":"you sent SUBJECT-CANARY and SECRET-CANARY"}`}})
	_, err := exchangeToken(t, f, nil)
	if said := Description(err); strings.Contains(said, "CANARY") || !strings.Contains(said, "you sent") {
		t.Errorf("A10 %q", said)
	}
	f.Close()
	if _, err := exchangeToken(t, f, nil); ClassOf(err) != Later || !errors.Is(err, ErrUnavailable) || strings.Contains(err.Error(), "CANARY") {
		t.Errorf("nobody there: %v", err)
	}
}
