package platformapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/storage"
)

const directoryURL = "/api/server-directory"

func TestEntryShape(t *testing.T) {
	a := newAPI(t)
	created := a.do(a.adam, http.MethodPost, directoryURL, object{
		"name": "My Tracker", "url": "https://mcp.tracker.example/mcp", "organization_id": a.eve.OrganizationID, "source": "catalogue", "unknown": 1,
	}).want(200)
	id := created["id"].(string)
	want := object{
		"id": id, "name": "My Tracker", "description": "", "icon": "", "slug": "my-tracker", "organization_id": a.adam.OrganizationID,
		"url": "https://mcp.tracker.example/mcp", "protocol": "mcp", "source": "custom", "provider": "oauth2",
		"auth_params": object{"in": "header", "name": "Authorization", "prefix": "Bearer"}, "scopes": []any{},
		"oauth": object{
			"issuer": "", "authorization_endpoint": "", "token_endpoint": "", "registration_endpoint": "", "revocation_endpoint": "", "resource": "",
		},
		"public": false, "requires_auth": true, "categories": []any{}, "events_url": "", "meta": object{},
		"resource": "auto", "token_endpoint_auth_method": "auto", "authorization_params": object{}, "refresh_scope": false, "independent_tokens": false, "trusted_ca": "",
		"audience": "", "requested_token_type": "access_token", "subject_token_type": "auto",
		"created_at": "2026-03-01T12:00:00.000000Z", "updated_at": "2026-03-01T12:00:00.000000Z",
	}
	if diff := cmp.Diff(want, created); diff != "" {
		t.Error(diff)
	}
	for _, got := range []object{
		a.do(a.alice, http.MethodGet, directoryURL+"/"+id, nil).want(200),
		a.do(a.alice, http.MethodGet, directoryURL+"?search=TRACK", nil).want(200)["data"].([]any)[0].(object),
		a.do(a.adam, http.MethodPut, directoryURL+"/"+id, object{}).want(200),
		a.do(a.adam, http.MethodPut, directoryURL+"/"+id, want).want(200), // as it was read, sent back
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	a.do(a.adam, http.MethodDelete, directoryURL+"/"+id, nil).want(204)
	a.do(a.adam, http.MethodDelete, directoryURL+"/"+id, nil).wantError(404, gateway.DirectoryNotFound)
}

// TestEntryOptions checks that resource stands in two places that never contradict each other, and every option can be
// taken back.
func TestEntryOptions(t *testing.T) {
	a := newAPI(t)
	id := a.entry(a.adam, nil)
	put := func(body object) object {
		t.Helper()
		return a.do(a.adam, http.MethodPut, directoryURL+"/"+id, body).want(200)
	}
	for _, tc := range []struct {
		body          object
		resource, uri string
	}{
		{object{"resource": "off"}, "off", ""},
		{object{"name": "Renamed"}, "off", ""},
		{object{"resource": "urn:a"}, "urn:a", "urn:a"},
		{object{"name": "Again"}, "urn:a", "urn:a"},
		{object{"oauth": object{"resource": "urn:b"}}, "urn:b", "urn:b"},
		{object{"resource": "auto"}, "auto", ""},
		{object{"resource": "auto", "oauth": object{"resource": "urn:c"}}, "urn:c", "urn:c"},
	} {
		got := put(tc.body)
		if got["resource"] != tc.resource || got["oauth"].(object)["resource"] != tc.uri {
			t.Errorf("%v: resource %v, oauth %v", tc.body, got["resource"], got["oauth"])
		}
	}
	if got := put(object{"independent_tokens": true}); got["independent_tokens"] != true {
		t.Errorf("%v", got)
	}
	if got := put(object{"independent_tokens": false}); got["independent_tokens"] != false {
		t.Errorf("%v", got)
	}
	got := put(object{"token_endpoint_auth_method": "none", "refresh_scope": true, "authorization_params": object{"prompt": "consent"}})
	if got["token_endpoint_auth_method"] != "none" || got["refresh_scope"] != true || !cmp.Equal(got["authorization_params"], object{"prompt": "consent"}) {
		t.Errorf("%v", got)
	}
	got = put(object{"name": "Once more"})
	if got["refresh_scope"] != true {
		t.Errorf("%v", got)
	}
	got = put(object{"token_endpoint_auth_method": "auto", "refresh_scope": false, "authorization_params": object{}})
	if got["token_endpoint_auth_method"] != "auto" || got["refresh_scope"] != false || !cmp.Equal(got["authorization_params"], object{}) {
		t.Errorf("%v", got)
	}
	a.do(a.adam, http.MethodPut, directoryURL+"/"+id, object{
		"resource": "x y", "token_endpoint_auth_method": "private_key_jwt", "authorization_params": object{"State": "x", "a": "\n", "b": 1}, "refresh_scope": "sometimes", "trusted_ca": "{file./etc/passwd}",
	}).wantProblems("body.authorization_params.b string_type", "body.refresh_scope bool_type", "body.oauth.resource value_error", "body.token_endpoint_auth_method enum",
		"body.authorization_params.State value_error", "body.authorization_params.a value_error", "body.trusted_ca value_error")
	a.do(a.adam, http.MethodPut, directoryURL+"/"+id, object{"resource": "urn:d", "oauth": object{"resource": "urn:e"}}).wantProblems("body.resource value_error")
}

// TestEntryExchange makes an entry for a token exchange, and checks that an administrator can let nobody but the identity
// provider have the proof of a user.
func TestEntryExchange(t *testing.T) {
	a := newAPI(t)
	exchange := func(more object) object {
		body := object{"name": "Payroll", "url": "https://payroll.example/mcp", "provider": "token_exchange", "audience": "payroll"}
		for name, value := range more {
			body[name] = value
		}
		return body
	}
	created := a.do(a.adam, http.MethodPost, directoryURL, exchange(object{"subject_token_type": "id_token", "requested_token_type": "jwt"})).want(200)
	if created["audience"] != "payroll" || created["subject_token_type"] != "id_token" || created["requested_token_type"] != "jwt" || created["requires_auth"] != true {
		t.Errorf("%v", created)
	}
	at := directoryURL + "/" + created["id"].(string)
	if again := a.do(a.adam, http.MethodPut, at, created).want(200); !cmp.Equal(created, again) { // as it was read, sent back
		t.Error(cmp.Diff(created, again))
	}
	for want, change := range map[string]object{
		"body.oauth.issuer value_error":                 {"oauth": object{"issuer": "https://stranger.example"}},
		"body.oauth.token_endpoint value_error":         {"oauth": object{"token_endpoint": "https://stranger.example/token"}},
		"body.oauth.authorization_endpoint value_error": {"oauth": object{"authorization_endpoint": "https://id.example.test/a"}},
		"body.audience value_error":                     {"audience": ""},
		"body.requested_token_type enum":                {"requested_token_type": "id_token"},
		"body.subject_token_type enum":                  {"subject_token_type": "saml2"},
		"body.refresh_scope value_error":                {"refresh_scope": true},
		"body.auth_params.in value_error":               {"auth_params": object{"in": "query", "name": "x"}},
	} {
		a.do(a.adam, http.MethodPut, at, change).wantProblems(want)
		a.do(a.adam, http.MethodPost, directoryURL, exchange(change)).wantProblems(want)
	}
	a.do(a.adam, http.MethodPut, at, object{"provider": "oauth2", "audience": "", "subject_token_type": "auto", "requested_token_type": "access_token"}).wantProblems("body.provider value_error")
	other := a.entry(a.adam, nil)
	a.do(a.adam, http.MethodPut, directoryURL+"/"+other, object{"provider": "token_exchange", "audience": "x"}).wantProblems("body.provider value_error")
	a.do(a.adam, http.MethodPut, directoryURL+"/"+other, object{"audience": "x"}).wantProblems("body.audience value_error")

	// A server that waits for its client needs no secret any more.
	server := a.do(a.adam, http.MethodPost, "/api/servers?test=false", object{"name": "P", "mcp_server_directory_id": created["id"], "client_id": "gateway"}).want(200)["id"].(string)
	status := func(want string) {
		t.Helper()
		if got := a.do(a.adam, http.MethodGet, "/api/servers/"+server, nil).want(200); got["status"] != want {
			t.Errorf("status %v, want %s", got["status"], want)
		}
	}
	status("pending")
	a.do(a.adam, http.MethodPut, at, object{"name": "Payroll 2"}).want(200)
	status("pending")
	a.do(a.adam, http.MethodPut, at, object{"public": true}).want(200)
	status("active")
	if got := a.do(a.alice, http.MethodGet, "/api/servers/"+server+"/connection", nil).want(200); got["status"] != "connected" {
		t.Errorf("the connection is %v", got)
	}
	if got := a.do(a.alice, http.MethodPost, "/api/servers/"+server+"/connect", object{}).want(200); got["auth_url"] != nil {
		t.Errorf("connecting leads to %v", got)
	}
}

func TestEntryDefaultsFollow(t *testing.T) {
	a := newAPI(t)
	id := a.entry(a.adam, object{"protocol": "sse"})
	put := func(body object) object {
		t.Helper()
		return a.do(a.adam, http.MethodPut, directoryURL+"/"+id, body).want(200)
	}
	if got := put(object{"url": "https://other.example/sse"}); got["events_url"] != "https://other.example/sse" {
		t.Errorf("events_url %v", got["events_url"])
	}
	if got := put(object{"provider": "api_key"}); !cmp.Equal(got["auth_params"], object{"in": "header", "name": "X-API-Key", "prefix": ""}) {
		t.Errorf("auth_params %v", got["auth_params"])
	}
	if got := put(object{"provider": "none"}); got["requires_auth"] != false || !cmp.Equal(got["auth_params"], object{"in": "", "name": "", "prefix": ""}) {
		t.Errorf("%v", got)
	}
	if got := put(object{"auth_params": object{"in": "query", "name": "key"}, "provider": "api_key"}); got["requires_auth"] != true ||
		!cmp.Equal(got["auth_params"], object{"in": "query", "name": "key", "prefix": ""}) {
		t.Errorf("%v", got)
	}
	if got := put(object{"name": "Renamed"}); got["slug"] != "tracker" || got["provider"] != "api_key" {
		t.Errorf("%v", got)
	}
}

func TestReadOnlyEntries(t *testing.T) {
	a := newAPI(t)
	entries, err := directory.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.store.SyncDirectory(t.Context(), storage.SourceCatalogue, entries, start); err != nil {
		t.Fatal(err)
	}
	id := entries[0].ID
	for _, who := range []*authn.Caller{a.alice, a.eve} {
		got := a.do(who, http.MethodGet, directoryURL+"/"+id, nil).want(200)
		if got["organization_id"] != nil || got["source"] != "catalogue" {
			t.Errorf("%v", got)
		}
		list := a.do(who, http.MethodGet, directoryURL+"?limit=100", nil).want(200)
		if total := list["pagination"].(object)["total"]; total != float64(len(entries)) {
			t.Errorf("%v entries", total)
		}
	}
	a.do(a.adam, http.MethodPut, directoryURL+"/"+id, object{"name": "x"}).wantError(403, gateway.Forbidden)
	a.do(a.adam, http.MethodPut, directoryURL+"/"+id, object{"name": 1}).wantProblems("body.name string_type")
	a.do(a.adam, http.MethodDelete, directoryURL+"/"+id, nil).wantError(403, gateway.Forbidden)
	// Their slugs are taken.
	got := a.do(a.adam, http.MethodPost, directoryURL, object{"name": "x", "url": "https://x.example/", "slug": entries[0].Slug})
	got.wantError(409, gateway.Conflict)
}

func TestEntryConflicts(t *testing.T) {
	a := newAPI(t)
	id := a.entry(a.adam, nil)
	if got := a.do(a.adam, http.MethodGet, directoryURL+"/"+a.entry(a.adam, nil), nil).want(200); !strings.HasPrefix(got["slug"].(string), "tracker-") {
		t.Errorf("an automatic slug that is taken became %v", got["slug"])
	}
	if got := a.do(a.adam, http.MethodGet, directoryURL+"/"+a.entry(a.adam, object{"name": "Admin"}), nil).want(200); !strings.HasPrefix(got["slug"].(string), "admin-") {
		t.Errorf("a reserved slug became %v", got["slug"])
	}
	w := a.do(a.adam, http.MethodPost, directoryURL, object{"name": "x", "url": "https://x.example/", "slug": "tracker"})
	if got := w.wantError(409, gateway.Conflict); got["details"].(object)["field"] != "slug" {
		t.Errorf("%v", got)
	}
	server := a.server(a.adam, "Tracker", id)
	if got := a.do(a.adam, http.MethodDelete, directoryURL+"/"+id, nil).wantError(409, gateway.Conflict); got["details"].(object)["field"] != "server" {
		t.Errorf("%v", got)
	}
	a.do(a.adam, http.MethodDelete, "/api/servers/"+server, nil).want(200)
	a.do(a.adam, http.MethodDelete, directoryURL+"/"+id, nil).wantError(404, gateway.DirectoryNotFound)
	a.do(a.adam, http.MethodPut, directoryURL+"/"+id, object{"description": "x"}).wantError(404, gateway.DirectoryNotFound)
}

func TestEntryFieldTypes(t *testing.T) {
	a := newAPI(t)
	id := a.entry(a.adam, nil)
	values := map[string]string{
		"null": "null", "bool": "true", "integer": "1", "decimal": "1.0", "exponent": "1e2", "string": `"1"`, "array": `["1"]`, "object": `{"a":1}`,
	}
	kinds := map[string][2]string{ // the kind of value that is right, the problem of the others
		"name": {"string", "string_type"}, "url": {"string", "string_type"}, "description": {"string", "string_type"}, "icon": {"string", "string_type"},
		"slug": {"string", "string_type"}, "events_url": {"string", "string_type"}, "protocol": {"string", "string_type"}, "provider": {"string", "string_type"},
		"auth_params": {"object", "dict_type"}, "oauth": {"object", "dict_type"}, "meta": {"object", "dict_type"},
		"scopes": {"array", "list_type"}, "categories": {"array", "list_type"}, "public": {"bool", "bool_type"}, "requires_auth": {"bool", "bool_type"},
	}
	for field, kind := range kinds {
		for name, value := range values {
			if name == kind[0] {
				continue
			}
			t.Run(fmt.Sprintf("B04 %s %s", field, name), func(t *testing.T) {
				a.t = t
				a.do(a.adam, http.MethodPut, directoryURL+"/"+id, `{"`+field+`":`+value+`}`).wantProblems("body." + field + " " + kind[1])
			})
		}
	}
	a.t = t
	a.do(a.adam, http.MethodPost, directoryURL, object{}).wantProblems("body.name missing", "body.url missing")
	a.do(a.adam, http.MethodPost, directoryURL, object{
		"name": "a\nb", "url": "ftp://x.example", "protocol": "x", "provider": "y", "scopes": []any{"a b", 1}, "oauth": object{"issuer": 1, "token_endpoint": "http://x.example"},
	}).wantProblems("body.protocol enum", "body.provider enum", "body.oauth.issuer string_type", "body.scopes.1 string_type",
		"body.name value_error", "body.oauth.token_endpoint value_error", "body.oauth value_error", "body.url value_error")
	for _, name := range []string{"Host", "Cookie", "Content-Type", "Mcp-Session-Id", "Connection", "a b", "X\r\nY"} {
		a.do(a.adam, http.MethodPut, directoryURL+"/"+id, object{"auth_params": object{"in": "header", "name": name}}).wantProblems("body.auth_params.name value_error")
	}
	a.do(a.adam, http.MethodPut, directoryURL+"/"+id, object{"requires_auth": true, "provider": "none"}).wantProblems("body.requires_auth value_error")
	a.do(a.adam, http.MethodGet, directoryURL+"/"+uuid.NewString(), nil).wantError(404, gateway.DirectoryNotFound)
}

func TestEntryAddresses(t *testing.T) {
	a := newAPI(t)
	hosts := []string{
		"169.254.169.254", "100.100.100.200", "192.0.0.192", "[fd00:ec2::254]", "metadata.google.internal", // S01
		"127.0.0.1", "[::1]", "0.0.0.0", "0", "127.1", "0177.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "[::]", "localhost.", // S02
		"10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "198.18.0.1", "240.0.0.1", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fec0::1]",
		"[fc00::1]", "[fe80::1%25eth0]", "user@mcp.example", "", // S03
	}
	for _, host := range hosts {
		t.Run("S01 S02 S03 "+host, func(t *testing.T) {
			a.t = t
			address := "https://" + host + "/mcp"
			a.do(a.adam, http.MethodPost, directoryURL, object{"name": "x", "url": address}).wantProblems("body.url value_error")
			a.do(a.adam, http.MethodPost, directoryURL, object{
				"name": "x", "url": "https://mcp.tracker.example/", "events_url": address, "oauth": object{"token_endpoint": address},
			}).wantProblems("body.events_url value_error", "body.oauth.token_endpoint value_error", "body.oauth value_error")
		})
	}
	a.t = t
	for _, address := range []string{"http://mcp.tracker.example/", "file:///etc/passwd", "gopher://x.example/", "mcp.tracker.example", "https://x.example/#f", "javascript:alert(1)"} {
		a.do(a.adam, http.MethodPost, directoryURL, object{"name": "x", "url": address}).wantProblems("body.url value_error")
	}
	if got := a.do(a.adam, http.MethodGet, directoryURL, nil).want(200)["pagination"].(object)["total"]; got != 0.0 {
		t.Errorf("%v entries are stored", got)
	}
}

func TestServersFollowTheirEntry(t *testing.T) {
	a := newAPI(t)
	entry := a.entry(a.adam, nil)
	server, other := a.server(a.adam, "Tracker", entry), a.server(a.adam, "Other", a.entry(a.adam, nil))
	status := func(id string) any { return a.do(a.adam, http.MethodGet, "/api/servers/"+id, nil).want(200)["status"] }
	a.do(a.adam, http.MethodPut, directoryURL+"/"+entry, object{"description": "x"}).want(200)
	if status(server) != "pending" {
		t.Error("it needs a client still")
	}
	a.do(a.adam, http.MethodPut, directoryURL+"/"+entry, object{"provider": "api_key"}).want(200)
	if status(server) != "active" || status(other) != "pending" {
		t.Errorf("%v, %v", status(server), status(other))
	}
}

// Two administrators who change an entry at the same time do not undo each other's change without a word.
func TestConcurrentEntryChanges(t *testing.T) {
	a := newAPI(t)
	id := a.entry(a.adam, nil)
	a.store.beforeEntryUpdate = func() {
		a.store.beforeEntryUpdate = nil
		if _, err := a.store.UpdateDirectoryEntry(t.Context(), a.adam.OrganizationID, id, func(e *storage.DirectoryEntry) error {
			e.Description, e.UpdatedAt = "theirs", start.Add(time.Second)
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
	a.do(a.adam, http.MethodPut, directoryURL+"/"+id, object{"icon": "https://x.example/i"}).wantError(409, gateway.Conflict)
	if got := a.do(a.adam, http.MethodPut, directoryURL+"/"+id, object{"icon": "ours"}).want(200); got["description"] != "theirs" || got["icon"] != "ours" {
		t.Errorf("%v", got)
	}
}
