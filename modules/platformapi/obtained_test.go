package platformapi

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/storage"
)

// newKey returns a new private key in PEM.
func newKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// TestEntryObtained checks that the OAuth clients of an entry's servers cannot be turned to somebody else, and that nobody
// but the operator has the gateway's own identity used.
func TestEntryObtained(t *testing.T) {
	a := newAPI(t)
	entry := func(name, provider, requested string) string {
		body := object{"name": name, "provider": provider}
		if requested != "" {
			body["requested_token_type"] = requested
		}
		if requested == "jwt" {
			body["audience"] = "x"
		}
		return a.entry(a.adam, body)
	}
	itself, asserting, exchanging := entry("A", "client_credentials", ""), entry("B", "token_exchange", "id-jag"), entry("C", "token_exchange", "jwt")
	for want, puts := range map[string]map[string]object{
		"body.provider value_error": {
			itself: {"provider": "oauth2"}, asserting: {"provider": "client_credentials", "requested_token_type": "access_token"}, a.entry(a.adam, object{"name": "D"}): {"provider": "client_credentials"},
		},
		"body.requested_token_type value_error": {asserting: {"requested_token_type": "access_token", "audience": "x"}, exchanging: {"requested_token_type": "id-jag", "audience": ""}},
		"body.oauth.token_endpoint value_error": {asserting: {"oauth": object{"issuer": "https://as.example", "token_endpoint": "https://evil.example/t"}}},
		"body.assertion_file value_error":       {itself: {"assertion_file": "/etc/durward/master.key"}},
		"body.resource value_error":             {asserting: {"resource": "https://another.example/mcp"}},
	} {
		for id, body := range puts {
			a.do(a.adam, http.MethodPut, directoryURL+"/"+id, body).wantProblems(want)
		}
	}
	// The issuer is the upstream's own server here, which need not be an identity provider of the gateway's.
	got := a.do(a.adam, http.MethodPut, directoryURL+"/"+asserting, object{"oauth": object{"issuer": "https://as.example"}}).want(200)
	if got["requested_token_type"] != "id-jag" || got["audience"] != "" {
		t.Errorf("%v", got)
	}
	a.do(a.adam, http.MethodPost, directoryURL, object{"name": "W", "url": "https://w.example/mcp", "provider": "workload_identity", "assertion_file": "/etc/passwd"}).
		wantProblems("body.assertion_file value_error", "body.provider value_error")
	if _, shown := got["assertion_file"]; shown {
		t.Error("a path of the gateway's machine is shown")
	}
}

// TestClientKey checks that a client's key is sealed, never shown, and never taken for a secret.
func TestClientKey(t *testing.T) {
	a := newAPI(t)
	key := newKey(t)
	body := object{"name": "Bookings", "mcp_server_directory_id": a.entry(a.adam, object{"name": "B", "provider": "client_credentials"}), "client_id": "client-1234", "client_private_key": key}
	created := a.do(a.adam, http.MethodPost, "/api/servers?test=false", body)
	id, _ := created.want(200)["id"].(string)
	at := "/api/servers/" + id
	stored := func() string {
		t.Helper()
		s, err := a.core.Store.Server(t.Context(), a.adam.OrganizationID, id)
		if err != nil {
			t.Fatal(err)
		}
		if s.SealedClientSecret == nil {
			return string(s.Status) + " without a proof"
		}
		plain, err := a.core.Keyring.Open(s.SealedClientSecret, connection.ClientSecretAD(s.OrganizationID, s.ID))
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(plain), "\n")
		return string(s.Status) + " with " + first
	}
	wants := func(what, want string) {
		t.Helper()
		if got := stored(); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	wants("created", "active with private_key_jwt")
	inside := strings.Split(key, "\n")[1]
	for _, w := range []answer{
		created, a.do(a.adam, http.MethodGet, at, nil), a.do(a.adam, http.MethodPut, at, object{"client_private_key": newKey(t)}),
		a.do(a.adam, http.MethodPut, at, object{"client_private_key": key + key}), a.do(a.adam, http.MethodPut, at, object{"client_private_key": object{"x": key}}),
	} {
		if strings.Contains(w.body, inside) || strings.Contains(w.body, "PRIVATE KEY") {
			t.Errorf("shown: %s", w.body)
		}
	}
	for want, body := range map[string]object{
		"body.client_private_key value_error":        {"client_private_key": "CANARY"},
		"body.client_private_key string_type":        {"client_private_key": 1},
		"body.client_secret string_pattern_mismatch": {"client_secret": key},
	} {
		a.do(a.adam, http.MethodPut, at, body).wantProblems(want)
	}
	a.do(a.adam, http.MethodPut, at, object{"client_secret": clientSecretText, "client_private_key": key}).wantProblems("body.client_private_key value_error")
	wants("refused", "active with private_key_jwt")
	a.do(a.adam, http.MethodPut, at, object{"client_secret": clientSecretText}).want(200)
	wants("a secret", "active with "+clientSecretText)
	a.do(a.adam, http.MethodPut, at, object{"client_secret": clientSecretText + "2", "client_private_key": nil}).want(200)
	wants("a secret and no key", "active with "+clientSecretText+"2")
	a.do(a.adam, http.MethodPut, at, object{"client_private_key": key, "client_secret": nil}).want(200)
	wants("a key and no secret", "active with private_key_jwt")
	a.do(a.adam, http.MethodPut, at, object{"name": "Bookings 2"}).want(200)
	wants("neither", "active with private_key_jwt")
	a.do(a.adam, http.MethodPut, at, object{"client_private_key": nil}).want(200)
	wants("none", "pending without a proof")
	a.do(a.adam, http.MethodPut, at, object{"client_private_key": key}).want(200)

	// Another client has another proof: with the former one, an administrator would have it sent to a place of their own.
	a.do(a.adam, http.MethodPut, at, object{"client_id": "client-9999"}).want(200)
	wants("another client", "pending without a proof")
	a.do(a.adam, http.MethodPut, at, object{"client_id": "client-1234", "client_private_key": key}).want(200)
	wants("the former client", "active with private_key_jwt")

	for name, c := range map[string]struct{ entry, members object }{
		"body.client_private_key value_error": {object{"name": "O"}, object{"client_private_key": key}},
		"body.client_secret value_error":      {object{"name": "K", "provider": "client_credentials", "token_endpoint_auth_method": "private_key_jwt"}, object{"client_secret": clientSecretText}},
	} {
		server := object{"name": "Of " + c.entry["name"].(string), "mcp_server_directory_id": a.entry(a.adam, c.entry), "client_id": "client-1234"}
		made := a.do(a.adam, http.MethodPost, "/api/servers?test=false", server).want(200)["id"].(string)
		for member, value := range c.members {
			server[member] = value
		}
		server["name"] = "Another"
		a.do(a.adam, http.MethodPost, "/api/servers?test=false", server).wantProblems(name)
		a.do(a.adam, http.MethodPut, "/api/servers/"+made, c.members).wantProblems(name)
	}
	basic := a.do(a.adam, http.MethodPost, "/api/servers?test=false", object{
		"name": "Basic", "mcp_server_directory_id": a.entry(a.adam, object{"name": "Basic", "provider": "client_credentials", "token_endpoint_auth_method": "client_secret_basic"}),
	}).want(200)["id"].(string)
	a.do(a.adam, http.MethodPut, "/api/servers/"+basic, object{"client_id": "c", "client_private_key": key}).wantProblems("body.client_private_key value_error")
}

// TestClientAnew checks that a server which is out of order starts afresh with a client that is entered anew, also when only
// its proof is.
func TestClientAnew(t *testing.T) {
	a := newAPI(t)
	id := a.do(a.adam, http.MethodPost, "/api/servers?test=false", object{
		"name": "B", "mcp_server_directory_id": a.entry(a.adam, object{"name": "B", "provider": "client_credentials"}), "client_id": "client-1234", "client_secret": clientSecretText,
	}).want(200)["id"].(string)
	organization := a.adam.OrganizationID
	known := func() bool {
		_, err := a.core.Store.OAuthClient(t.Context(), organization, id)
		return err == nil
	}
	put := func(status storage.ServerStatus) {
		t.Helper()
		if !known() {
			if err := a.core.Store.PutOAuthClient(t.Context(), storage.OAuthClient{OrganizationID: organization, ServerID: id, ClientID: "client-1234", Kind: storage.ClientConfigured}, ""); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.core.Store.UpdateServer(t.Context(), organization, id, func(s *storage.Server) error { s.Status = status; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	put(storage.ServerActive)
	a.do(a.adam, http.MethodPut, "/api/servers/"+id, object{"client_secret": clientSecretText + "2"}).want(200)
	if !known() {
		t.Error("a new secret alone forgets where the client belongs")
	}
	put(storage.ServerError)
	if got := a.do(a.adam, http.MethodPut, "/api/servers/"+id, object{"client_secret": clientSecretText + "3"}).want(200); got["status"] != "active" || known() {
		t.Errorf("%v, known %v", got["status"], known())
	}
}
