package session_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/storage"
)

// lead makes a user whose last login named groups.
func (g *gateway) lead(email string, groups ...string) (id, cookie string) {
	g.t.Helper()
	id, cookie = g.user(email)
	if err := g.core.Store.PutSessionFacts(g.t.Context(), organization, id, storage.SessionFacts{Groups: groups, At: time.Now()}); err != nil {
		g.t.Fatal(err)
	}
	return id, cookie
}

// holdForeign holds a call of a user's on which leads decide.
func (g *gateway) holdForeign(user, tool, arguments string) storage.Approval {
	g.t.Helper()
	a, err := g.core.Approvals.Request(g.t.Context(), &approval.Call{
		OrganizationID: organization, UserID: user, Client: "some-agent", ServerID: g.server.ID, Tool: tool, PolicyID: uuid.NewString(), PolicyRevision: 1,
		Rule: "ask", Approvers: [][]string{{"group:leads"}}, Arguments: []byte(arguments), Channel: storage.ChannelOutOfBand,
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return a
}

// TestDecidingForLeads checks that leads see and decide on calls that wait for them, and that nobody else does, the caller
// least of all.
func TestDecidingForLeads(t *testing.T) {
	g := newGateway(t)
	alice, caller := g.lead("alice@example.test", "leads")
	bob, lead := g.lead("bob<i>@example.test", "leads")
	_, other := g.lead("carol@example.test", "sales")
	for says, want := range map[string]storage.ApprovalStatus{"approve": storage.ApprovalApproved, "deny": storage.ApprovalDenied} {
		held := g.holdForeign(alice, "delete_issue", `{"number":7,"why":"`+says+"\u202e"+`"}`)
		address := "/approvals/" + held.ID
		g.get("/approvals", caller).page(t, http.StatusOK, "It waits for somebody else who is group:leads")
		own := g.get(address, caller)
		own.page(t, http.StatusOK, "This call waits for somebody else", "you cannot decide on it yourself", "somebody else who is group:leads", "<bdi>&#34;number&#34;</bdi>: 7")
		if strings.Contains(own.body, "<button class=\"yes\"") || formField.MatchString(own.body) {
			t.Errorf("the caller has a form: %s", own.body)
		}
		g.get("/approvals", lead).page(t, http.StatusOK, "These calls of other people wait", "alice@example.test", "delete_issue", "Notes &lt;b&gt; (notes)")
		if got := g.get("/approvals", other); strings.Contains(got.body, held.ID) || !strings.Contains(got.body, "Nothing waits for you") {
			t.Errorf("it waits for somebody else: %s", got.body)
		}
		page := g.get(address, lead)
		page.page(t, http.StatusOK, "Approve this tool call?", "alice@example.test", "some-agent", "rule ask", "<bdi>&#34;number&#34;</bdi>: 7", "⟨U+202E⟩", held.ArgumentsDigest)
		g.get(address, other).page(t, http.StatusNotFound, "There is no such call", "log out and in again")

		form := page.form(t, says)
		g.post(address, other, form).page(t, http.StatusNotFound)
		stolen := url.Values{"form": {g.formOf(t, caller, address)}, "decision": {says}}
		g.post(address, caller, stolen).page(t, http.StatusForbidden, "You cannot decide on this call", "lets other people decide")
		if got := g.status(held.ID); got != storage.ApprovalPending {
			t.Fatalf("decided by nobody who may: %s", got)
		}
		if a := g.post(address, lead, form); a.status != http.StatusSeeOther || g.status(held.ID) != want {
			t.Errorf("%s: %d %s, %s", says, a.status, a.body, g.status(held.ID))
		}
		decided, err := g.core.Approvals.Approval(t.Context(), organization, held.ID)
		if err != nil || decided.DecidedBy != bob || decided.DecidedVia != storage.ChannelOutOfBand {
			t.Errorf("%+v, %v", decided, err)
		}
		g.get(address, lead).page(t, http.StatusOK, "You have ", "alice@example.test")
		g.get(address, caller).page(t, http.StatusOK, "This call was ", "by bob&lt;i&gt;@example.test")
	}
}

// TestLeadWhoLeft checks that a lead decides on nothing more once their login or a newer token does not name the group.
func TestLeadWhoLeft(t *testing.T) {
	g := newGateway(t)
	alice, _ := g.user("alice@example.test")
	bob, lead := g.lead("bob@example.test", "leads")
	held := g.holdForeign(alice, "delete_issue", `{}`)
	address := "/approvals/" + held.ID
	form := g.get(address, lead).form(t, "approve")
	if err := g.core.Store.PutSessionFacts(t.Context(), organization, bob, storage.SessionFacts{Groups: []string{"sales"}, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	g.get(address, lead).page(t, http.StatusNotFound)
	g.post(address, lead, form).page(t, http.StatusNotFound)
	if got := g.status(held.ID); got != storage.ApprovalPending {
		t.Errorf("it is %s", got)
	}
	if err := g.core.Store.PutSessionFacts(t.Context(), organization, bob, storage.SessionFacts{Groups: []string{"leads"}, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.core.Store.RevokeUser(t.Context(), organization, bob, time.Now()); err != nil {
		t.Fatal(err)
	}
	if a := g.post(address, lead, form); a.status != http.StatusForbidden || g.status(held.ID) != storage.ApprovalPending {
		t.Errorf("R: %d %s", a.status, g.status(held.ID))
	}
}

// formOf returns the token of a form that a user's page at an address would have.
func (g *gateway) formOf(t *testing.T, cookie, address string) string {
	t.Helper()
	session, ok := g.core.Logins.Browsers.Open(strings.TrimPrefix(cookie, "__Host-durward="))
	if !ok {
		t.Fatal("not a session")
	}
	return g.core.Logins.Browsers.FormToken(session, address)
}
