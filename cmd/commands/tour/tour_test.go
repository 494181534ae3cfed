package tour

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestClaimsAreDescribedWithoutValues(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	payload := `{"sub":"0198f2c4-9a3b-7c11-8a2e-3f5d6b7c8d9e","iss":"http://127.0.0.1/dev/idp","aud":["a","b"],"exp":1700000900,"email":"alice@example.test"}`
	got, err := describeClaims("e30."+base64.RawURLEncoding.EncodeToString([]byte(payload))+".signature", now)
	if want := "aud (list of 2), email (text), exp (in 15m0s), iss (address), sub (uuid)"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, token := range []string{"", "opaque", "a.b", "a.!.c", "a.e30x.c"} {
		if got, err := describeClaims(token, now); err == nil {
			t.Errorf("%q: got %q, want an error", token, got)
		}
	}
}

func TestUnexpectedAnswers(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		{`{"error":"ServerNotFound","message":"There is no such server"}`, "the gateway answered 404 ServerNotFound: There is no such server"},
		{"", "the gateway answered 404 without a body"},
		{strings.Repeat("x", 500), "the gateway answered 404: " + strings.Repeat("x", 200) + "..."},
	} {
		if err := (answer{status: http.StatusNotFound, body: []byte(test.body)}).expect(http.StatusOK, nil); err == nil || err.Error() != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}

func TestRunStopsAtTheFirstFailure(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	var reported []Step
	err := Run(t.Context(), Options{Gateway: server.URL, Client: server.Client(), Now: time.Now, Report: func(s Step) { reported = append(reported, s) }})
	if !errors.Is(err, ErrFailed) || len(reported) != 1 {
		t.Fatalf("got %v after %+v", err, reported)
	}
	if s := reported[0]; s.OK || s.Name != "login" || s.Error == "" || !strings.Contains(s.Hint, "durward dev") || s.Detail == nil {
		t.Errorf("got %+v", s)
	}
}
