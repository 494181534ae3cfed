package llm_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFallbackInBudget: a call that goes on to another target needs no room for two, and what the first one may have done is
// counted with what the second one did.
func TestFallbackInBudget(t *testing.T) {
	prices := filepath.Join(t.TempDir(), "prices.json") // of ten tokens for one
	if err := os.WriteFile(prices, []byte(`{"currency":"EUR","as_of":"2026-11-01","models":[
		{"kind":"openai","model":"first","input":"100000","output":"100000"},
		{"kind":"openai","model":"second","input":"100000","output":"100000"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		first  func(w http.ResponseWriter)
		amount string
		tokens int64
		spent  json.Number
	}{
		{"a fault", func(w http.ResponseWriter) { reply(w, 500, `{}`) }, "11", 42, "4.2"},
		{"T07 a connection that breaks off", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "21", reservedOf + 42, "14.4"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
				if strings.Contains(string(body), `"first"`) {
					tc.first(w)
					return
				}
				reply(w, 200, whole)
			})
			g := newGateway(t, p.URL, object{"prices": "{file." + prices + "}", "alias": []any{
				object{"name": "small", "targets": []any{object{"provider": "up", "model": "first"}, object{"provider": "up", "model": "second"}}},
			}})
			g.limited()
			budget := g.make("/admin/budgets", object{"name": "b", "scope_type": "org", "period": "month", "amount": tc.amount})
			g.ask(asked).want(200)
			if requests, tokens := g.used(); requests != 1 || tokens != tc.tokens {
				t.Errorf("%d requests, %d tokens", requests, tokens)
			}
			var shown struct{ Spent json.Number }
			got := g.send(http.MethodGet, base+"/admin/budgets/"+budget["id"].(string), "").want(200)
			if err := json.Unmarshal([]byte(got.body), &shown); err != nil {
				t.Fatal(err)
			}
			if shown.Spent != tc.spent {
				t.Errorf("spent %s", shown.Spent)
			}
		})
	}
}
