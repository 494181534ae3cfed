package integration

import (
	"net/http"
	"testing"
)

// TestClientsOfTheSameID checks that a client of the gateway is an agent of its own, although a client of the identity
// provider has the same id: neither is governed by the other's policies.
func TestClientsOfTheSameID(t *testing.T) {
	t.Parallel()
	a := newAsserting(t)
	boss := a.token(admin)
	register := func(issuer string) answer {
		return a.send(http.MethodPost, "/api/agents", boss, members{"application_directory": members{"external_id": "assistant", "issuer": issuer}})
	}
	for issuer, name := range map[string]string{a.identity.issuer(): "the identity provider's", a.url: "the gateway's"} {
		register(issuer).want(t, http.StatusOK)
		if got := register(issuer); got.status != http.StatusConflict {
			t.Errorf("%s client once more: %d %s", name, got.status, got.body)
		}
	}
	var page struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	a.send(http.MethodGet, "/api/agents?search=assistant", boss, nil).want(t, http.StatusOK).decode(t, &page)
	if len(page.Data) != 2 {
		t.Fatalf("the agents are %+v", page.Data)
	}
	all, no := members{"name": "all", "authorized": true}, members{"name": "no", "authorized": false}
	refused := make(map[[2]bool]int)
	for _, agent := range page.Data {
		s := a.ruled(all)
		a.api(boss, http.MethodPost, "/api/policy", members{"name": "Of " + agent.ID, "mcp_server_id": s.ID, "status": "ACTIVE", "application_ids": []string{agent.ID}, "rules": []any{no}})
		provider := a.mcp(a.token(alice.with(claims{"azp": "assistant", "client_id": "assistant"})), s, "", toolCall("echo"))
		own := a.mcp(a.loggedIn(a.assertion(alice, s, nil)), s, "", toolCall("echo"))
		if provider.status != http.StatusOK || own.status != http.StatusOK {
			t.Errorf("%d %s, %d %s", provider.status, provider.body, own.status, own.body)
		}
		refused[[2]bool{refusedTool(provider), refusedTool(own)}]++
	}
	if refused[[2]bool{true, false}] != 1 || refused[[2]bool{false, true}] != 1 {
		t.Errorf("the identity provider's and the gateway's client are refused like this: %v", refused)
	}
}
