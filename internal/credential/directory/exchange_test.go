package directory

import (
	"fmt"
	"maps"
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
		if diff := cmp.Diff(c.want, problemsOf(r, c.source)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	e := Record{Name: "A", URL: "https://a.example/mcp", Provider: storage.ProviderTokenExchange, Audience: "a", RequestedTokenType: "access_token", SubjectTokenType: "auto"}.Entry(storage.SourceConfig)
	if !e.RequiresAuth || e.Options.RequestedTokenType != "" || e.Options.SubjectTokenType != "" || e.AuthParams.Prefix != "Bearer" {
		t.Errorf("%+v", e)
	}
}

// problemsOf returns the places and types of a record's problems; "" is the source of administrators' entries.
func problemsOf(r Record, source storage.Source) string {
	if source == "" {
		source = storage.SourceCustom
	}
	var got []string
	for _, problem := range Check(r.Entry(source), func(*url.URL) error { return nil }) {
		got = append(got, fmt.Sprint(problem.Loc, " ", problem.Type))
	}
	return strings.Join(got, ", ")
}

// TestCheckObtained checks the members of the other entries whose tokens the gateway gets without its users.
func TestCheckObtained(t *testing.T) {
	const unused = "[oauth authorization_endpoint] value_error, [oauth registration_endpoint] value_error, [oauth revocation_endpoint] value_error, " +
		"[authorization_params] value_error, [refresh_scope] value_error, [independent_tokens] value_error"
	forLogins := func(r *Record) {
		r.OAuth.AuthorizationEndpoint, r.OAuth.RegistrationEndpoint, r.OAuth.RevocationEndpoint = "https://a.example/a", "https://a.example/r", "https://a.example/v"
		r.AuthorizationParams, r.RefreshScope, r.IndependentTokens = map[string]string{"a": "b"}, true, true
	}
	type row struct {
		source storage.Source
		change func(*Record)
		want   string
	}
	for kind, rows := range map[string]map[string]row{
		"id-jag": {
			"nothing more":            {"", func(*Record) {}, ""},
			"an audience":             {"", func(r *Record) { r.Audience = "https://as.example" }, "[audience] value_error"},
			"the operator's audience": {storage.SourceConfig, func(r *Record) { r.Audience = "https://as.example" }, "[audience] value_error"},
			"an issuer":               {"", func(r *Record) { r.OAuth.Issuer = "https://as.example" }, ""},
			"an administrator's endpoint": {"", func(r *Record) {
				r.OAuth.Issuer, r.OAuth.TokenEndpoint = "https://as.example", "https://evil.example/t"
			}, "[oauth token_endpoint] value_error"},
			"the operator's endpoint":       {storage.SourceConfig, func(r *Record) { r.OAuth.Issuer, r.OAuth.TokenEndpoint = "https://as.example", "https://as.example/t" }, ""},
			"an endpoint of nobody":         {storage.SourceConfig, func(r *Record) { r.OAuth.TokenEndpoint = "https://as.example/t" }, "[oauth issuer] value_error"},
			"its own resource":              {"", func(r *Record) { r.Resource = "https://A.example/mcp" }, ""},
			"another's resource":            {"", func(r *Record) { r.Resource = "https://b.example/mcp" }, "[resource] value_error"},
			"another port's resource":       {"", func(r *Record) { r.Resource = "https://a.example:444/mcp" }, "[resource] value_error"},
			"a resource that is no address": {"", func(r *Record) { r.Resource = "urn:b" }, "[resource] value_error"},
			"no resource":                   {"", func(r *Record) { r.Resource = Off }, "[resource] value_error"},
			"the operator's resource":       {storage.SourceConfig, func(r *Record) { r.Resource = "urn:b" }, ""},
			"types":                         {"", func(r *Record) { r.SubjectTokenType = "saml2" }, "[subject_token_type] enum"},
			"a key":                         {"", func(r *Record) { r.AuthMethod = PrivateKeyJWT }, ""},
			"a file":                        {"", func(r *Record) { r.AssertionFile = "/a" }, "[assertion_file] value_error"},
			"what only logins need":         {"", forLogins, unused},
		},
		"client_credentials": {
			"nothing more":          {"", func(*Record) {}, ""},
			"an audience":           {"", func(r *Record) { r.Audience = "https://a.example" }, ""},
			"an endpoint alone":     {"", func(r *Record) { r.OAuth.TokenEndpoint = "https://as.example/t" }, ""},
			"a key":                 {"", func(r *Record) { r.AuthMethod = PrivateKeyJWT }, ""},
			"an unknown method":     {"", func(r *Record) { r.AuthMethod = "tls_client_auth" }, "[token_endpoint_auth_method] enum"},
			"no proof":              {"", func(r *Record) { r.AuthMethod = "none" }, "[token_endpoint_auth_method] value_error"},
			"a public client":       {"", func(r *Record) { r.Public = true }, "[token_endpoint_auth_method] value_error"},
			"types":                 {"", func(r *Record) { r.RequestedTokenType, r.SubjectTokenType = "jwt", "jwt" }, "[requested_token_type] value_error, [subject_token_type] value_error"},
			"a file":                {"", func(r *Record) { r.AssertionFile = "/a" }, "[assertion_file] value_error"},
			"in the query":          {"", func(r *Record) { r.AuthParams = storage.AuthParams{In: "query", Name: "token"} }, "[auth_params in] value_error"},
			"what only logins need": {"", forLogins, unused},
		},
		"workload_identity": {
			"a file":                {storage.SourceConfig, func(*Record) {}, ""},
			"an audience":           {storage.SourceConfig, func(r *Record) { r.Audience = "api://exchange" }, ""},
			"an administrator's":    {"", func(*Record) {}, "[provider] value_error"},
			"no file":               {storage.SourceConfig, func(r *Record) { r.AssertionFile = "" }, "[assertion_file] value_error"},
			"a file somewhere":      {storage.SourceConfig, func(r *Record) { r.AssertionFile = "statement" }, "[assertion_file] value_error"},
			"a line break":          {storage.SourceConfig, func(r *Record) { r.AssertionFile = "/a\n" }, "[assertion_file] value_error"},
			"types":                 {storage.SourceConfig, func(r *Record) { r.RequestedTokenType = "jwt" }, "[requested_token_type] value_error"},
			"what only logins need": {storage.SourceConfig, forLogins, unused},
		},
		"oauth2": {
			"a key":  {"", func(r *Record) { r.AuthMethod = PrivateKeyJWT }, "[token_endpoint_auth_method] enum"},
			"a file": {"", func(r *Record) { r.AssertionFile = "/a" }, "[assertion_file] value_error"},
		},
	} {
		r := Record{Name: "A", URL: "https://a.example/mcp", Provider: storage.Provider(kind)}
		switch kind {
		case "id-jag":
			r.Provider, r.RequestedTokenType = storage.ProviderTokenExchange, kind
		case "workload_identity":
			r.AssertionFile = "/var/run/statement"
		}
		for name, c := range rows {
			changed := r
			c.change(&changed)
			if diff := cmp.Diff(c.want, problemsOf(changed, c.source)); diff != "" {
				t.Errorf("%s, %s: %s", kind, name, diff)
			}
		}
	}
	known := map[string]bool{}
	for _, name := range storage.Providers() {
		known[name] = true
		e := Record{Name: "A", URL: "https://a.example/mcp", Provider: storage.Provider(name)}.Entry(storage.SourceConfig)
		if e.RequiresAuth != (name != "none") {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if want := map[string]bool{"oauth2": true, "api_key": true, "bearer_token": true, "basic_auth": true, "token_exchange": true, "client_credentials": true, "workload_identity": true, "none": true}; !maps.Equal(known, want) {
		t.Errorf("%v", known)
	}
}
