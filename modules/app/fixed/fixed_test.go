package fixed

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/modules/app/issuers"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

// TestUnwritten checks that a configuration in JSON has what was given told apart from defaults, without a place that nobody
// knows, and that receivers are named by kind and host alone.
func TestUnwritten(t *testing.T) {
	c := New(Source{
		Store: json.RawMessage(`{"driver":"postgres","dsn":"{env.CANARY}"}`), Identities: []json.RawMessage{[]byte(`{"kind":"dev"}`)},
		Notify: &settings.Notify{
			Webhooks: []settings.NotifyWebhook{{URL: "https://canary:canary@hooks.example.com:8443/canary?canary", Secrets: []string{"{env.CANARY}"}}},
			Slack:    []string{"{env.CANARY}"}, Email: &settings.NotifyEmail{Server: "mail.example.com:587", User: "canary", Password: "{file./canary}"},
		},
		Audit: &settings.AuditRules{Sinks: []settings.AuditSink{{Kind: "file", Path: "/canary"}}},
	})
	view := c.View(storage.Organization{}, "https://gate.example.com", new(issuers.Issuers), nil)
	text, err := json.Marshal(view)
	if err != nil || strings.Contains(strings.ToLower(string(text)), "canary") {
		t.Errorf("%v: %s", err, text)
	}
	for _, o := range view.Options {
		want, known := map[string][]string{
			"store": {"postgres"}, "notify": {"webhook hooks.example.com", "slack", "email mail.example.com"}, "audit sink": {"file"},
			"public_url": {"https://gate.example.com"}, "coordinate": {"postgres"}, "agents": {"auto_register"},
		}[o.Option]
		given := slices.Contains([]string{"store", "notify", "audit sink"}, o.Option)
		if known && !slices.Equal(o.Values, want) || o.Given != given || o.At != nil {
			t.Errorf("%+v, want %v, given %v", o, want, given)
		}
	}
}

// TestPlaces checks that a place has the name of its file, and not where the operator keeps it.
func TestPlaces(t *testing.T) {
	c := New(Source{Store: json.RawMessage(`{"driver":"sqlite"}`), Written: map[string][]string{"store": {"/srv/secret place/conf.d/edge.caddyfile:7"}}})
	for _, o := range c.View(storage.Organization{}, "", new(issuers.Issuers), nil).Options {
		if o.Option == "store" && (o.At == nil || *o.At != "edge.caddyfile:7") {
			t.Errorf("%+v", o)
		}
	}
}
