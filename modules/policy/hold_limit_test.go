package policy_test

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"testing"

	_ "github.com/durward-gateway/durward/modules/gatewayapi"
	_ "github.com/durward-gateway/durward/modules/limit"
)

// TestHoldLimited checks that a held call counts once, when it goes on; one that has no room by then is answered on its
// stream.
func TestHoldLimited(t *testing.T) {
	g := newPipeline(t)
	g.config = bytes.Replace(g.config, []byte(`{"handler":"durward_limit","off":true}`), []byte(`{"handler":"durward_limit"},{"handler":"durward_gateway"}`), 1)
	g.load()
	session := g.session(alice, inBandAgent, "2025-06-18", formCapability)
	const limits = "/api/llm-gateway/admin/rate-limits"
	made := g.api(console, http.MethodPost, limits, object{"name": "All", "scope_type": "org", "requests_per_minute": 2})
	counted := func(want int) {
		t.Helper()
		response := g.do(t.Context(), alice, console, http.MethodGet, limits+"/status", nil)
		defer response.Body.Close()
		var text bytes.Buffer
		if _, err := text.ReadFrom(response.Body); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), `"rpm_used":`+strconv.Itoa(want)+`,`) {
			t.Errorf("want %v used: %s", want, text.String())
		}
	}
	s := g.stream(alice, inBandAgent, toolCall(7, "delete", `{"id":1}`), session...)
	id := s.asked()
	counted(0)
	g.replyTo(alice, inBandAgent, id, yes, session...)
	if text, failed := toolText(s.next()); failed || !strings.HasPrefix(text, "done") {
		t.Errorf("%q, %v", text, failed)
	}
	counted(1)
	s = g.stream(alice, inBandAgent, toolCall(8, "delete", `{"id":2}`), session...)
	id = s.asked()
	// The room is gone by the time that the user has decided, at the page.
	if status, answer := g.rpc(alice, inBandAgent, toolCall(9, "list", `{}`), session...); status != http.StatusOK {
		t.Fatal(status, answer)
	}
	counted(2)
	pending := g.approvals("pending")
	if len(pending) != 1 {
		t.Fatal(pending)
	}
	g.calls()
	if status := g.replyTo(alice, inBandAgent, id, yes, session...); status != http.StatusTooManyRequests {
		t.Errorf("a full limit lets a message through: %d", status)
	}
	g.api(console, http.MethodPost, "/api/approvals/"+pending[0]["id"].(string)+"/approve", object{})
	refused, _ := s.next()["error"].(object)
	if refused["code"] != -31429.0 {
		t.Errorf("%v", refused)
	}
	if got := g.calls(); len(got) != 0 {
		t.Errorf("the upstream got %v", got)
	}
	counted(2)
	g.api(console, http.MethodDelete, limits+"/"+made["id"].(string), nil)
}
