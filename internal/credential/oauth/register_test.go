package oauth

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

const callback = "https://gw.example/api/oauth/callback"

func TestObtainClientOrder(t *testing.T) {
	f := newFake(t, map[string]reply{"POST /register": {201, nil, `{"client_id":"registered","token_endpoint_auth_method":"none"}`}})
	all := Discovery{ClientMetadata: true, AuthMethods: []string{"none", "client_secret_post"}}
	all.Endpoints.RegistrationEndpoint = f.URL + "/register"
	noDocument := all
	noDocument.ClientMetadata = false
	keyed := all
	keyed.AuthMethods = []string{"private_key_jwt", "client_secret_basic"}
	app := Application{Name: "durward", RedirectURI: callback, MetadataURL: "https://gw.example/oauth/client.json"}
	configured := app
	configured.ConfiguredID, configured.ConfiguredSecret = "configured", seal.NewSecret("s")
	public := app
	public.ConfiguredID = "public"
	dev := app
	dev.MetadataURL = "http://127.0.0.1:8080/oauth/client.json"
	for _, tc := range []struct {
		name   string
		d      Discovery
		app    Application
		id     string
		method string
		kind   storage.OAuthClientKind
		want   error
	}{
		{"configured comes first", all, configured, "configured", AuthPost, storage.ClientConfigured, nil},
		{"configured, both are listed", Discovery{AuthMethods: []string{"client_secret_basic", "client_secret_post"}}, configured, "configured", AuthPost, storage.ClientConfigured, nil},
		{"configured, only the header is listed", Discovery{AuthMethods: []string{"client_secret_basic"}}, configured, "configured", AuthBasic, storage.ClientConfigured, nil},
		{"configured, methods not listed", Discovery{}, configured, "configured", AuthBasic, storage.ClientConfigured, nil},
		{"configured without a secret", all, public, "public", AuthNone, storage.ClientConfigured, nil},
		{"configured, but the server takes only keys", Discovery{AuthMethods: []string{"private_key_jwt"}}, configured, "", "", "", ErrUnsupported},
		{"then the metadata document", all, app, app.MetadataURL, AuthNone, storage.ClientMetadata, nil},
		{"not over http", all, dev, "registered", AuthNone, storage.ClientRegistered, nil},
		{"not where it is not taken", noDocument, app, "registered", AuthNone, storage.ClientRegistered, nil},
		{"nothing is possible", Discovery{}, app, "", "", "", ErrUnsupported},
		{"a key is needed and the server names no other way", Discovery{ClientMetadata: true, AuthMethods: []string{"private_key_jwt"}}, app, "", "", "", ErrUnsupported},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := newClient().ObtainClient(t.Context(), tc.d, tc.app)
			if !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if got.ClientID != tc.id || got.AuthMethod != tc.method || got.Kind != tc.kind {
				t.Errorf("%+v", got)
			}
		})
	}
	if takesPublic(keyed.AuthMethods) {
		t.Error("a server that lists private_key_jwt and not none wants the key")
	}
}

func TestRegister(t *testing.T) {
	for _, tc := range []struct {
		name    string
		methods []string
		answer  reply
		asked   string
		id      string
		secret  string
		method  string
		want    error
		code    string
	}{
		{"public", []string{"client_secret_basic", "none"}, reply{201, nil, `{"client_id":"x"}`}, "none", "x", "", "none", nil, ""},
		{"confidential", []string{"client_secret_post"}, reply{200, nil, `{"client_id":"x","client_secret":"s"}`}, "client_secret_post", "x", "s", "client_secret_post", nil, ""},
		{"both: the body, where more servers look", []string{"client_secret_basic", "client_secret_post"}, reply{201, nil, `{"client_id":"x","client_secret":"s","client_secret_expires_at":null}`}, "client_secret_post", "x", "s", "client_secret_post", nil, ""},
		{"a secret where none was asked for", []string{"none"}, reply{201, nil, `{"client_id":"x","client_secret":"s","client_secret_expires_at":0,"token_endpoint_auth_method":"client_secret_post"}`}, "none", "x", "s", "client_secret_post", nil, ""},
		{"a secret without a method, as Supabase's", []string{"none", "client_secret_basic", "client_secret_post"}, reply{201, nil, `{"client_id":"x","client_secret":"s","client_secret_expires_at":0}`}, "none", "x", "s", "client_secret_post", nil, ""},
		{"a secret without a method, where none can be sent", []string{"none"}, reply{201, nil, `{"client_id":"x","client_secret":"s"}`}, "none", "x", "", "none", nil, ""},
		{"nothing listed means basic", nil, reply{201, nil, `{"client_id":"x","client_secret":"s"}`}, "client_secret_basic", "x", "s", "client_secret_basic", nil, ""},
		{"the server's method wins", []string{"none"}, reply{201, nil, `{"client_id":"x","client_secret":"s","token_endpoint_auth_method":"client_secret_basic"}`}, "none", "x", "s", "client_secret_basic", nil, ""},
		{"a secret for a public client is not kept", []string{"none"}, reply{201, nil, `{"client_id":"x","client_secret":"s","token_endpoint_auth_method":"none"}`}, "none", "x", "", "none", nil, ""},
		{"a method that is not spoken here", []string{"none"}, reply{201, nil, `{"client_id":"x","token_endpoint_auth_method":"tls_client_auth"}`}, "none", "", "", "", ErrUnsupported, ""},
		{"no secret", nil, reply{201, nil, `{"client_id":"x"}`}, "client_secret_basic", "", "", "", ErrMalformed, ""},
		{"no id", nil, reply{201, nil, `{"client_secret":"s"}`}, "client_secret_basic", "", "", "", ErrMalformed, ""},
		{"id with a line break", []string{"none"}, reply{201, nil, `{"client_id":"x\n"}`}, "none", "", "", "", ErrMalformed, ""},
		{"other redirect_uris", []string{"none"}, reply{201, nil, `{"client_id":"x","redirect_uris":["https://evil.example"]}`}, "none", "", "", "", ErrMismatch, ""},
		{"refused", []string{"none"}, reply{400, nil, `{"error":"invalid_redirect_uri"}`}, "none", "", "", "", nil, "invalid_redirect_uri"},
		{"closed", []string{"none"}, reply{403, map[string]string{"Content-Type": "text/plain"}, `no`}, "none", "", "", "", ErrMalformed, ""},
		{"down", []string{"none"}, reply{502, nil, ``}, "none", "", "", "", ErrUnavailable, ""},
		{"A09 307", []string{"none"}, reply{307, map[string]string{"Location": "/x"}, ``}, "none", "", "", "", ErrMalformed, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake(t, map[string]reply{"POST /register": tc.answer})
			d := Discovery{AuthMethods: tc.methods}
			d.Endpoints.RegistrationEndpoint = f.URL + "/register"
			got, err := newClient().ObtainClient(t.Context(), d, Application{Name: "durward", RedirectURI: callback})
			if tc.code != "" && Code(err) != tc.code || tc.code == "" && !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if got.ClientID != tc.id || got.Secret.Reveal() != tc.secret || got.AuthMethod != tc.method {
				t.Errorf("%q %q %q", got.ClientID, got.Secret.Reveal(), got.AuthMethod)
			}
			var sent map[string]any
			if err := json.Unmarshal([]byte(f.last(t).body), &sent); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{
				"client_name": "durward", "redirect_uris": []any{callback}, "grant_types": []any{"authorization_code", "refresh_token"},
				"response_types": []any{"code"}, "token_endpoint_auth_method": tc.asked, "application_type": "web",
			}
			if diff := cmp.Diff(want, sent); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestClientDocument(t *testing.T) {
	b, err := ClientDocument(Application{Name: "durward", RedirectURI: callback, MetadataURL: "https://gw.example/oauth/client.json"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"client_id":"https://gw.example/oauth/client.json","client_name":"durward","redirect_uris":["` + callback + `"],` +
		`"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none","application_type":"web"}`
	if string(b) != want {
		t.Errorf("got %s\nwant %s", b, want)
	}
}
