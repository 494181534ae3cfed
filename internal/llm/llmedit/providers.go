package llmedit

import (
	"time"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// These are the bounds of providers.
const (
	maxURL    = 2048
	maxSecret = 4096
)

// readTimeouts reads all timeouts: an absent one counts as null.
func readTimeouts(o *validate.Object) validate.Field[storage.ModelTimeouts] {
	field := o.Object("timeouts", validate.Nullable)
	out := validate.Field[storage.ModelTimeouts]{Present: field.Present, Null: field.Null}
	if field.Value != nil {
		read := func(name string) time.Duration {
			rule := validate.Integer{Flags: validate.Nullable, Min: 1, Max: accounts.MaxTimeout.Milliseconds()}
			return time.Duration(field.Value.Int(name, rule).Value) * time.Millisecond
		}
		out.Value = storage.ModelTimeouts{Connect: read("connect_ms"), Response: read("response_ms"), Idle: read("idle_ms")}
	}
	return out
}

// ProviderEdit holds what was written about a provider.
type ProviderEdit struct {
	name, kind, baseURL, streamOptions validate.Field[string]

	secret validate.Field[seal.Secret]

	timeouts validate.Field[storage.ModelTimeouts]
}

// ReadProvider reads a provider for a gateway with a base.
func ReadProvider(o *validate.Object, create bool, base *accounts.Base) ProviderEdit {
	e := ProviderEdit{
		name:     o.Name(required(create), MaxName),
		kind:     o.Text("kind", validate.Text{Flags: required(create), Enum: base.Kinds()}),
		baseURL:  o.Text("base_url", validate.Text{Flags: validate.Nullable, Min: 1, Max: maxURL}),
		secret:   o.Secret("api_key", validate.Text{Flags: validate.Nullable, Min: 1, Max: maxSecret, Pattern: accounts.SecretText}),
		timeouts: readTimeouts(o),

		streamOptions: o.Text("stream_options", validate.Text{Enum: []string{accounts.StreamOptionsAuto, accounts.StreamOptionsOff}}),
	}
	if e.baseURL.Value != "" {
		if reason := base.CheckBaseURL(e.baseURL.Value); reason != "" {
			o.Report(validate.ValueError, "Value error, "+reason, "base_url")
		}
	}
	return e
}

// Apply changes a provider. Its secret is bound to the address for which it was given: it is not sent to another one.
func (e ProviderEdit) Apply(base *accounts.Base, vault accounts.Vault, p *storage.LLMProvider) error {
	kind, baseURL := p.Kind, p.BaseURL
	set(&p.Name, e.name)
	set(&p.Kind, e.kind)
	replace(&p.BaseURL, e.baseURL)
	replace(&p.Timeouts, e.timeouts)
	if e.streamOptions.Present {
		p.NoStreamOptions = e.streamOptions.Value == accounts.StreamOptionsOff
	}
	switch {
	case p.BaseURL == "" && base.NeedsBaseURL(p.Kind):
		return validate.Problems{{Loc: []any{"body", "base_url"}, Msg: "Value error, providers of this kind have no address of their own", Type: validate.ValueError}}
	case e.secret.Present:
		return accounts.SealSecret(vault, p, e.secret.Value)
	case p.SealedSecret != nil && (p.Kind != kind || p.BaseURL != baseURL):
		return validate.Problems{{
			Loc: []any{"body", "api_key"}, Msg: "Value error, give it again when kind or base_url change: it is not sent to another place", Type: validate.ValueError,
		}}
	}
	return nil
}
