package integration

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// describedClient serves the metadata document of a client, and counts how often it is fetched.
func describedClient(t *testing.T, redirect string) (id string, fetched *atomic.Int64) {
	t.Helper()
	fetched = new(atomic.Int64)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fetched.Add(1)
		writeJSON(w, http.StatusOK, map[string]any{
			"client_id": "http://" + r.Host + r.URL.Path, "client_name": "Described", "redirect_uris": []string{redirect}, "token_endpoint_auth_method": "none",
			"grant_types": []string{"authorization_code", "refresh_token"},
		})
	}))
	t.Cleanup(site.Close)
	return site.URL + "/client.json", fetched
}

// TestClientsThatMayCome checks the words of oauth_clients: which clients may log users in, which may register, and what the
// metadata says of it. Those who may not are not asked for their documents.
func TestClientsThatMayCome(t *testing.T) {
	t.Parallel()
	const own = "oauth_client assistant {\n redirect_uri <landing>\n}\n"
	for _, tc := range []struct {
		name, words                          string
		registers, named, anybody, documents bool
	}{
		{"by default", "", true, true, true, true},
		{"known", "oauth_clients known", false, false, false, false},
		{"a host", "oauth_clients <host>", false, true, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			landing := newLanding(t) + "/back"
			id, fetched := describedClient(t, landing)
			other, otherFetched := describedClient(t, landing)
			u, err := url.Parse(id)
			if err != nil {
				t.Fatal(err)
			}
			option := strings.NewReplacer("<landing>", landing, "<host>", u.Host).Replace("authorization_server on {\n" + tc.words + "\n" + own + "}")
			d := devGateway(t, "", option)
			c := &oauthClient{t: t, gateway: d.url, redirect: landing, verifier: strings.Repeat("verifier-", 6)}

			status, got := c.post("/oauth/register", "application/json", `{"redirect_uris":["`+landing+`"],"token_endpoint_auth_method":"none"}`)
			if want := map[bool]int{true: http.StatusCreated, false: http.StatusNotFound}[tc.registers]; status != want {
				t.Errorf("registering: %d %v, want %d", status, got, want)
			}
			metadata := string(newPerson(t).visit(d.url+"/.well-known/oauth-authorization-server").want(t, http.StatusOK).body)
			if strings.Contains(metadata, "registration_endpoint") != tc.registers || strings.Contains(metadata, `"client_id_metadata_document_supported":true`) != tc.documents {
				t.Errorf("the metadata says %s", metadata)
			}
			for client, comes := range map[string]bool{"assistant": true, id: tc.named, other: tc.anybody} {
				c.id = client
				page := c.open(newPerson(t), "alice@example.test", map[string]string{"resource": ""})
				if asks := page.status == http.StatusOK && consentForm.Match(page.body); asks != comes || !comes && page.status != http.StatusBadRequest {
					t.Errorf("%s may come: %d %s, want %v", client, page.status, page.body, comes)
				}
			}
			if n, others := fetched.Load(), otherFetched.Load(); (n > 0) != tc.named || (others > 0) != tc.anybody {
				t.Errorf("the documents were fetched %d and %d times", n, others)
			}
		})
	}
}
