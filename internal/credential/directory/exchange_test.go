package directory

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/storage"
)

// TestCheckExchange checks the members of a token exchange, and that no entry of another kind has them.
func TestCheckExchange(t *testing.T) {
	for name, c := range map[string]struct {
		source storage.Source
		change func(*Record)
		want   string // member path and type; "" none
	}{
		"an audience":                 {"", func(*Record) {}, ""},
		"a resource alone":            {"", func(r *Record) { r.Audience, r.Resource = "", "https://a.example/mcp" }, ""},
		"neither":                     {"", func(r *Record) { r.Audience = "" }, "[audience] value_error"},
		"a resource that is off":      {"", func(r *Record) { r.Audience, r.Resource = "", "off" }, "[audience] value_error"},
		"a long audience":             {"", func(r *Record) { r.Audience = strings.Repeat("a", maxURL+1) }, "[audience] string_too_long"},
		"a line break":                {"", func(r *Record) { r.Audience = "a\nb" }, "[audience] value_error"},
		"types":                       {"", func(r *Record) { r.RequestedTokenType, r.SubjectTokenType = "jwt", "id_token" }, ""},
		"the default types":           {"", func(r *Record) { r.RequestedTokenType, r.SubjectTokenType = "access_token", "auto" }, ""},
		"an unknown type":             {"", func(r *Record) { r.RequestedTokenType, r.SubjectTokenType = "saml2", "refresh_token" }, "[requested_token_type] enum, [subject_token_type] enum"},
		"an ID token for a server":    {"", func(r *Record) { r.RequestedTokenType = "id_token" }, "[requested_token_type] enum"},
		"an issuer":                   {"", func(r *Record) { r.OAuth.Issuer = "https://id.example" }, ""},
		"an administrator's endpoint": {"", func(r *Record) { r.OAuth.TokenEndpoint = "https://evil.example/t" }, "[oauth token_endpoint] value_error"},
		"the operator's endpoint":     {storage.SourceConfig, func(r *Record) { r.OAuth.TokenEndpoint = "https://sts.example/t" }, ""},
		"what only logins need": {"", func(r *Record) {
			r.OAuth.AuthorizationEndpoint, r.OAuth.RegistrationEndpoint, r.OAuth.RevocationEndpoint = "https://a.example/a", "https://a.example/r", "https://a.example/v"
			r.AuthorizationParams, r.RefreshScope, r.IndependentTokens = map[string]string{"a": "b"}, true, true
		}, "[oauth authorization_endpoint] value_error, [oauth registration_endpoint] value_error, [oauth revocation_endpoint] value_error, " +
			"[authorization_params] value_error, [refresh_scope] value_error, [independent_tokens] value_error"},
		"in the query": {"", func(r *Record) { r.AuthParams = storage.AuthParams{In: "query", Name: "token"} }, "[auth_params in] value_error"},
		"of another kind": {"", func(r *Record) {
			r.Provider, r.RequestedTokenType, r.SubjectTokenType = storage.ProviderOAuth2, "jwt", "jwt"
		}, "[audience] value_error, [requested_token_type] value_error, [subject_token_type] value_error"},
	} {
		r := Record{Name: "A", URL: "https://a.example/mcp", Provider: storage.ProviderTokenExchange, Audience: "payroll"}
		c.change(&r)
		if c.source == "" {
			c.source = storage.SourceCustom
		}
		var got []string
		for _, problem := range Check(r.Entry(c.source), func(*url.URL) error { return nil }) {
			got = append(got, fmt.Sprint(problem.Loc, " ", problem.Type))
		}
		if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	e := Record{Name: "A", URL: "https://a.example/mcp", Provider: storage.ProviderTokenExchange, Audience: "a", RequestedTokenType: "access_token", SubjectTokenType: "auto"}.Entry(storage.SourceConfig)
	if !e.RequiresAuth || e.Options.RequestedTokenType != "" || e.Options.SubjectTokenType != "" || e.AuthParams.Prefix != "Bearer" {
		t.Errorf("%+v", e)
	}
}
