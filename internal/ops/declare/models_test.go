package declare

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// protocol is a kind of provider of models.
type protocol struct{ base string }

func (p protocol) BaseURL() string                  { return p.base }
func (protocol) Path(limit.Endpoint) (string, bool) { return "", false }
func (protocol) Authorize(http.Header, seal.Secret) {}
func (protocol) Headers() *forward.Rules            { return new(forward.Rules) }

// newModels returns the models of a configuration with one provider and one alias.
func newModels(t *testing.T) *accounts.Base {
	t.Helper()
	kinds := map[string]accounts.Protocol{"openai": protocol{"https://api.openai.com/v1"}, "plain": protocol{}}
	base, err := accounts.NewBase(kinds, func(u *url.URL) string {
		if u.Scheme != "https" {
			return "the scheme must be https"
		}
		return ""
	}, accounts.Settings{
		Accounts: []accounts.AccountSettings{{Kind: "openai", Name: "shared"}},
		Models:   []accounts.ModelSettings{{Alias: "given", Targets: []accounts.TargetSettings{{Account: "shared", Model: "m"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return base
}

// models has one of everything that belongs to the LLM gateway, in the form of an export.
const models = `organization: acme
servers:
  - name: Issues
    slug: issues
    directory: tracker
agents:
  - name: robot
    issuer: https://id.example.com
    external_id: robot-1
providers:
  - name: Own Models
    kind: plain
    base_url: https://models.example.com
    api_key: '{env.OWN_MODELS_API_KEY}'
    timeouts:
      connect_ms: 1500
    stream_options: off
  - name: open
    kind: openai
model_mappings:
  - model_alias: judge
    targets:
      - provider: shared
        model: small
    fallbacks:
      - large
  - model_alias: large
    description: the largest
    targets:
      - provider: Own Models
        model: big
        weight: 2
        timeouts:
          idle_ms: 20
      - provider: open
        model: big-o
        weight: 1
    fallbacks:
      - judge
      - given
    max_output_tokens: 4096
smart_models:
  - model_alias: auto
    enabled: true
    determiner_model_alias: judge
    slots:
      - model_alias: judge
        label: easy
      - model_alias: large
    context_breakpoints:
      - 1000
    determiner_input_max_chars: 4000
    default_slot_on_failure: 1
    sticky: true
rate_limits:
  - name: everybody
    scope_type: user
    traffic_type: all
    enabled: true
    requests_per_minute: 60
  - name: everybody
    scope_type: user
    traffic_type: llm
    enabled: false
    tokens_per_minute: 0
  - name: the robot
    scope_type: agent
    subject: robot
    traffic_type: all
    enabled: true
    requests_per_minute: 5
  - name: the tracker
    scope_type: mcp_server
    subject: Issues
    traffic_type: mcp
    enabled: true
    requests_per_minute: 7
budgets:
  - name: all
    scope_type: org
    period: month
    amount: 12.5
    alert_percent: 80
    hard_stop: true
    enabled: true
  - name: own
    scope_type: llm_provider
    subject: Own Models
    period: day
    amount: 0.000000001
    alert_percent: 0
    hard_stop: false
    enabled: true
`

var modelsMade = []string{
	"create server Issues", "create agent robot", "create llm_provider Own Models", "create llm_provider open", "create model_mapping judge", "create model_mapping large",
	"create smart_model auto", "create rate_limit everybody", "create rate_limit everybody", "create rate_limit the robot", "create rate_limit the tracker", "create budget all", "create budget own",
}

// newModelPlace returns the surroundings of an empty organization, with a secret of a provider.
func newModelPlace(t *testing.T) Options {
	t.Helper()
	o := newPlace(t)
	o.Secret = func(reference string) (seal.Secret, error) {
		switch reference {
		case "{env.OWN_MODELS_API_KEY}":
			return seal.NewSecret(client), nil
		case "{env.OTHER}":
			return seal.NewSecret("another"), nil
		}
		return seal.Secret{}, errors.New("it is not set")
	}
	return o
}

func ownProvider(t *testing.T, o Options) storage.LLMProvider {
	t.Helper()
	set, err := o.Store.ModelSet(t.Context(), organization)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range set.Providers {
		if p.Kind == "plain" {
			return p
		}
	}
	t.Fatal("there is no such provider")
	return storage.LLMProvider{}
}

// TestModelsRoundTrip checks that everything of the LLM gateway is exported as it was declared, without a secret: also aliases
// that are each other's fallbacks.
func TestModelsRoundTrip(t *testing.T) {
	o := newModelPlace(t)
	applied(t, o, models, modelsMade...)
	if diff := cmp.Diff(models, export(t, o)); diff != "" {
		t.Errorf("(-declared +exported)\n%s", diff)
	}
	own := ownProvider(t, o)
	if secret, err := accounts.StoredSecret(o.Keyring, &own); err != nil || secret.Reveal() != client {
		t.Errorf("the provider's secret is another one, %v", err)
	}
	records, err := o.Store.AuditRecords(t.Context(), storage.AuditFilter{OrganizationID: organization})
	if err != nil || len(records) != len(modelsMade)+1 {
		t.Errorf("%d records, %v", len(records), err)
	}
}

// TestModelsChange checks changes, and that what is renamed stays the same object.
func TestModelsChange(t *testing.T) {
	o := newModelPlace(t)
	applied(t, o, models, modelsMade...)
	before := ownProvider(t, o)
	renamed := strings.NewReplacer("- name: Own Models\n", "- name: Mine\n    was: own models\n", "provider: Own Models", "provider: Mine", "subject: Own Models", "subject: Mine",
		"- model_alias: auto\n", "- model_alias: clever\n    was: auto\n", "amount: 12.5", "amount: \"13.0\"", "requests_per_minute: 5", "requests_per_minute: 6", "name: the robot", "name: R2",
		"        weight: 1\n", "").Replace(models)
	applied(t, o, renamed, "update llm_provider Mine name", "update model_mapping large targets", "update smart_model clever model_alias", "update rate_limit R2 name requests_per_minute", "update budget all amount")
	after := ownProvider(t, o)
	if after.ID != before.ID || after.Name != "Mine" || string(after.SealedSecret) != string(before.SealedSecret) {
		t.Errorf("before %+v\nafter %+v", before, after)
	}
	applied(t, o, strings.Replace(renamed, "{env.OWN_MODELS_API_KEY}", "{env.OTHER}", 1), "update llm_provider Mine api_key")
	moved := strings.NewReplacer("{env.OWN_MODELS_API_KEY}", "{env.OTHER}", "https://models.example.com", "https://other.example.com").Replace(renamed)
	applied(t, o, moved, "update llm_provider Mine base_url")
	own := ownProvider(t, o)
	if secret, err := accounts.StoredSecret(o.Keyring, &own); err != nil || secret.Reveal() != "another" {
		t.Errorf("the provider's secret at its new address is another one, %v", err)
	}
	applied(t, o, strings.Replace(moved, "    api_key: '{env.OTHER}'\n", "", 1), "update llm_provider Mine api_key")
	if own := ownProvider(t, o); own.SealedSecret != nil {
		t.Error("the provider keeps a secret that its file does not have")
	}
	// A new alias may be the fallback of one that is there.
	applied(t, o, "organization: acme\nmodel_mappings:\n  - {model_alias: judge, targets: [{provider: shared, model: small}], fallbacks: [fresh]}\n"+
		"  - {model_alias: fresh, targets: [{provider: shared, model: small}]}\n", "create model_mapping fresh", "update model_mapping judge fallbacks")
}

// TestSubjects checks that limits and budgets name users and API keys as people do, and that those for what is gone are in no
// export.
func TestSubjects(t *testing.T) {
	o := newPlace(t)
	var ids []string
	for _, claim := range []storage.UserClaim{{Subject: "a", Email: "ann@example.com"}, {Subject: "b", Email: "two@example.com"}, {Subject: "c", Email: "two@example.com"}} {
		claim.Issuer, claim.OrganizationID, claim.DerivedID, claim.Kind = issuer, organization, newID(), storage.UserPerson
		u, err := o.Store.ResolveUser(t.Context(), claim, start)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, u.ID)
	}
	key := storage.APIKey{ID: newID(), OrganizationID: organization, Name: "ci", HMAC: []byte(strings.Repeat("x", storage.APIKeyHMACSize)), Scopes: []string{"llm"}, CreatedAt: start}
	if err := o.Store.CreateAPIKey(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	const text = `organization: acme
rate_limits:
  - name: ann
    scope_type: user
    subject: ann@example.com
    traffic_type: all
    enabled: true
    requests_per_minute: 1
  - name: key
    scope_type: api_key
    subject: ci
    traffic_type: all
    enabled: true
    requests_per_minute: 1
`
	two := strings.NewReplacer("name: ann", "name: two", "ann@example.com", ids[1]).Replace(strings.Split(text, "  - name: key")[0])
	applied(t, o, text, "create rate_limit ann", "create rate_limit key")
	if diff := cmp.Diff(text, export(t, o)); diff != "" {
		t.Error(diff)
	}
	applied(t, o, two, "create rate_limit two")
	if got := export(t, o); !strings.Contains(got, "subject: "+ids[1]+"\n") {
		t.Errorf("a user whose address others have too: %s", got)
	}
	if _, err := run(t, o, strings.Replace(text, "ann@", "two@", 1), true); err == nil || !strings.Contains(err.Error(), `a.yaml:5:14: rate_limits[0].subject: there are 2 of the name "two@example.com": write the id of the user that is meant`) {
		t.Errorf("got %v", err)
	}
	if _, err := o.Store.RevokeAPIKey(t.Context(), organization, key.ID, start); err != nil {
		t.Fatal(err)
	}
	if got := export(t, o); strings.Contains(got, "api_key") {
		t.Errorf("a limit of a revoked key is exported: %s", got)
	}
}

// TestModelsRefused checks that a file with an error about models is refused whole, with the error's place.
func TestModelsRefused(t *testing.T) {
	for name, test := range map[string]struct{ from, to, want string }{
		"a secret":              {"'{env.OWN_MODELS_API_KEY}'", "sk-123", "a.yaml:14:14: providers[0].api_key: a file holds no secret: write a reference to it, {env.NAME} or {file./path}"},
		"an unknown kind":       {"kind: openai", "kind: opnai", "a.yaml:19:11: providers[1].kind: "},
		"no address":            {"    base_url: https://models.example.com\n", "", "a.yaml:11:5: providers[0].base_url: providers of this kind have no address of their own"},
		"a bad address":         {"https://models.example.com", "http://models.example.com", "a.yaml:13:15: providers[0].base_url: the scheme must be https"},
		"the configuration's":   {"name: open\n", "name: Shared\n", `a.yaml:18:11: providers[1].name: the provider "shared" is the configuration's: give this one another name`},
		"twice":                 {"name: open\n", "name: own models\n", `a.yaml:18:11: providers[1].name: a provider of the name "own models" is declared already`},
		"an unknown provider":   {"provider: open\n", "provider: opn\n", `a.yaml:35:19: model_mappings[1].targets[1].provider: there is no provider of the name "opn"`},
		"a provider's id":       {"provider: open\n", "provider_id: open\n", "a.yaml:35:9: model_mappings[1].targets[1].provider_id: objects are named here, with provider: no member has an id"},
		"an unknown fallback":   {"- given", "- gven", "a.yaml:40:9: model_mappings[1].fallbacks[1]: there is no such alias"},
		"a smart fallback":      {"- given", "- auto", "a.yaml:40:9: model_mappings[1].fallbacks[1]: this must be another alias, and not that of a smart model"},
		"the configured alias":  {"model_alias: auto", "model_alias: given", `a.yaml:43:18: smart_models[0].model_alias: the alias "given" is the configuration's: give this one another name`},
		"both kinds":            {"model_alias: auto", "model_alias: large", `a.yaml:43:18: smart_models[0].model_alias: a model of the name "large" is declared already`},
		"an unknown slot":       {"- model_alias: large\n    context", "- model_alias: lrge\n    context", "a.yaml:49:22: smart_models[0].slots[1].model_alias: there is no such alias"},
		"an unknown determiner": {"determiner_model_alias: judge", "determiner_model_alias: jdge", "a.yaml:45:29: smart_models[0].determiner_model_alias: there is no such alias"},
		"a slot too far":        {"default_slot_on_failure: 1", "default_slot_on_failure: 2", "a.yaml:53:30: smart_models[0].default_slot_on_failure: there is no slot with this index"},
		"an unknown agent":      {"subject: robot", "subject: rbot", `a.yaml:68:14: rate_limits[2].subject: there is no agent of the name "rbot"`},
		"an id":                 {"subject: robot", "scope_id: robot", "a.yaml:68:5: rate_limits[2].scope_id: objects are named here, with subject: no member has an id"},
		"no subject":            {"scope_type: org", "scope_type: org\n    subject: x", "a.yaml:81:14: budgets[0].subject: a scope of the type org has none"},
		"one scope twice":       {"traffic_type: llm", "traffic_type: all", "a.yaml:62:17: rate_limits[1].scope_type: a rate limit for the same scope and all traffic is declared already"},
		"no limit":              {"    requests_per_minute: 5\n", "", "a.yaml:66:5: rate_limits[2].requests_per_minute: give requests_per_minute or tokens_per_minute"},
		"an amount":             {"amount: 12.5", "amount: 1e3", "a.yaml:82:13: budgets[0].amount: an amount is a decimal number below a billion with at most 9 decimals"},
		"an unknown member":     {"hard_stop: true", "hardstop: true", "a.yaml:84:15: budgets[0].hardstop: Extra inputs are not permitted"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newModelPlace(t)
			text := strings.Replace(models, test.from, test.to, 1)
			if text == models {
				t.Fatal("nothing is wrong with it")
			}
			_, err := run(t, o, text, false)
			var problems Problems
			if !errors.As(err, &problems) || !strings.Contains("\n"+err.Error(), "\n"+test.want) {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "sk-123") {
				t.Errorf("it shows a secret: %v", err)
			}
			if got := export(t, o); got != "organization: acme\n" {
				t.Errorf("something was changed:\n%s", got)
			}
		})
	}
}
