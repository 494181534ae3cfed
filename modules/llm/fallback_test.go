package llm_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// prices returns a table in which ten tokens of these models cost one.
func prices(t *testing.T, models ...string) string {
	t.Helper()
	list := []object{}
	for _, model := range models {
		list = append(list, object{"kind": "openai", "model": model, "input": "100000", "output": "100000"})
	}
	table, err := json.Marshal(object{"currency": "EUR", "as_of": "2026-11-01", "models": list})
	path := filepath.Join(t.TempDir(), "prices.json")
	if err != nil || os.WriteFile(path, table, 0o600) != nil {
		t.Fatal(path, err)
	}
	return "{file." + path + "}"
}

// TestFallbackInBudget checks that a call that goes on to another target needs no room for two, and what the first one
// may have done is counted with what the second one did.
func TestFallbackInBudget(t *testing.T) {
	for _, tc := range []struct {
		name   string
		first  func(w http.ResponseWriter)
		amount string
		tokens int64
	}{
		{"a fault", func(w http.ResponseWriter) { reply(w, 500, `{}`) }, "11", 42},
		{"T07 a connection that breaks off", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "21", guessed + promptOf + 42},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
				if strings.Contains(string(body), `"first"`) {
					tc.first(w)
					return
				}
				reply(w, 200, whole)
			})
			g := newGateway(t, p.URL, object{"prices": prices(t, "first", "second"), "alias": []any{
				object{"name": "small", "targets": []any{object{"provider": "up", "model": "first"}, object{"provider": "up", "model": "second"}}},
			}})
			g.limited()
			budget := g.make("/admin/budgets", object{"name": "b", "scope_type": "org", "period": "month", "amount": tc.amount})
			g.ask(asked).want(200)
			requests, tokens := g.used()
			if requests != 1 || !charged(tokens, tc.tokens) {
				t.Errorf("%d requests, %d tokens", requests, tokens)
			}
			var shown struct{ Spent json.Number }
			got := g.send(http.MethodGet, base+"/admin/budgets/"+budget["id"].(string), "").want(200)
			if err := json.Unmarshal([]byte(got.body), &shown); err != nil {
				t.Fatal(err)
			}
			if want := json.Number(strconv.FormatFloat(float64(tokens)/10, 'f', -1, 64)); shown.Spent != want { // each tried target for itself
				t.Errorf("spent %s, want %s", shown.Spent, want)
			}
		})
	}
}
