package authorization

import (
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// TestAssertedResource asks which resource an access token is for.
func TestAssertedResource(t *testing.T) {
	const gate = "https://gate.test"
	s := &Server{options: Options{PublicURL: gate}}
	for name, c := range map[string]struct {
		claim, asked     []string
		resource, server string
		refused          string
	}{
		"the assertion names it":                  {[]string{gate + "/mcp/notes"}, nil, gate + "/mcp/notes", "notes", ""},
		"both name it":                            {[]string{gate + "/mcp/notes"}, []string{gate + "/mcp/notes"}, gate + "/mcp/notes", "notes", ""},
		"the request names it":                    {nil, []string{gate + "/mcp/notes"}, gate + "/mcp/notes", "notes", ""},
		"the request chooses":                     {[]string{gate + "/mcp/notes", gate + "/mcp/crm"}, []string{gate + "/mcp/crm"}, gate + "/mcp/crm", "crm", ""},
		"the gateway":                             {[]string{gate}, nil, gate, "", ""},
		"the gateway with a slash":                {[]string{gate + "/"}, []string{gate}, gate, "", ""},
		"none":                                    {nil, nil, "", "", "invalid_target"},
		"several, and no choice":                  {[]string{gate + "/mcp/notes", gate + "/mcp/crm"}, nil, "", "", "invalid_target"},
		"the request wants two":                   {[]string{gate + "/mcp/notes", gate + "/mcp/crm"}, []string{gate + "/mcp/notes", gate + "/mcp/crm"}, "", "", "invalid_target"},
		"the request wants another":               {[]string{gate + "/mcp/notes"}, []string{gate + "/mcp/crm"}, "", "", "invalid_target"},
		"the request wants the whole gateway":     {[]string{gate + "/mcp/notes"}, []string{gate}, "", "", "invalid_target"},
		"a server of the gateway for it":          {[]string{gate}, []string{gate + "/mcp/notes"}, "", "", "invalid_target"},
		"elsewhere":                               {[]string{"https://other.test/mcp/notes"}, nil, "", "", "invalid_grant"},
		"a name that begins like the gateway's":   {[]string{gate + ".evil.test/mcp/notes"}, nil, "", "", "invalid_grant"},
		"elsewhere, asked for":                    {nil, []string{"https://other.test"}, "", "", "invalid_target"},
		"elsewhere, and here asked for":           {[]string{"https://other.test"}, []string{gate}, "", "", "invalid_target"},
		"a path of the gateway that is no server": {[]string{gate + "/api"}, nil, "", "", "invalid_grant"},
	} {
		form := url.Values{}
		if c.asked != nil {
			form["resource"] = c.asked
		}
		resource, server, err := s.assertedResource(&token.Assertion{Resources: c.claim}, form)
		if c.refused != "" {
			if e := authserver.ErrorOf(err); err == nil || e.Code != c.refused {
				t.Errorf("%s: %v, want %s", name, err, c.refused)
			}
			continue
		}
		if err != nil || resource != c.resource || server != c.server {
			t.Errorf("%s: %q %q, %v", name, resource, server, err)
		}
	}
}

// TestTenant checks that a tenant is read, or refused.
func TestTenant(t *testing.T) {
	for name, c := range map[string]struct {
		claims string
		paths  caller.Paths
		want   bool
	}{
		"none":            {`{"sub":"a"}`, caller.Paths{}, true},
		"not read":        {`{"tenant":"a"}`, caller.Paths{Organization: []string{"org_id"}}, false},
		"null":            {`{"tenant":null}`, caller.Paths{}, false},
		"an organization": {`{"tenant":"a"}`, caller.Paths{Organization: []string{"tenant"}}, true},
		"a slug":          {`{"tenant":"a"}`, caller.Paths{OrganizationSlug: []string{"x", "tenant"}}, true},
	} {
		object, err := strictjson.Parse([]byte(c.claims), strictjson.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := readsTenant(c.paths, &token.Claims{Object: object}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestRefusedAssertions checks what a client is told: what is wrong with its assertion, and nothing about users.
func TestRefusedAssertions(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
		want   string
	}{
		"a reason":           {refusedAssertion(&token.Error{Kind: token.ErrInvalid, Reason: "jti is missing", Cause: errors.New("evil")}), 400, "the assertion is refused: jti is missing"},
		"no keys":            {refusedAssertion(&token.Error{Kind: token.ErrUnavailable, Reason: "10.0.0.1 refused"}), http.StatusServiceUnavailable, "the keys of the assertion's issuer cannot be fetched now"},
		"no organization":    {unlessStore(caller.ErrForbidden), 400, "the gateway does not let the assertion's user in"},
		"another's":          {unlessStore(storage.ErrForeignOrganization), 400, "the gateway does not let the assertion's user in"},
		"the store was lost": {unlessStore(storage.ErrUnavailable), http.StatusInternalServerError, "the request could not be completed"},
	} {
		if e := authserver.ErrorOf(c.err); e.Status != c.status || e.Description != c.want {
			t.Errorf("%s: %d %q", name, e.Status, e.Description)
		}
	}
	if err := unlessStore(storage.ErrUnavailable); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("the store's error is %v", err)
	}
	if got := token.Reason(refusedAssertion(&token.Error{Kind: token.ErrInvalid, Reason: "jti is missing"})); got != "jti is missing" {
		t.Errorf("the log has %q", got)
	}
}
