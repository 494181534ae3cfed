package oauthserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/identity/authserver"
)

func open(t *testing.T, dir string, now func() time.Time) *Server {
	t.Helper()
	s, err := Open(Config{
		Issuer: "http://127.0.0.1:1/as", StatePath: filepath.Join(dir, "state.json"), Now: now, Pick: `<button name="user" value="u">u</button>`, PickField: "user",
		Clients: []authserver.Client{PublicClient("public", ""), ConfidentialClient("machine", "", "machine-secret")},
		Subject: func(picked string) (string, error) { return picked, nil }, Scopes: func(s []string) ([]string, error) { return s, nil },
		AccessLifetime: time.Minute, TokenPrefix: "t_",
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func post(h http.Handler, contentType, body string) (int, map[string]any) {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var m map[string]any
	_ = json.Unmarshal(w.Body.Bytes(), &m)
	return w.Code, m
}

const form = "application/x-www-form-urlencoded"

func TestRegistrationsAreBounded(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	s := open(t, t.TempDir(), func() time.Time { return at })
	fill := func(st *state) error {
		for i := range maxClients {
			id := strconv.Itoa(i)
			st.Clients[id] = &authserver.Client{ID: id, Issued: at.Add(-time.Duration(i) * time.Hour)}
		}
		// The oldest is in use.
		id := strconv.Itoa(maxClients - 1)
		st.Grants["g"] = &Grant{ID: "g", ClientID: id, Expires: at.Add(time.Hour)}
		return nil
	}
	if err := s.state.Update(fill); err != nil {
		t.Fatal(err)
	}
	body := `{"redirect_uris":["https://a.test/cb"]}`
	if status, m := post(s.Register(), "application/json", body); status != 201 {
		t.Fatalf("%d %v", status, m)
	}
	clients := s.state.View().Clients
	if len(clients) != maxClients || clients[strconv.Itoa(maxClients-1)] == nil || clients[strconv.Itoa(maxClients-2)] != nil {
		t.Errorf("%d clients; the oldest unused one should have gone", len(clients))
	}
	err := s.state.Update(func(st *state) error {
		for id := range st.Clients {
			st.Grants[id] = &Grant{ID: id, ClientID: id, Expires: at.Add(time.Hour)}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if status, m := post(s.Register(), "application/json", body); status != 503 || m["error"] != "temporarily_unavailable" {
		t.Errorf("all in use: %d %v", status, m)
	}
	if status, _ := post(s.Register(), "text/plain", body); status != 400 {
		t.Errorf("H15 text/plain: %d", status)
	}
}

func TestPruneKeepsWithinBounds(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	st := newState()
	for i := range maxGrants + 2 {
		id := strconv.Itoa(i)
		st.Grants[id] = &Grant{ID: id, Expires: at.Add(time.Duration(i) * time.Second)}
		st.Access[id] = access{Grant: id, Expires: at.Add(time.Hour)}
	}
	dropped := st.prune(at) // number 0 has expired, 1 and 2 are the oldest
	if len(st.Grants) != maxGrants-1 || len(dropped) != 2 || dropped[0] != "1" || dropped[1] != "2" {
		t.Errorf("%d grants, dropped %v", len(st.Grants), dropped)
	}
	if _, ok := st.Access["1"]; ok {
		t.Error("the access token of a dropped grant is left")
	}
}

func TestCodesAreBounded(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	s := open(t, t.TempDir(), func() time.Time { return at })
	for range maxCodes {
		if _, err := s.newCode(authserver.Authorization{}, "u"); err != nil {
			t.Fatal(err)
		}
	}
	var refused *authserver.Error
	if _, err := s.newCode(authserver.Authorization{}, "u"); !errors.As(err, &refused) || refused.Code != "temporarily_unavailable" {
		t.Errorf("one code too many: %v", err)
	}
	at = at.Add(codeMemory)
	if _, err := s.newCode(authserver.Authorization{}, "u"); err != nil || len(s.codes) != 1 {
		t.Errorf("later: %v, %d codes", err, len(s.codes))
	}
}

func TestTicketsAreBoundedAndGoodOnce(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	k := newTickets(func() time.Time { return at })
	for i := range maxTickets {
		one := ticket{ID: strconv.Itoa(i), Expires: at.Add(time.Minute).Unix()}
		if !k.spend(one) || i == 0 && k.spend(one) {
			t.Fatalf("ticket %d", i)
		}
	}
	if k.spend(ticket{ID: "more", Expires: at.Add(time.Minute).Unix()}) {
		t.Error("a spent ticket would have to be forgotten for this one")
	}
	at = at.Add(time.Minute)
	if !k.spend(ticket{ID: "later", Expires: at.Add(time.Minute).Unix()}) {
		t.Error("expired tickets are not forgotten")
	}
}

// TestNothingIsIssuedThatIsNotStored checks that when the state cannot be written no token leaves, and none that was
// good is spent.
func TestNothingIsIssuedThatIsNotStored(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, time.Now)
	body := url.Values{"grant_type": {"client_credentials"}, "client_id": {"machine"}, "client_secret": {"machine-secret"}}.Encode()
	status, m := post(s.Token(), form, body)
	token, _ := m["access_token"].(string)
	if g, ok := s.Lookup(token); status != 200 || !ok || g.ClientID != "machine" || g.Subject != "" {
		t.Fatalf("%d %v", status, m)
	}
	g := Grant{ID: "g", ClientID: "public", Subject: "u"}
	answer, err := s.issue(g, g, true, "")
	if err != nil {
		t.Fatal(err)
	}
	refresh := url.Values{"grant_type": {"refresh_token"}, "client_id": {"public"}, "refresh_token": {answer["refresh_token"].(string)}}.Encode()
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	for _, b := range []string{body, refresh} {
		status, m = post(s.Token(), form, b)
		if description, _ := m["error_description"].(string); status != 500 || m["error"] != "server_error" || m["access_token"] != nil || strings.Contains(description, dir) {
			t.Errorf("%d %v", status, m)
		}
	}
	if err := os.Rename(dir+"-away", dir); err != nil {
		t.Fatal(err)
	}
	if status, m := post(s.Token(), form, refresh); status != 200 {
		t.Errorf("A12 the refresh token was spent by a failed refresh: %d %v", status, m)
	}
}

func TestOpenRefusesATornState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(path, []byte(`{"clients":{`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(Config{
		Issuer: "http://127.0.0.1:1", StatePath: path, AccessLifetime: time.Minute,
		Subject: func(string) (string, error) { return "", nil }, Scopes: func(s []string) ([]string, error) { return s, nil },
	})
	if err == nil {
		t.Error("a torn state was taken")
	}
}
