package record

import (
	"strings"
	"testing"
)

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
	for _, name := range []string{"Address", "x-address", "XAxis"} {
		if !newRedaction([]string{"address", "x_axis"}).has(name) {
			t.Errorf("%q is kept", name)
		}
	}
	if newRedaction([]string{"", "-"}).has("x") {
		t.Error("a name of nothing replaces others")
	}
	if got, left := r.arguments([]byte(`"` + strings.Repeat("x", maxKeptArguments) + `"`)); got != nil || !left {
		t.Errorf("kept %d bytes", len(got))
	}
}
