package oauthserver

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
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

var grants = []string{authserver.GrantCode, authserver.GrantRefresh}

func open(t *testing.T, dir string, now func() time.Time) *Server {
	t.Helper()
	s, err := Open(Config{
		Issuer: "http://127.0.0.1:1/as", StatePath: filepath.Join(dir, "state.json"), Now: now, Pick: `<button name="user" value="u">u</button>`, PickField: "user",
		Clients: []authserver.Client{
			{ID: "public", AuthMethod: authserver.AuthNone, GrantTypes: grants},
			{ID: "confidential", AuthMethod: authserver.AuthBasic, SecretHash: authserver.HashSecret("secret"), GrantTypes: grants},
		},
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

// TestCodesAreBounded checks that nobody is refused when there are many logins: redeemed codes are forgotten first, then the
// oldest one.
func TestCodesAreBounded(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	s := open(t, t.TempDir(), func() time.Time { return at })
	challenge := sha256.Sum256([]byte(strings.Repeat("v", 43)))
	request := authserver.Authorization{ClientID: "public", RedirectURI: "http://127.0.0.1/cb", Challenge: base64.RawURLEncoding.EncodeToString(challenge[:])}
	redeem := func(code, client string) (int, map[string]any) {
		return post(s.Token(), form, url.Values{
			"grant_type": {"authorization_code"}, "client_id": {client}, "code": {code}, "redirect_uri": {request.RedirectURI}, "code_verifier": {strings.Repeat("v", 43)},
		}.Encode())
	}
	var codes []string
	for range maxCodes {
		codes = append(codes, s.newCode(request, "u"))
		at = at.Add(time.Millisecond)
	}
	if status, m := redeem(codes[500], "public"); status != 200 {
		t.Fatalf("%d %v", status, m)
	}
	codes = append(codes, s.newCode(request, "u"))
	if status, m := redeem(codes[0], "public"); status != 200 {
		t.Errorf("the oldest code, with a redeemed one to forget: %d %v", status, m)
	}
	at = at.Add(time.Millisecond)
	for range 2 { // code 0 is redeemed by now, and goes before code 1
		codes = append(codes, s.newCode(request, "u"))
	}
	if status, m := redeem(codes[1], "public"); status != 400 || m["error"] != "invalid_grant" {
		t.Errorf("the oldest code, with too many: %d %v", status, m)
	}
	if status, m := redeem(codes[2], "public"); status != 200 || len(s.codes) != maxCodes {
		t.Errorf("the next one: %d %v, %d codes", status, m, len(s.codes))
	}
	at = at.Add(codeMemory)
	if s.newCode(request, "u"); len(s.codes) != 1 {
		t.Errorf("later: %d codes", len(s.codes))
	}
}

// TestCodesOfOthers checks that a code and a refresh token are of no use to another client.
func TestCodesOfOthers(t *testing.T) {
	s := open(t, t.TempDir(), time.Now)
	challenge := sha256.Sum256([]byte(strings.Repeat("v", 43)))
	code := s.newCode(authserver.Authorization{ClientID: "public", Challenge: base64.RawURLEncoding.EncodeToString(challenge[:])}, "u")
	other := url.Values{"client_id": {"confidential"}, "client_secret": {"secret"}, "grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {strings.Repeat("v", 43)}}
	if status, m := post(s.Token(), form, other.Encode()); status != 400 || m["error"] != "invalid_grant" {
		t.Errorf("a code: %d %v", status, m)
	}
	g := Grant{ID: "g", ClientID: "public", Subject: "u"}
	answer, err := s.issue(g, g, true, "")
	if err != nil {
		t.Fatal(err)
	}
	other = url.Values{"client_id": {"confidential"}, "client_secret": {"secret"}, "grant_type": {"refresh_token"}, "refresh_token": {answer["refresh_token"].(string)}}
	if status, m := post(s.Token(), form, other.Encode()); status != 400 || m["error"] != "invalid_grant" {
		t.Errorf("a refresh token: %d %v", status, m)
	}
}

// TestTicketsAreBoundedAndGoodOnce checks that nobody is refused when many forms were sent, but those whose page was
// opened before the ones that are forgotten.
func TestTicketsAreBoundedAndGoodOnce(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	k := newTickets(func() time.Time { return at })
	issue := func(id string) ticket {
		at = at.Add(time.Millisecond)
		return ticket{ID: id, Expires: at.Add(ticketLifetime).UnixNano()}
	}
	early := issue("early")
	first := issue("first")
	if !k.spend(first) || k.spend(first) {
		t.Fatal("a ticket is not good once")
	}
	for i := range maxTickets - 1 {
		if !k.spend(issue(strconv.Itoa(i))) {
			t.Fatalf("ticket %d", i)
		}
	}
	if !k.spend(issue("more")) || len(k.used) != maxTickets {
		t.Errorf("one more ticket is refused, or %d are kept", len(k.used))
	}
	if k.spend(first) || k.spend(early) {
		t.Error("a ticket that may have been spent is good")
	}
	at = at.Add(ticketLifetime)
	if !k.spend(issue("later")) || len(k.used) != 1 {
		t.Errorf("%d expired tickets are kept", len(k.used))
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
	g := Grant{ID: "g", ClientID: "public", Subject: "u"}
	answer, err := s.issue(g, g, true, "")
	if err != nil {
		t.Fatal(err)
	}
	if found, ok := s.Lookup(answer["access_token"].(string)); !ok || found.ClientID != "public" || found.Subject != "u" {
		t.Fatalf("%v %v", answer, found)
	}
	challenge := sha256.Sum256([]byte(strings.Repeat("v", 43)))
	code := s.newCode(authserver.Authorization{ClientID: "public", Challenge: base64.RawURLEncoding.EncodeToString(challenge[:])}, "u")
	redeem := url.Values{"grant_type": {"authorization_code"}, "client_id": {"public"}, "code": {code}, "code_verifier": {strings.Repeat("v", 43)}}.Encode()
	refresh := url.Values{"grant_type": {"refresh_token"}, "client_id": {"public"}, "refresh_token": {answer["refresh_token"].(string)}}.Encode()
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	for _, b := range []string{redeem, refresh} {
		status, m := post(s.Token(), form, b)
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
