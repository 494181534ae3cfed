package app

import (
	"strings"
	"testing"
)

func TestAuditRules(t *testing.T) {
	for name, c := range map[string]struct {
		rules AuditRules
		want  string
	}{
		"nothing":             {AuditRules{}, ""},
		"everything":          {AuditRules{Required: []string{"mcp", "llm"}, BestEffort: []string{"sse"}, Sync: "always", Sinks: []AuditSink{{Kind: "log"}, {Kind: "file", Path: "x"}}}, ""},
		"unknown traffic":     {AuditRules{Required: []string{"web"}}, `unrecognized kind of traffic "web"`},
		"both":                {AuditRules{Required: []string{"mcp"}, BestEffort: []string{"mcp"}}, "cannot be required and best_effort"},
		"unknown sync":        {AuditRules{Sync: "never"}, `unrecognized sync "never"`},
		"file without a path": {AuditRules{Sinks: []AuditSink{{Kind: "file"}}}, "needs a path"},
		"log with a path":     {AuditRules{Sinks: []AuditSink{{Kind: "log", Path: "x"}}}, "takes no path"},
		"unknown sink":        {AuditRules{Sinks: []AuditSink{{Kind: "syslog"}}}, `unrecognized sink "syslog"`},
		"the same sink twice": {AuditRules{Sinks: []AuditSink{{Kind: "file", Path: "x"}, {Kind: "file", Path: "x"}}}, "sink file x is given twice"},
	} {
		err := c.rules.check()
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRedaction(t *testing.T) {
	r := newRedaction([]string{"IBAN"})
	for text, want := range map[string]string{
		`{"a":1}`:                             `{"a":1}`,
		`{"Password":"x","b":{"iban":["y"]}}`: `{"Password":"REDACTED","b":{"iban":"REDACTED"}}`,
		`[{"api_key":{"deep":1}},{"n":1.50,"l":12345678901234567890}]`: `[{"api_key":"REDACTED"},{"l":12345678901234567890,"n":1.50}]`,
		`{"html":"<&>"}`: `{"html":"<&>"}`,
		`null`:           `null`,
	} {
		if got, left := r.arguments([]byte(text)); string(got) != want || left {
			t.Errorf("%s became %s", text, got)
		}
	}
	for _, name := range []string{
		"accessToken", "refreshToken", "clientSecret", "privateKey", "api-key", "x-api-key", "X-API-Key", "apiKeys", "API KEY", "Set_Cookies", "iban",
		"I-B-A-N", "ibans", "credentials", "passwords", "xToken", "tokens", "apikey", "Proxy Authorization"} {
		got, _ := r.arguments([]byte(`{"` + name + `":"x"}`))
		if kept := strings.Contains(string(got), `"x"`); kept != (name == "Set_Cookies" || name == "Proxy Authorization") {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, name := range []string{"x", "s", "xs", "", "tokenizer", "key", "max_tokens", "secretary"} {
		if r.has(name) {
			t.Errorf("%q is replaced", name)
		}
	}
	if newRedaction([]string{"", "-"}).has("x") {
		t.Error("a name of nothing replaces others")
	}
	if got, left := r.arguments([]byte(`"` + strings.Repeat("x", maxKeptArguments) + `"`)); got != nil || !left {
		t.Errorf("kept %d bytes", len(got))
	}
}
