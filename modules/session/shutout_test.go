package session_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/storage"
)

// TestShutOutBrowser checks that a browser's session is nobody's while its user may not come in, although nothing has ended it: they
// matched no provisioned user when it began.
func TestShutOutBrowser(t *testing.T) {
	g := newGateway(t)
	alice, cookie := g.user("alice@example.test")
	_, other := g.user("bob@example.test")
	held := g.hold(alice, "delete_issue", `{}`)
	form := url.Values{"form": {g.formOf(t, cookie, "/approvals/"+held.ID)}, "decision": {"approve"}}
	id := uuid.NewString()
	if err := g.core.Store.CreateProvisionedUser(t.Context(), storage.ProvisionedUser{
		ID: id, OrganizationID: organization, UserName: "Alice@example.test", Attributes: json.RawMessage(`{}`), CreatedAt: time.Now(), UpdatedAt: time.Now(),
	}, 10); err != nil {
		t.Fatal(err)
	}
	if got := g.get("/approvals", cookie); got.status != http.StatusSeeOther || !strings.HasPrefix(got.header.Get("Location"), "/login") {
		t.Errorf("got %d %s", got.status, got.header.Get("Location"))
	}
	g.post("/approvals/"+held.ID, cookie, form).page(t, http.StatusForbidden, "You are not logged in")
	if got := g.status(held.ID); got != storage.ApprovalPending {
		t.Errorf("the call is %s", got)
	}
	g.get("/approvals", other).page(t, http.StatusOK, "Nothing waits for you")
	if _, _, err := g.core.Store.UpdateProvisionedUser(t.Context(), organization, id, storage.MatchUserName, func(u *storage.ProvisionedUser) error {
		u.Active = true
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	g.get("/approvals", cookie).page(t, http.StatusOK, "delete_issue")
}
