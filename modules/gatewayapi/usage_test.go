package gatewayapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/storage"
)

func TestUsage(t *testing.T) {
	a := newAPI(t)
	key := uuid.NewString()
	used := func(who *authn.Caller, hours int, alias string, tokens int64) storage.Usage {
		return storage.Usage{
			OrganizationID: who.OrganizationID, Hour: start.Add(-time.Duration(hours) * time.Hour), UserID: who.UserID, APIKeyID: key, Alias: alias, Model: "m",
			UsageCounts: storage.UsageCounts{Requests: 1, InputTokens: tokens, OutputTokens: 1, Cost: 1_500_000_000},
		}
	}
	batch := storage.UsageBatch{Node: "n", Number: 1, Usage: []storage.Usage{
		used(a.adam, 1, "small", 10), used(a.adam, 2, "large", 20), used(a.alice, 30, "small", 40), used(a.adam, 24*40, "small", 80), used(a.eve, 1, "small", 1000),
	}}
	if _, err := a.store.AddUsage(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	a.do(a.adam, http.MethodGet, "/admin/usage", nil).wantBody(`{"from":"2026-01-30T12:00:00.000000Z","to":"2026-03-01T12:00:00.000000Z","group_by":[],` +
		`"data":[{"requests":3,"input_tokens":70,"output_tokens":3,"cached_tokens":0,"cost":4.5}]}`)
	a.do(a.adam, http.MethodGet, "/admin/usage?group_by=model_alias,day&from=2026-02-28T00:00:00Z&to=2026-03-01T12:00:00Z", nil).wantBody(
		`{"from":"2026-02-28T00:00:00.000000Z","to":"2026-03-01T12:00:00.000000Z","group_by":["model_alias","day"],"data":[` +
			`{"day":"2026-02-28","model_alias":"small","requests":1,"input_tokens":40,"output_tokens":1,"cached_tokens":0,"cost":1.5},` +
			`{"day":"2026-03-01","model_alias":"large","requests":1,"input_tokens":20,"output_tokens":1,"cached_tokens":0,"cost":1.5},` +
			`{"day":"2026-03-01","model_alias":"small","requests":1,"input_tokens":10,"output_tokens":1,"cached_tokens":0,"cost":1.5}]}`)
	got := a.do(a.adam, http.MethodGet, "/admin/usage?group_by=hour&group_by=user&group_by=agent&group_by=api_key&group_by=model&user_id="+a.alice.UserID, nil).want(200)["data"].([]any)
	if len(got) != 1 {
		t.Fatalf("%v", got)
	}
	if row := got[0].(object); row["hour"] != "2026-02-28T06:00:00.000000Z" || row["user_id"] != a.alice.UserID || row["agent_id"] != "" || row["api_key_id"] != key || row["model"] != "m" || row["model_alias"] != nil {
		t.Errorf("%v", row)
	}
	over := func(query string) (all []string) {
		t.Helper()
		for _, row := range a.do(a.adam, http.MethodGet, "/admin/usage?"+query, nil).want(200)["data"].([]any) {
			at, _ := row.(object)["day"].(string)
			if hour, ok := row.(object)["hour"].(string); ok {
				at = hour[:13]
			}
			all = append(all, fmt.Sprint(at, " ", row.(object)["requests"]))
		}
		return all
	}
	for query, want := range map[string][]string{
		"bucket=day&from=2026-02-27T00:00:00Z":                          {"2026-02-27 0", "2026-02-28 1", "2026-03-01 2"},
		"bucket=day&from=2026-02-27T23:30:00Z":                          {"2026-02-28 1", "2026-03-01 2"},
		"bucket=hour&from=2026-03-01T08:59:00Z":                         {"2026-03-01T09 0", "2026-03-01T10 1", "2026-03-01T11 1"},
		"bucket=hour&from=2026-03-01T13:00:00Z&to=2026-03-01T13:00:00Z": nil,
		"bucket=day&group_by=model_alias&from=2026-02-27T00:00:00Z":     {"2026-02-28 1", "2026-03-01 1", "2026-03-01 1"},
	} {
		if diff := cmp.Diff(want, over(query)); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	for query, want := range map[string]string{
		"bucket=week":                             "bucket: Input should be one of",
		"bucket=day&group_by=hour":                "bucket: Value error, bucket and a time",
		"bucket=hour&from=2025-12-01T00:00:00Z":   "from: Value error, the span is too long",
		"group_by=planet":                         "group_by[0]: Input should be one of",
		"group_by=hour,day":                       "group_by: Value error, hour and day",
		"from=yesterday":                          "from: Value error",
		"from=2027-01-01T00:00:00Z":               "to: Value error, to is before from",
		"from=2020-01-01T00:00:00Z":               "from: Value error, the span is too long",
		"user_id=x":                               "user_id: Input should be a valid UUID",
		"model_alias=" + strings.Repeat("a", 300): "model_alias: String should have at most",
		"group_by=hour&from=2025-12-01T00:00:00Z": "from: Value error, the span is too long",
	} {
		a.do(a.adam, http.MethodGet, "/admin/usage?"+query, nil).wantBad(want)
	}
	a.do(a.adam, http.MethodGet, "/admin/usage?from=%zz", nil).wantBad("The query cannot be read")
}

// TestUsageTable checks that usage is a table for those who ask for one, in which no name is a formula.
func TestUsageTable(t *testing.T) {
	a := newAPI(t)
	if _, err := a.store.AddUsage(t.Context(), storage.UsageBatch{Node: "n", Number: 1, Usage: []storage.Usage{{
		OrganizationID: a.adam.OrganizationID, Hour: start.Add(-time.Hour), UserID: a.alice.UserID, Alias: `=cmd|"x", y`, Model: "m",
		UsageCounts: storage.UsageCounts{Requests: 1, InputTokens: 2, OutputTokens: 3, CachedTokens: 4, Cost: 1_500_000_000},
	}}}); err != nil {
		t.Fatal(err)
	}
	const query = "/admin/usage?group_by=hour,user,agent,api_key,model_alias,model"
	w := a.do(a.adam, http.MethodGet, query, nil, "Accept", "text/csv")
	w.wantBody("hour,user_id,agent_id,api_key_id,model_alias,model,requests,input_tokens,output_tokens,cached_tokens,cost\n" +
		"2026-03-01T11:00:00Z," + a.alice.UserID + `,,,"'=cmd|""x"", y",m,1,2,3,4,1.5` + "\n")
	for accept, table := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/csv": true, "application/json, text/csv": false, "text/csv;q=0.9, application/json;q=0.8": true,
		"text/csv;q=0": false, "TEXT/CSV; header=present": true, "text/csv;q=x": false, "a b, text/csv": true,
	} {
		w := a.do(a.adam, http.MethodGet, query, nil, "Accept", accept)
		if got := strings.HasPrefix(w.body, "hour,"); got != table || w.status != 200 {
			t.Errorf("Accept: %s: a table: %v", accept, got)
		}
	}
	a.do(a.adam, http.MethodGet, "/admin/usage?bucket=day&from=2026-02-28T00:00:00Z", nil, "Accept", "text/csv").wantBody(
		"day,requests,input_tokens,output_tokens,cached_tokens,cost\n2026-02-28,0,0,0,0,0\n2026-03-01,1,2,3,4,1.5\n")
}

func TestBudgets(t *testing.T) {
	a := newAPI(t)
	made := a.do(a.adam, http.MethodPost, "/admin/budgets", object{"name": "Each", "scope_type": "user", "period": "month", "amount": "12.50"})
	shown := `{"id":"ID","org_id":"` + a.adam.OrganizationID + `","name":"Each","scope_type":"user","scope_id":null,"scope_value":null,"period":"month","amount":12.5,` +
		`"alert_percent":80,"hard_stop":true,"enabled":true,` + strings.TrimSuffix(stamps, "}") + `,"period_start":"2026-03-01T00:00:00.000000Z","spent":`
	made.wantBody(shown + `0,"subjects":0}`)
	id := made.want(200)["id"].(string)
	path := "/admin/budgets/" + id
	spent := func(subject string, at time.Time, cost int64) storage.BudgetSpend {
		return storage.BudgetSpend{OrganizationID: a.adam.OrganizationID, BudgetID: id, Subject: subject, Start: at, Cost: cost}
	}
	month := storage.BudgetMonth.Start(start)
	if _, err := a.store.AddUsage(t.Context(), storage.UsageBatch{Node: "n", Number: 1, Spends: []storage.BudgetSpend{
		spent("x", month, 1), spent("y", month, 3_000_000_000), spent("z", month.AddDate(0, -1, 0), 9_000_000_000),
	}}); err != nil {
		t.Fatal(err)
	}
	a.do(a.adam, http.MethodGet, path, nil).wantBody(shown + `3,"subjects":2}`)
	a.do(a.adam, http.MethodGet, "/admin/budgets", nil).wantBody("[" + shown + `3,"subjects":2}]`)
	got := a.do(a.adam, http.MethodPut, path, object{"amount": "0.000000001", "alert_percent": 0, "hard_stop": false, "enabled": false, "name": "n"}).want(200)
	if got["amount"] != 1e-9 || got["alert_percent"] != 0.0 || got["hard_stop"] != false || got["enabled"] != false || got["spent"] != 3.0 || got["period"] != "month" {
		t.Errorf("%v", got)
	}
	a.do(a.adam, http.MethodPost, "/admin/budgets", object{"name": "x", "scope_type": "user", "period": "month", "amount": 1}).wantError(409, gateway.Conflict)
	if pool := a.do(a.adam, http.MethodPost, "/admin/budgets", object{"name": "x", "scope_type": "org", "period": "day", "amount": 0}).want(200); pool["subjects"] != nil {
		t.Errorf("%v", pool)
	}
	for _, text := range []string{`-1`, `1e3`, `1000000000`, `0.0000000001`, `"x"`, `""`, `"1,5"`, `"01"`, `true`, `[]`, `{}`, `null`} {
		a.do(a.adam, http.MethodPut, path, `{"amount":`+text+`}`).wantBad("amount")
	}
	a.do(a.adam, http.MethodPost, "/admin/budgets", object{}).wantBad("name", "scope_type", "period", "amount")
	a.do(a.adam, http.MethodPost, "/admin/budgets", object{"name": "x", "scope_type": "mcp_server", "period": "day", "amount": 1}).wantBad("scope_type")
	a.do(a.adam, http.MethodPut, path, object{"alert_percent": 101, "period": "year", "scope_value": "a", "scope_id": a.alice.UserID}).wantBad("alert_percent", "period", "scope_value")
	a.do(a.adam, http.MethodDelete, path, nil).wantBody(`{"deleted":true}`)
	a.do(a.adam, http.MethodGet, path, nil).wantError(404, gateway.NotFound)
}
