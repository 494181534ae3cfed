package session_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/identity/websession"
	"github.com/durward-gateway/durward/storage"
)

// TestApprovalTellsOfItsTool checks that the deciding user sees the server's description of the tool, and that it is
// the server's.
func TestApprovalTellsOfItsTool(t *testing.T) {
	g := newGateway(t)
	alice, cookie := g.user("alice@example.test")
	observe := func(hash, definition string) {
		t.Helper()
		if _, err := g.core.Store.ObserveTools(t.Context(), organization, g.server.ID, []storage.ObservedTool{{
			Name: "delete_issue", Hash: strings.Repeat(hash, 64), Definition: json.RawMessage(definition),
		}}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	held := g.hold(alice, "delete_issue", `{}`)
	if a := g.get("/approvals/"+held.ID, cookie); strings.Contains(a.body, "The server says") {
		t.Errorf("nothing is known of the tool: %s", a.body)
	}
	observe("a", `{"annotations":{"destructiveHint":true,"idempotentHint":true,"openWorldHint":true},"description":"Deletes <b>it</b>\u202e, for good","name":"delete_issue","title":"Delete"}`)
	a := g.get("/approvals/"+held.ID, cookie)
	a.page(t, http.StatusOK, "The server says", "(Delete)", "Deletes &lt;b&gt;it&lt;/b&gt;⟨U+202E⟩, for good", "may change or destroy data", "safe to repeat", "reaches other systems")
	if strings.Contains(a.body, "differently") {
		t.Errorf("nothing has changed: %s", a.body)
	}
	observe("b", `{"description":"`+strings.Repeat("another ", 1000)+`","name":"delete_issue"}`)
	g.get("/approvals/"+held.ID, cookie).page(t, http.StatusOK, "Deletes &lt;b&gt;", "describes this tool differently")

	for tool, test := range map[string]struct{ members, want string }{
		"reads": {`"annotations":{"readOnlyHint":true},`, "only reads"}, "adds": {`"annotations":{"destructiveHint":false},`, "destroys nothing"},
		"says_nothing": {"", "does not say whether it destroys data"},
	} {
		if _, err := g.core.Store.ObserveTools(t.Context(), organization, g.server.ID, []storage.ObservedTool{{
			Name: tool, Hash: strings.Repeat("c", 64), Definition: json.RawMessage(`{` + test.members + `"name":"` + tool + `"}`),
		}}, time.Now()); err != nil {
			t.Fatal(err)
		}
		g.get("/approvals/"+g.hold(alice, tool, `{}`).ID, cookie).page(t, http.StatusOK, test.want)
	}
}

// TestLocalTime checks that times are in the zone that the identity provider names, and say which one they are in.
func TestLocalTime(t *testing.T) {
	g := newGateway(t)
	alice, cookie := g.user("alice@example.test")
	held := g.hold(alice, "delete_issue", `{}`)
	g.get("/approvals/"+held.ID, cookie).page(t, http.StatusOK, held.ExpiresAt.UTC().Format("15:04:05 UTC</time>"), held.ExpiresAt.UTC().Format(`datetime="2006-01-02T15:04:05Z"`))
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	there := g.session(websession.Session{OrganizationID: organization, UserID: alice, Issuer: g.issuer.URL, Client: client, Zone: "Asia/Tokyo"})
	g.get("/approvals/"+held.ID, there).page(t, http.StatusOK, held.ExpiresAt.In(tokyo).Format("15:04:05 JST</time>"), held.ExpiresAt.UTC().Format(`datetime="2006-01-02T15:04:05Z"`))
	g.get("/approvals", there).page(t, http.StatusOK, " JST</time>", "minutes left")

	for claim, want := range map[string]string{"Asia/Tokyo": "JST", "Local": "UTC", "../../etc/passwd": "UTC", strings.Repeat("A", 100): "UTC", "Nowhere/At_all": "UTC"} {
		b := g.begin(t, "/login?return=/approvals")
		g.issuer.Login(client, object{"nonce": b.query.Get("nonce"), "sub": "u-zone", "zoneinfo": claim})
		in := g.end(b, nil).cookies()["__Host-durward"]
		if in == nil {
			t.Fatal("no session")
		}
		session, ok := g.core.Logins.Browsers.Open(in.Value)
		if !ok || (session.Zone == "") == (want == "JST") {
			t.Errorf("%.50s: the session has the zone %q", claim, session.Zone)
		}
	}
}
