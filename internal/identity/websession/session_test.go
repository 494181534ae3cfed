package websession

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

const site = "https://gate.example.com"

// keys keep data keys in memory.
type keys []storage.DataKey

func (k *keys) DataKeys(context.Context) ([]storage.DataKey, error) { return *k, nil }
func (k *keys) AddDataKey(_ context.Context, key storage.DataKey) error {
	*k = append(*k, key)
	return nil
}

func keyring(t testing.TB) *seal.Keyring {
	t.Helper()
	master, err := seal.ParseMasterKey(seal.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	ring, err := seal.OpenKeyring(context.Background(), []seal.MasterKey{master}, new(keys), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// setup returns a sealer with a clock that the test moves.
func setup(t testing.TB) (*Sealer, *time.Time, *seal.Keyring) {
	t.Helper()
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	ring := keyring(t)
	return NewSealer(ring, site, func() time.Time { return now }), &now, ring
}

var alice = Session{OrganizationID: "org-1", UserID: "user-1", Issuer: "https://id.example.com", Client: "console"}

func TestSession(t *testing.T) {
	s, now, ring := setup(t)
	sealed, err := s.Start(alice)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := s.Open(sealed)
	want := alice
	want.ID, want.IssuedAt, want.ExpiresAt = got.ID, *now, now.Add(Lifetime)
	if diff := cmp.Diff(want, got); !ok || len(got.ID) < 26 || diff != "" {
		t.Errorf("%v %s", ok, diff)
	}
	if strings.Contains(sealed, "user-1") || strings.ContainsAny(sealed, "=;, \"") {
		t.Errorf("the cookie is %s", sealed)
	}
	if again, err := s.Start(alice); err != nil || again == sealed {
		t.Error("two sessions are one")
	} else if other, _ := s.Open(again); other.ID == got.ID {
		t.Error("two sessions have one id")
	}
	for name, other := range map[string]*Sealer{
		"at another site":     NewSealer(ring, "https://other.example.com", s.now),
		"under other keys":    NewSealer(keyring(t), site, s.now),
		"eight hours later":   NewSealer(ring, site, func() time.Time { return now.Add(Lifetime) }),
		"before it was begun": NewSealer(ring, site, func() time.Time { return now.Add(-2 * time.Minute) }),
	} {
		if _, ok := other.Open(sealed); ok {
			t.Errorf("a session is good %s", name)
		}
	}
	*now = now.Add(Lifetime - time.Second)
	if _, ok := s.Open(sealed); !ok {
		t.Error("it ends early")
	}
}

// TestNotASession checks that other values sealed with the gateway's keys, or sent by a browser, are no sessions.
func TestNotASession(t *testing.T) {
	s, _, ring := setup(t)
	good, err := s.Start(alice)
	if err != nil {
		t.Fatal(err)
	}
	session, _ := s.Open(good)
	content, err := json.Marshal(session)
	if err != nil {
		t.Fatal(err)
	}
	memo := s.SealMemo("durward-login", content)
	for name, text := range map[string]string{
		"nothing": "", "words": "admin", "JSON": `{"user":"user-1"}`, "a memo": memo, "a form's token": s.FormToken(session, "/logout"),
		"cut": good[:len(good)-1], "longer": good + "A", "with a line break": good[:9] + "\n" + good[9:],
		"sealed for something else": ring.Sealer("broker undo").Seal([]byte(`{"id":"x","org":"o","user":"u","exp":"2027-01-01T00:00:00Z"}`), []byte(site)),
		"an empty one":              ring.Sealer("browser session").Seal([]byte(`{}`), []byte(site)),
		"one that is no JSON":       ring.Sealer("browser session").Seal([]byte(`x`), []byte(site)),
		"one that lives too long":   ring.Sealer("browser session").Seal([]byte(`{"id":"x","org":"o","user":"u","iat":"2026-03-01T09:00:00Z","exp":"2027-01-01T00:00:00Z"}`), []byte(site)),
	} {
		if got, ok := s.Open(text); ok || got != (Session{}) {
			t.Errorf("%s is a session: %+v", name, got)
		}
	}
}

func TestForm(t *testing.T) {
	s, _, ring := setup(t)
	a, b := Session{ID: "A"}, Session{ID: "B"}
	token := s.FormToken(a, "/approvals/1")
	if !s.CheckForm(token, a, "/approvals/1") {
		t.Error("a form cannot be sent")
	}
	if s.CheckForm(token, b, "/approvals/1") || s.CheckForm(token, a, "/approvals/2") || s.CheckForm(token, a, "") || s.CheckForm("", a, "/approvals/1") {
		t.Error("a token is good for another session or form")
	}
	if NewSealer(ring, "https://other.example.com", nil).CheckForm(token, a, "/approvals/1") {
		t.Error("a token is good at another site")
	}
}

func TestMemo(t *testing.T) {
	s, _, _ := setup(t)
	sealed := s.SealMemo("login", []byte("x"))
	if got, ok := s.OpenMemo("login", sealed); !ok || string(got) != "x" {
		t.Errorf("%s, %v", got, ok)
	}
	for name, text := range map[string]string{"other": sealed, "login": ""} {
		if _, ok := s.OpenMemo(name, text); ok {
			t.Errorf("%q is good under %q", text, name)
		}
	}
}

func FuzzOpen(f *testing.F) {
	s, _, _ := setup(f)
	good, err := s.Start(alice)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add("")
	f.Add("AQAAAAE")
	f.Fuzz(func(t *testing.T, text string) {
		if _, ok := s.Open(text); ok && text != good {
			t.Fatal("a forged session")
		}
	})
}

// TestCookiesAtOnce sets more cookies of one kind than a browser keeps, over https and on this machine.
func TestCookiesAtOnce(t *testing.T) {
	for _, public := range []string{"https://gate.test", "http://127.0.0.1:8080"} {
		c := Cookies{PublicURL: public}
		jar := map[string]*http.Cookie{}
		for _, key := range []string{"a", "b", "c", "a", "d", "e"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, public, nil)
			for _, cookie := range jar {
				r.AddCookie(cookie)
			}
			r.AddCookie(&http.Cookie{Name: c.name(CookieSession), Value: "s"})
			w := httptest.NewRecorder()
			c.SetOne(w, r, CookieLogin, key, "for "+key, time.Minute)
			for _, set := range w.Result().Cookies() {
				if jar[set.Name] = set; set.MaxAge < 0 {
					delete(jar, set.Name)
				}
			}
			r = httptest.NewRequestWithContext(t.Context(), http.MethodGet, public, nil)
			for _, cookie := range jar {
				r.AddCookie(cookie)
			}
			if got := c.Value(r, NameOf(CookieLogin, key)); got != "for "+key || len(jar) > maxAtOnce || jar[c.name(CookieSession)] != nil {
				t.Errorf("%s: %q, of %v", key, got, jar)
			}
		}
		if len(jar) != maxAtOnce {
			t.Errorf("%s: %d are left", public, len(jar))
		}
	}
}
