package platformapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/storage"
)

const clientSecretText = "s3cret-canary-of-the-provider-Qz7x"

// known holds the members of an entry for which nothing needs to be discovered.
var known = object{
	"issuer": "https://id.tracker.example", "authorization_endpoint": "https://id.tracker.example/authorize",
	"token_endpoint": "https://id.tracker.example/token",
}

func TestServerShape(t *testing.T) {
	a := newAPI(t)
	entry := a.entry(a.adam, object{"scopes": []string{"read"}})
	created := a.do(a.adam, http.MethodPost, "/api/servers?test=false", object{
		"name": "My Tracker", "mcp_server_directory_id": strings.ToUpper(entry), "client_id": "client-1234", "client_secret": clientSecretText,
		"meta": object{"__proto__": object{"n": 1}}, "organization_id": uuid.NewString(), "unknown": 1,
	}).want(200)
	id := created["id"].(string)
	if parsed, err := uuid.Parse(id); err != nil || parsed.Version() != 7 {
		t.Errorf("id %s is not a uuid v7", id)
	}
	if diff := cmp.Diff(object{"id": id, "connection_id": nil, "auth_url": nil, "test": nil}, created); diff != "" {
		t.Error(diff)
	}
	want := object{
		"id": id, "name": "My Tracker", "slug": "my-tracker", "connection_status": "available", "provider": "Tracker",
		"url": "https://mcp.tracker.example/mcp", "status": "active", "mcp_server_directory_id": entry, "scopes": []any{"read"},
		"client_id": "cl...34", "proxy_url": publicURL + "/mcp/my-tracker", "organization_id": a.adam.OrganizationID,
		"meta": object{"__proto__": object{"n": 1.0}}, "created_at": "2026-03-01T12:00:00.000000Z", "updated_at": "2026-03-01T12:00:00.000000Z",
		"last_seen_at": nil, "last_error": nil,
	}
	for _, path := range []string{"/api/servers/" + id, "/api/servers/" + strings.ToUpper(id), "/api/servers/my-tracker", "/api/servers/by-slug/my-tracker"} {
		if diff := cmp.Diff(want, a.do(a.alice, http.MethodGet, path, nil).want(200)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	list := a.do(a.alice, http.MethodGet, "/api/servers", nil).want(200)
	if diff := cmp.Diff(object{"data": []any{want}, "pagination": object{
		"page": 1.0, "limit": 10.0, "total": 1.0, "pages": 1.0, "previous_page": nil, "next_page": nil,
	}}, list); diff != "" {
		t.Error(diff)
	}
	// L03: the secret is in no answer and no log, and readable in the store by its owner only.
	answers := []answer{
		a.do(a.adam, http.MethodPut, "/api/servers/"+id, object{"client_secret": clientSecretText + "2"}),
		a.do(a.adam, http.MethodPut, "/api/servers/"+id, object{"client_secret": object{"x": clientSecretText}, "name": 1}),
		a.do(a.adam, http.MethodPut, "/api/servers/"+id, `{"client_secret":"`+clientSecretText+`"`),
		a.do(a.adam, http.MethodPost, "/api/servers?test=false", object{"name": "My Tracker", "mcp_server_directory_id": entry, "client_secret": clientSecretText}),
		a.do(a.adam, http.MethodDelete, "/api/servers/"+id, nil),
	}
	for i, w := range answers {
		if strings.Contains(w.body, "canary") || strings.Contains(w.body, clientSecretText[len(clientSecretText)-4:]) {
			t.Errorf("L03 answer %d shows the secret: %s", i, w.body)
		}
	}
	if strings.Contains(a.log.String(), "canary") {
		t.Errorf("L03 the log shows the secret: %s", a.log)
	}
	if got := answers[len(answers)-1].want(200); got["id"] != id || got["slug"] != "my-tracker" {
		t.Errorf("last state: %v", got)
	}
	a.do(a.alice, http.MethodGet, "/api/servers/"+id, nil).wantError(404, gateway.ServerNotFound)
	a.do(a.adam, http.MethodDelete, "/api/servers/"+id, nil).wantError(404, gateway.ServerNotFound)
	// The custom entry went with its last server.
	a.do(a.adam, http.MethodGet, "/api/server-directory/"+entry, nil).wantError(404, gateway.DirectoryNotFound)
}

func TestClientSecretIsSealed(t *testing.T) {
	a := newAPI(t)
	id := a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	a.do(a.adam, http.MethodPut, "/api/servers/"+id, object{"client_id": "client-1234", "client_secret": clientSecretText}).want(200)
	s, err := a.store.Server(t.Context(), a.adam.OrganizationID, id)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := a.core.Keyring.Open(s.SealedClientSecret, connection.ClientSecretAD(a.adam.OrganizationID, id))
	if err != nil || string(plain) != clientSecretText {
		t.Errorf("%q, %v", plain, err)
	}
	if strings.Contains(string(s.SealedClientSecret), "canary") {
		t.Error("it is stored as it is")
	}
}

// B04: every member with a value of every wrong kind is a problem at its place, and all are told at once.
func TestServerFieldTypes(t *testing.T) {
	a := newAPI(t)
	entry := a.entry(a.adam, nil)
	id := a.server(a.adam, "Tracker", entry)
	values := map[string]string{
		"null": "null", "bool": "true", "integer": "1", "decimal": "1.0", "exponent": "1e2", "huge": "1e400", "string": `"1"`,
		"array": `["1"]`, "object": `{"a":1}`, "empty string": `""`,
	}
	type rule struct{ kind, good string }
	rules := map[string]rule{
		"name": {"string_type", "string"}, "slug": {"string_type", "string"}, "client_id": {"string_type", "string"},
		"client_secret": {"string_type", "string"}, "meta": {"dict_type", "object"}, "mcp_server_directory_id": {"string_type", ""},
	}
	for field, rule := range rules {
		for kind, value := range values {
			for _, method := range []string{http.MethodPost, http.MethodPut} {
				want := rule.kind
				creating := method == http.MethodPost
				switch {
				case kind == rule.good:
					continue
				case kind == "null" && creating && field != "name" && field != "mcp_server_directory_id":
					continue // as if it were not there
				case kind == "null" && !creating && (field == "client_id" || field == "client_secret"):
					continue // clears it
				case field == "mcp_server_directory_id" && !creating:
					continue // unknown there
				case field == "mcp_server_directory_id" && (kind == "string" || kind == "empty string"):
					want = "uuid_parsing"
				case kind == "empty string" && rule.kind == "string_type":
					want = "string_too_short"
				}
				t.Run(fmt.Sprintf("B04 %s %s %s", method, field, kind), func(t *testing.T) {
					a.t = t
					members := map[string]json.RawMessage{field: json.RawMessage(value)}
					path := "/api/servers/" + id
					if creating {
						path = "/api/servers"
						for name, value := range map[string]string{"name": "Other", "mcp_server_directory_id": entry} {
							if field != name {
								members[name] = json.RawMessage(`"` + value + `"`)
							}
						}
					}
					body, err := json.Marshal(members)
					if err != nil {
						t.Fatal(err)
					}
					a.do(a.adam, method, path, string(body)).wantProblems("body." + field + " " + want)
				})
			}
		}
	}
	a.t = t
	a.do(a.adam, http.MethodPost, "/api/servers?test=false", object{"name": 1, "slug": "A", "client_secret": "***", "meta": []int{}}).wantProblems(
		"body.name string_type", "body.mcp_server_directory_id missing", "body.slug string_pattern_mismatch", "body.client_secret value_error",
		"body.meta dict_type")
	if got := a.do(a.alice, http.MethodGet, "/api/servers", nil).want(200)["pagination"].(object)["total"]; got != 1.0 {
		t.Errorf("%v servers are stored", got)
	}
}

func TestBodies(t *testing.T) {
	a := newAPI(t)
	id := a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	deep := strings.Repeat(`[`, 65) + strings.Repeat(`]`, 65)
	for _, tt := range []struct{ name, body, want string }{
		{"B01 depth 65", `{"meta":` + deep + `}`, "body.71 json_invalid"},
		{"B01 depth 10001", `{"meta":` + strings.Repeat(`{"a":`, 10001), "body.323 json_invalid"},
		{"B02 other case", `{"NAME":"x","name":1}`, "body.name string_type"},
		{"B06 NUL in name", `{"name":"a\u0000b"}`, "body.name value_error"},
		{"B06 NUL in meta", `{"meta":{"a":"\u0000"}}`, "body.meta value_error"},
		{"B06 NUL in secret", `{"client_secret":"\u0000"}`, "body.client_secret value_error"},
		{"B10 trailing data", `{} x`, "body.3 json_invalid"},
		{"B10 two values", `{}{}`, "body.2 json_invalid"},
		{"B10 garbage first", `x{}`, "body.0 json_invalid"},
		{"B10 empty", ``, "body missing"},
		{"B10 null", `null`, "body dict_type"},
		{"B10 array", `[]`, "body dict_type"},
		{"B10 string", `""`, "body dict_type"},
		{"duplicate member", `{"name":"a","name":"b"}`, "body.12 json_invalid"},
		{"BOM", "\ufeff{}", "body.0 json_invalid"},
		{"B13 meta too large", `{"meta":{"a":"` + strings.Repeat("x", 64<<10) + `"}}`, "body.meta too_long"},
		{"H08 line break in name", `{"name":"a\r\nb"}`, "body.name value_error"},
		{"H08 line break in client_id", `{"client_id":"a\r\nb"}`, "body.client_id string_pattern_mismatch"},
		{"blank name", `{"name":"  "}`, "body.name value_error"},
		{"long name", `{"name":"` + strings.Repeat("é", 256) + `"}`, "body.name string_too_long"},
		{"B11 obfuscated secret", `{"client_secret":"********"}`, "body.client_secret value_error"},
		{"B11 obfuscated secret, dots", `{"client_secret":"ab...yz"}`, "body.client_secret value_error"},
		{"B11 obfuscated client of somebody else", `{"client_id":"ab...yz"}`, "body.client_id value_error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a.t = t
			a.do(a.adam, http.MethodPut, "/api/servers/"+id, tt.body).wantProblems(tt.want)
		})
	}
	for _, tt := range []struct {
		name, kind, coding string
	}{
		{"B09 none", "", ""}, {"B09 text", "text/plain", ""}, {"B09 charset", "application/json; charset=utf-16", ""},
		{"B09 multipart", "multipart/form-data; boundary=x", ""}, {"B09 form", "application/x-www-form-urlencoded", ""},
		{"B08 gzip", "application/json", "gzip"}, {"B08 br", "application/json", "br"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a.t = t
			r := httptest.NewRequest(http.MethodPut, publicURL+"/api/servers/"+id, strings.NewReader("{}"))
			if tt.kind != "" {
				r.Header.Set("Content-Type", tt.kind)
			}
			if tt.coding != "" {
				r.Header.Set("Content-Encoding", tt.coding)
			}
			a.send(a.adam, r).wantError(http.StatusUnsupportedMediaType, gateway.UnsupportedMediaType)
		})
	}
	t.Run("no body needs no type", func(t *testing.T) {
		a.t = t
		a.send(a.adam, httptest.NewRequest(http.MethodPut, publicURL+"/api/servers/"+id, http.NoBody)).wantProblems("body missing")
	})
	t.Run("B07 large", func(t *testing.T) {
		a.t = t
		w := a.do(a.adam, http.MethodPut, "/api/servers/not-a-uuid", `{"name":"`+strings.Repeat("x", 1<<20)+`"}`)
		w.wantError(http.StatusRequestEntityTooLarge, gateway.PayloadTooLarge)
		if w.header.Get("Connection") != "close" {
			t.Error("the connection stays open")
		}
	})
}

func TestSlugs(t *testing.T) {
	a := newAPI(t)
	entry := a.entry(a.adam, nil)
	create := func(name string, members object) answer {
		body := object{"name": name, "mcp_server_directory_id": entry}
		for k, v := range members {
			body[k] = v
		}
		return a.do(a.adam, http.MethodPost, "/api/servers?test=false", body)
	}
	slugOf := func(w answer) string {
		t.Helper()
		return a.do(a.adam, http.MethodGet, "/api/servers/"+w.want(200)["id"].(string), nil).want(200)["slug"].(string)
	}
	for _, slug := range []string{"A", "a_b", "a.b", "aé", "ａ", "а", "a\n", "a%0a", " a", "a\u200b", "\u212a"} {
		create("x", object{"slug": slug}).wantProblems("body.slug string_pattern_mismatch") // P03
	}
	create("x", object{"slug": strings.Repeat("a", 64)}).wantProblems("body.slug string_too_long")
	for _, slug := range []string{
		"by-slug", "admin", "api", "health", "healthz", "readyz", "metrics", "well-known", "dev", "console", "oauth",
		"0190b6c2-7f3a-7d3e-8f00-0123456789ab", "0190b6c27f3a7d3e8f000123456789ab",
	} {
		create("x", object{"slug": slug}).wantProblems("body.slug value_error") // P04
	}
	for name, want := range map[string]string{"  My   Server! ": "my-server", "---a---b": "a-b", "日本": "server", "Zoë's": "zos"} {
		if got := slugOf(create(name, nil)); got != want {
			t.Errorf("%q became %q, want %q", name, got, want)
		}
	}
	if got := slugOf(create("Admin", nil)); !strings.HasPrefix(got, "admin-") || len(got) != len("admin-")+8 {
		t.Errorf("a reserved word became %q", got)
	}
	if got := slugOf(create("My Server?", nil)); !strings.HasPrefix(got, "my-server-") || len(got) != len("my-server-")+8 {
		t.Errorf("a taken slug became %q", got)
	}
	if got := create("Another", object{"slug": "my-server"}).wantError(409, gateway.Conflict); got["details"].(object)["field"] != "slug" {
		t.Errorf("%v", got)
	}
	if got := create("MYserver!", nil).wantError(409, gateway.Conflict); got["details"].(object)["field"] != "name" {
		t.Errorf("%v", got)
	}
	// Another organization has its own names.
	theirs := a.entry(a.eve, nil)
	a.do(a.eve, http.MethodPost, "/api/servers?test=false", object{"name": "My Server!", "slug": "my-server", "mcp_server_directory_id": theirs}).want(200)
	// PUT
	id := create("Third", nil).want(200)["id"].(string)
	a.do(a.adam, http.MethodPut, "/api/servers/"+id, object{"slug": "my-server"}).wantError(409, gateway.Conflict)
	a.do(a.adam, http.MethodPut, "/api/servers/"+id, object{"slug": "oauth"}).wantProblems("body.slug value_error")
	if got := a.do(a.adam, http.MethodPut, "/api/servers/"+id, object{"slug": "new"}).want(200); got["slug"] != "new" || got["name"] != "Third" {
		t.Errorf("%v", got)
	}
	a.do(a.adam, http.MethodGet, "/api/servers/third", nil).wantError(404, gateway.ServerNotFound)
}

func TestLifecycle(t *testing.T) {
	a := newAPI(t)
	credentials := object{"client_id": "client-1234", "client_secret": clientSecretText}
	for i, tt := range []struct {
		name    string
		entry   object
		members object
		want    string
	}{
		{"an administrator must supply a client", nil, nil, "pending"},
		{"half a client", nil, object{"client_id": "client-1234"}, "pending"},
		{"other half", nil, object{"client_secret": clientSecretText}, "pending"},
		{"a client", nil, credentials, "active"},
		{"public", object{"public": true}, nil, "active"},
		{"registration", object{"oauth": object{"registration_endpoint": "https://id.tracker.example/register"}}, nil, "active"},
		{"api key", object{"provider": "api_key"}, nil, "active"},
		{"none", object{"provider": "none"}, nil, "active"},
		{"nothing required", object{"requires_auth": false}, nil, "active"},
		{"token exchange", object{"provider": "token_exchange", "audience": "a"}, nil, "pending"},
		{"token exchange, half a client", object{"provider": "token_exchange", "audience": "a"}, object{"client_id": "client-1234"}, "pending"},
		{"token exchange, a client", object{"provider": "token_exchange", "audience": "a"}, credentials, "active"},
		{"token exchange, a public client", object{"provider": "token_exchange", "audience": "a", "public": true}, object{"client_id": "client-1234"}, "active"},
		{"client credentials", object{"provider": "client_credentials"}, nil, "pending"},
		{"client credentials, half a client", object{"provider": "client_credentials"}, object{"client_id": "client-1234"}, "pending"},
		{"client credentials, a client", object{"provider": "client_credentials"}, credentials, "active"},
		{"client credentials, a client with a key", object{"provider": "client_credentials"}, object{"client_id": "client-1234", "client_private_key": newKey(t)}, "active"},
		{"identity assertion", object{"provider": "token_exchange", "requested_token_type": "id-jag"}, nil, "pending"},
		{"identity assertion, a client", object{"provider": "token_exchange", "requested_token_type": "id-jag"}, credentials, "active"},
		{"token exchange, a client without a secret", object{"provider": "token_exchange", "audience": "a", "token_endpoint_auth_method": "none"}, object{"client_id": "client-1234"}, "active"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a.t = t
			name := fmt.Sprintf("S%d", i)
			entry := object{"name": name}
			for k, v := range tt.entry {
				entry[k] = v
			}
			body := object{"name": name, "mcp_server_directory_id": a.entry(a.adam, entry)}
			for k, v := range tt.members {
				body[k] = v
			}
			id := a.do(a.adam, http.MethodPost, "/api/servers?test=false", body).want(200)["id"].(string)
			got := a.do(a.adam, http.MethodGet, "/api/servers/"+id, nil).want(200)
			if got["status"] != tt.want {
				t.Errorf("status %v", got["status"])
			}
			if tt.want == "pending" && got["connection_status"] != "pending" {
				t.Errorf("connection_status %v", got["connection_status"])
			}
		})
	}
}

func TestPutCredentials(t *testing.T) {
	a := newAPI(t)
	id := a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	organization := a.adam.OrganizationID
	put := func(body object) object {
		t.Helper()
		return a.do(a.adam, http.MethodPut, "/api/servers/"+id, body).want(200)
	}
	stored := func() storage.Server {
		t.Helper()
		s, err := a.store.Server(t.Context(), organization, id)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	putClient := func() {
		t.Helper()
		if err := a.store.PutOAuthClient(t.Context(), storage.OAuthClient{
			OrganizationID: organization, ServerID: id, ClientID: "client-1234", Kind: storage.ClientConfigured, CreatedAt: start,
		}, ""); err != nil {
			t.Fatal(err)
		}
	}
	hasClient := func() bool {
		t.Helper()
		_, err := a.store.OAuthClient(t.Context(), organization, id)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			t.Fatal(err)
		}
		return err == nil
	}
	if got := put(object{"client_id": "client-1234", "client_secret": clientSecretText}); got["status"] != "active" || got["client_id"] != "cl...34" {
		t.Errorf("%v", got)
	}
	putClient()
	first := stored().SealedClientSecret
	// The record as it was read, sent back: the obfuscated client_id changes nothing.
	back := a.do(a.adam, http.MethodGet, "/api/servers/"+id, nil).want(200)
	back["name"] = "Renamed"
	if got := put(back); got["client_id"] != "cl...34" || got["name"] != "Renamed" || stored().ClientID != "client-1234" || !hasClient() {
		t.Errorf("%v", got)
	}
	if !cmp.Equal(stored().SealedClientSecret, first) {
		t.Error("the secret changed")
	}
	// A secret that is replaced keeps the client that users' tokens were issued to.
	put(object{"client_secret": clientSecretText + "2"})
	if cmp.Equal(stored().SealedClientSecret, first) || !hasClient() {
		t.Error("the secret was not replaced, or the client was forgotten")
	}
	put(object{"client_id": "client-5678"})
	if hasClient() || stored().ClientID != "client-5678" {
		t.Error("the former client is still kept")
	}
	putClient()
	if got := put(object{"client_id": nil, "client_secret": nil}); got["status"] != "pending" || got["client_id"] != nil || hasClient() {
		t.Errorf("%v", got)
	}
	if s := stored(); s.ClientID != "" || s.SealedClientSecret != nil {
		t.Errorf("%+v", s)
	}
	put(object{"client_id": "short", "client_secret": clientSecretText})
	if got := put(object{"client_id": "****"}); got["client_id"] != "****" || stored().ClientID != "short" {
		t.Errorf("%v", got)
	}
	// New credentials lead out of error.
	breakDown := func() {
		t.Helper()
		if _, err := a.store.UpdateServer(t.Context(), organization, id, func(s *storage.Server) error {
			s.Status = storage.ServerError
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	breakDown()
	putClient()
	if got := put(object{"name": "Same error"}); got["status"] != "error" || !hasClient() {
		t.Errorf("%v", got)
	}
	if got := put(object{"client_id": "****", "client_secret": clientSecretText}); got["status"] != "active" || !hasClient() {
		t.Errorf("%v; users are connected with that client", got)
	}
	breakDown()
	if got := put(object{"client_id": "short", "client_secret": clientSecretText}); got["status"] != "active" || hasClient() {
		t.Errorf("%v", got)
	}
	// A server that registers its own clients waits for that again.
	id = a.server(a.adam, "Open", a.entry(a.adam, object{"name": "Open", "public": true}))
	if got := put(object{"client_id": nil, "client_secret": nil}); got["status"] != "active" {
		t.Errorf("nothing was cleared, yet %v", got["status"])
	}
}

func TestPutKeepsWhatIsAbsent(t *testing.T) {
	a := newAPI(t)
	id := a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	before := a.do(a.adam, http.MethodPut, "/api/servers/"+id, object{"meta": object{"a": 1}}).want(200)
	if diff := cmp.Diff(before, a.do(a.adam, http.MethodPut, "/api/servers/"+id, object{}).want(200)); diff != "" {
		t.Error(diff)
	}
	after := a.do(a.adam, http.MethodPut, "/api/servers/"+id, object{
		"id": uuid.NewString(), "organization_id": a.eve.OrganizationID, "status": "error", "created_at": "x", "mcp_server_directory_id": uuid.NewString(),
	}).want(200)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Error(diff)
	}
	a.do(a.adam, http.MethodPut, "/api/servers/"+uuid.NewString(), object{}).wantError(404, gateway.ServerNotFound)
}

func TestPages(t *testing.T) {
	a := newAPI(t)
	entry := a.entry(a.adam, nil)
	for i := range 12 {
		a.server(a.adam, fmt.Sprintf("Server %02d", i), entry)
	}
	for _, tt := range []struct {
		query                string
		items                int
		pages                float64
		previousPage, nextPg any
	}{
		{"", 10, 2, nil, 2.0}, {"?page=2", 2, 2, 1.0, nil}, {"?page=3", 0, 2, 2.0, nil}, {"?page=2147483647&limit=100", 0, 1, 1.0, nil},
		{"?limit=5&page=2", 5, 3, 1.0, 3.0}, {"?limit=1&page=12", 1, 12, 11.0, nil}, {"?unknown=1", 10, 2, nil, 2.0},
		{"?search=SERVER%200", 10, 1, nil, nil}, {"?search=server-1", 2, 1, nil, nil}, {"?search=nothing", 0, 0, nil, nil},
		{"?status=pending", 10, 2, nil, 2.0}, {"?status=active,error", 0, 0, nil, nil}, {"?status=active&status=pending", 10, 2, nil, 2.0},
		{"?connection_status=pending", 10, 2, nil, 2.0}, {"?connection_status=not_connected", 10, 2, nil, 2.0},
		{"?connection_status=connected,available", 0, 0, nil, nil}, {"?connection_status=connected,not_connected,pending", 10, 2, nil, 2.0},
	} {
		t.Run("list "+tt.query, func(t *testing.T) {
			a.t = t
			got := a.do(a.alice, http.MethodGet, "/api/servers"+tt.query, nil).want(200)
			p := got["pagination"].(object)
			if len(got["data"].([]any)) != tt.items || p["pages"] != tt.pages || p["previous_page"] != tt.previousPage || p["next_page"] != tt.nextPg {
				t.Errorf("%d items, %v", len(got["data"].([]any)), p)
			}
		})
	}
	for _, list := range []string{"/api/servers", "/api/server-directory"} {
		for query, want := range map[string]string{
			"page=0": "page greater_than_equal", "page=-1": "page greater_than_equal", "page=2147483648": "page less_than_equal",
			"page=9223372036854775808": "page less_than_equal", "page=1.5": "page int_parsing", "page=1e1": "page int_parsing",
			"page=%201": "page int_parsing", "page=01": "page int_parsing", "page=%2B1": "page int_parsing", "page=": "page int_parsing",
			"page=1&page=2": "page int_parsing", "limit=0": "limit greater_than_equal", "limit=101": "limit less_than_equal",
			"limit=-1": "limit greater_than_equal", "limit=99999999999999999999": "limit less_than_equal",
			"search=%00": "search value_error", "search=a&search=b": "search value_error",
		} {
			t.Run("G01 "+list+" "+query, func(t *testing.T) {
				a.t = t
				a.do(a.alice, http.MethodGet, list+"?"+query, nil).wantProblems("query." + want)
			})
		}
		for _, query := range []string{strings.Repeat("a=1&", 101) + "page=0", "a;b", "page=%zz", "search=%ff"} {
			t.Run("P06 "+query[:3], func(t *testing.T) {
				a.t = t
				r := httptest.NewRequest(http.MethodGet, publicURL+list, nil)
				r.URL.RawQuery = query
				a.send(a.alice, r).wantError(http.StatusBadRequest, gateway.BadRequest)
			})
		}
	}
	a.t = t
	a.do(a.alice, http.MethodGet, "/api/servers?status=x&connection_status=y,connected&page=0", nil).wantProblems(
		"query.page greater_than_equal", "query.status.0 enum", "query.connection_status.0 enum")
}

func TestConcurrentCreation(t *testing.T) {
	a := newAPI(t)
	entry := a.entry(a.adam, nil)
	const clients = 16
	statuses := make(chan int, clients)
	for range clients {
		go func() {
			r := httptest.NewRequest(http.MethodPost, publicURL+"/api/servers?test=false", strings.NewReader(`{"name":"Same","mcp_server_directory_id":"`+entry+`"}`))
			r.Header.Set("Content-Type", "application/json")
			statuses <- a.send(a.adam, r).status
		}()
	}
	made := 0
	for range clients {
		switch status := <-statuses; status {
		case http.StatusOK:
			made++
		case http.StatusConflict:
		default:
			t.Errorf("status %d", status)
		}
	}
	if made != 1 {
		t.Errorf("%d servers of one name", made)
	}
}
