package directory

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/storage"
)

func TestCatalogueIsInOrder(t *testing.T) {
	entries, err := Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) < 10 {
		t.Errorf("%d entries", len(entries))
	}
	guard := netguard.New(netguard.Policy{})
	ids := make(map[string]bool)
	for _, e := range entries {
		for _, problem := range Check(e, guard.CheckURL) {
			t.Errorf("%s: %v %s", e.Name, problem.Loc, problem.Msg)
		}
		if ids[e.ID] || e.ID != ReadOnlyID(storage.SourceCatalogue, e.Slug) || e.Source != storage.SourceCatalogue {
			t.Errorf("%s: id %s, source %s", e.Name, e.ID, e.Source)
		}
		ids[e.ID] = true
		if u, err := url.Parse(e.URL); err != nil || u.Scheme != "https" {
			t.Errorf("%s: %s", e.Name, e.URL)
		}
	}
	again, err := Catalogue()
	if diff := cmp.Diff(entries, again); err != nil || diff != "" {
		t.Errorf("another start, another catalogue: %v\n%s", err, diff)
	}
}

func TestEntryDefaults(t *testing.T) {
	off := false
	for _, test := range []struct {
		name   string
		record Record
		want   storage.DirectoryEntry
	}{
		{"the least", Record{Name: "Issue Tracker!", URL: "https://a.example/mcp"}, storage.DirectoryEntry{
			Name: "Issue Tracker!", Slug: "issue-tracker", URL: "https://a.example/mcp", Protocol: storage.ProtocolMCP, Provider: storage.ProviderOAuth2,
			RequiresAuth: true, AuthParams: storage.AuthParams{In: "header", Name: "Authorization", Prefix: "Bearer"},
		}},
		{"an event stream", Record{Name: "E", Slug: "events-of-e", URL: "https://a.example/events", Protocol: storage.ProtocolSSE, Provider: storage.ProviderNone}, storage.DirectoryEntry{
			Name: "E", Slug: "events-of-e", URL: "https://a.example/events", EventsURL: "https://a.example/events", Protocol: storage.ProtocolSSE, Provider: storage.ProviderNone,
		}},
		{"an API key that may be left out", Record{Name: "K", URL: "https://a.example/mcp", Provider: storage.ProviderAPIKey, RequiresAuth: &off}, storage.DirectoryEntry{
			Name: "K", Slug: "k", URL: "https://a.example/mcp", Protocol: storage.ProtocolMCP, Provider: storage.ProviderAPIKey,
			AuthParams: storage.AuthParams{In: "header", Name: "X-API-Key"},
		}},
	} {
		test.want.Source = storage.SourceConfig
		if diff := cmp.Diff(test.want, test.record.Entry(storage.SourceConfig)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.name, diff)
		}
	}
}

func TestCheck(t *testing.T) {
	checkURL := func(u *url.URL) error {
		if u.Scheme != "https" || strings.HasPrefix(u.Host, "10.") || u.User != nil {
			return errors.New("canary: the network's own words")
		}
		return nil
	}
	for _, test := range []struct {
		name   string
		change func(*storage.DirectoryEntry)
		want   string // member path and type; "" none
	}{
		{"in order", func(*storage.DirectoryEntry) {}, ""},
		{"no name", func(e *storage.DirectoryEntry) { e.Name = "" }, "[name] string_too_short"},
		{"the longest name", func(e *storage.DirectoryEntry) { e.Name = strings.Repeat("ä", MaxName) }, ""},
		{"a longer name", func(e *storage.DirectoryEntry) { e.Name = strings.Repeat("ä", MaxName+1) }, "[name] string_too_long"},
		{"a line break in the name", func(e *storage.DirectoryEntry) { e.Name = "a\nb" }, "[name] value_error"},
		{"a long description", func(e *storage.DirectoryEntry) { e.Description = strings.Repeat("a", maxDescription+1) }, "[description] string_too_long"},
		{"a slug with capitals", func(e *storage.DirectoryEntry) { e.Slug = "A" }, "[slug] value_error"},
		{"a reserved slug", func(e *storage.DirectoryEntry) { e.Slug = "by-slug" }, "[slug] value_error"},
		{"a slug that is an id", func(e *storage.DirectoryEntry) { e.Slug = "0192f0c1-5bd2-7000-8000-0000000000aa" }, "[slug] value_error"},
		{"another protocol", func(e *storage.DirectoryEntry) { e.Protocol = "stdio" }, "[protocol] enum"},
		{"another provider", func(e *storage.DirectoryEntry) { e.Provider = "saml" }, "[provider] enum"},
		{"no address", func(e *storage.DirectoryEntry) { e.URL = "" }, "[url] string_too_short"},
		{"an address without a host", func(e *storage.DirectoryEntry) { e.URL = "https:///mcp" }, "[url] value_error"},
		{"a relative address", func(e *storage.DirectoryEntry) { e.URL = "/mcp" }, "[url] value_error"},
		{"an address with a fragment", func(e *storage.DirectoryEntry) { e.URL = "https://a.example/mcp#x" }, "[url] value_error"},
		{"an address that may not be dialled", func(e *storage.DirectoryEntry) { e.URL = "https://10.0.0.1/mcp" }, "[url] value_error"},
		{"an address over http", func(e *storage.DirectoryEntry) { e.URL = "http://a.example/mcp" }, "[url] value_error"},
		{"an address with a user", func(e *storage.DirectoryEntry) { e.URL = "https://u:p@a.example/mcp" }, "[url] value_error"},
		{"a long address", func(e *storage.DirectoryEntry) { e.URL = "https://a.example/" + strings.Repeat("a", maxURL) }, "[url] string_too_long"},
		{"a stream that may not be dialled", func(e *storage.DirectoryEntry) { e.EventsURL = "https://10.0.0.1/events" }, "[events_url] value_error"},
		{"an endpoint that may not be dialled", func(e *storage.DirectoryEntry) {
			e.OAuth.AuthorizationEndpoint, e.OAuth.TokenEndpoint = "https://i.example/a", "https://10.0.0.1/token"
		}, "[oauth token_endpoint] value_error"},
		{"half of the endpoints", func(e *storage.DirectoryEntry) { e.OAuth.TokenEndpoint = "https://i.example/token" }, "[oauth] value_error"},
		{"an issuer that is no address", func(e *storage.DirectoryEntry) { e.OAuth.Issuer = "login" }, "[oauth issuer] value_error"},
		{"a resource is never dialled", func(e *storage.DirectoryEntry) { e.OAuth.Resource = "urn:example:a" }, ""},
		{"a resource with a fragment", func(e *storage.DirectoryEntry) { e.OAuth.Resource = "https://a.example/#x" }, "[oauth resource] value_error"},
		{"a scope with a blank", func(e *storage.DirectoryEntry) { e.Scopes = []string{"read", "a b"} }, "[scopes 1] value_error"},
		{"a scope with a quote", func(e *storage.DirectoryEntry) { e.Scopes = []string{`a"b`} }, "[scopes 0] value_error"},
		{"an empty scope", func(e *storage.DirectoryEntry) { e.Scopes = []string{""} }, "[scopes 0] value_error"},
		{"many scopes", func(e *storage.DirectoryEntry) { e.Scopes = slices.Repeat([]string{"a"}, maxList+1) }, "[scopes] too_long"},
		{"a category with a line break", func(e *storage.DirectoryEntry) { e.Categories = []string{"a\nb"} }, "[categories 0] value_error"},
		{"no authentication, and required", func(e *storage.DirectoryEntry) { e.Provider, e.AuthParams = storage.ProviderNone, storage.AuthParams{} }, "[requires_auth] value_error"},
		{"a credential in the query", func(e *storage.DirectoryEntry) { e.AuthParams = storage.AuthParams{In: "query", Name: "token"} }, "[auth_params in] value_error"},
		{"an API key in the query", func(e *storage.DirectoryEntry) {
			e.Provider, e.AuthParams = storage.ProviderAPIKey, storage.AuthParams{In: "query", Name: "key"}
		}, ""},
		{"a credential as Host", func(e *storage.DirectoryEntry) { e.AuthParams.Name = "Host" }, "[auth_params name] value_error"},
		{"a credential in a cookie", func(e *storage.DirectoryEntry) { e.AuthParams.In = "cookie" }, "[auth_params in] enum"},
		{"a prefix with a line break", func(e *storage.DirectoryEntry) { e.AuthParams.Prefix = "a\r\nb" }, "[auth_params prefix] value_error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := Record{Name: "A", URL: "https://a.example/mcp", Scopes: []string{"read"}}.Entry(storage.SourceCustom)
			test.change(&e)
			var got []string
			for _, problem := range Check(e, checkURL) {
				got = append(got, fmt.Sprint(problem.Loc, " ", problem.Type))
				if strings.Contains(problem.Msg, "canary") {
					t.Errorf("what the network says is shown: %s", problem.Msg)
				}
			}
			if diff := cmp.Diff(test.want, strings.Join(got, ", ")); diff != "" {
				t.Error(diff)
			}
		})
	}
	everything := Check(storage.DirectoryEntry{}, checkURL)
	if len(everything) < 5 {
		t.Errorf("an empty entry has %d problems; all are told at once", len(everything))
	}
}

func TestSet(t *testing.T) {
	var r Record
	for _, line := range []string{
		"url https://a.example/mcp", "description d", "icon https://a.example/i.svg", "slug a", "protocol sse", "provider api_key", "auth_params query key",
		"scopes read write", "issuer https://i.example", "authorization_endpoint https://i.example/a", "token_endpoint https://i.example/t",
		"registration_endpoint https://i.example/r", "revocation_endpoint https://i.example/v", "resource https://a.example",
		"token_endpoint_auth_method none", "authorization_params a=b=c d=", "refresh_scope on", "trusted_ca {file./ca.pem}", "audience a", "requested_token_type jwt", "subject_token_type id_token", "public on", "requires_auth off",
		"categories x y", "events_url https://a.example/e",
	} {
		word, rest, _ := strings.Cut(line, " ")
		if !slices.Contains(words, word) {
			t.Errorf("%s is not told as known", word)
		}
		if err := r.Set(word, strings.Fields(rest)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	off := false
	if diff := cmp.Diff(Record{
		URL: "https://a.example/mcp", Description: "d", Icon: "https://a.example/i.svg", Slug: "a", Protocol: "sse", Provider: "api_key",
		AuthParams: storage.AuthParams{In: "query", Name: "key"}, Scopes: []string{"read", "write"}, OAuth: storage.OAuthEndpoints{
			Issuer: "https://i.example", AuthorizationEndpoint: "https://i.example/a", TokenEndpoint: "https://i.example/t",
			RegistrationEndpoint: "https://i.example/r", RevocationEndpoint: "https://i.example/v",
		}, Resource: "https://a.example", AuthMethod: "none", AuthorizationParams: map[string]string{"a": "b=c", "d": ""}, RefreshScope: true, TrustedCA: "{file./ca.pem}",
		Audience: "a", RequestedTokenType: "jwt", SubjectTokenType: "id_token", Public: true, RequiresAuth: &off, Categories: []string{"x", "y"}, EventsURL: "https://a.example/e",
	}, r); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, line := range []string{"name x", "uri x", "url a b", "public yes", "refresh_scope always", "requires_auth", "auth_params header", "auth_params cookie x", "auth_params header a b c", "URL x"} {
		words := strings.Fields(line)
		if err := new(Record).Set(words[0], words[1:]); err == nil {
			t.Errorf("%s is taken", line)
		}
	}
}

func TestParseRecords(t *testing.T) {
	records, err := ParseRecords([]byte(`[{"name":"A","url":"https://a.example","oauth":{"issuer":"https://i.example"},"meta":{"Any":{"Thing":1}}}]`))
	if err != nil || len(records) != 1 || records[0].OAuth.Issuer != "https://i.example" || string(records[0].Meta) != `{"Any":{"Thing":1}}` {
		t.Errorf("%+v, %v", records, err)
	}
	for name, text := range map[string]string{
		"nothing": ``, "null": `null`, "an object": `{"name":"A"}`, "a text": `"[]"`, "two values": `[] []`, "a comma": `[{},]`, "a comment": `[] // x`,
		"null in the list": `[null]`, "a list in the list": `[[]]`, "an unknown member": `[{"nmae":"A"}]`, "a member of another case": `[{"Name":"A"}]`,
		"a member twice": `[{"name":"A","name":"B"}]`, "a member twice, in two cases": `[{"name":"A","NAME":"B"}]`, "a letter that folds": "[{\"\u212Aey\":1}]",
		"a letter that folds to a member": "[{\"\u017Flug\":\"a\"}]", "an escaped member twice": `[{"url":"a","\u0075rl":"b"}]`,
		"a member of oauth in another case": `[{"oauth":{"Issuer":"x"}}]`, "an unknown member of oauth": `[{"oauth":{"userinfo":"x"}}]`,
		"a name that is a number": `[{"name":1}]`, "a byte order mark": "\uFEFF[]", "bad UTF-8": "[{\"name\":\"\xff\"}]",
	} {
		if records, err := ParseRecords([]byte(text)); err == nil {
			t.Errorf("%s: %+v", name, records)
		}
	}
}

func FuzzParseRecords(f *testing.F) {
	f.Add(catalogue)
	f.Add([]byte(`[{"name":"A","name":"B"}]`))
	f.Add([]byte("[{\"\u017Flug\":\"a\",\"meta\":{\"A\":[]}}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		records, err := ParseRecords(text)
		if err != nil {
			return
		}
		for _, record := range records {
			e := record.Entry(storage.SourceConfig)
			problems := Check(e, func(*url.URL) error { return nil })
			if len(problems) == 0 && (e.Name == "" || e.Slug == "" || CheckAuthParams(e.AuthParams) != nil) {
				t.Errorf("in order: %+v", e)
			}
		}
	})
}
