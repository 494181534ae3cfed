package settings

import (
	"cmp"
	"errors"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// Provider is an account with a provider of models that every organization can use.
type Provider struct {
	// The provider's protocol: the name of a module of `durward.providers`, such as `openai` or `anthropic`. Required.
	Kind string `json:"kind,omitempty"`
	// The name by which aliases and rate limits know it. Default: the kind.
	Name string `json:"name,omitempty"`
	// The base URL, in the form in which the provider's clients take it. Default: `https://api.openai.com/v1` for the kind
	// `openai`, `https://api.anthropic.com` for `anthropic`; a kind that has no address of its own needs one.
	BaseURL string `json:"base_url,omitempty"`
	// A reference to its API key, `{env.NAME}` or `{file./path}`. Default: none is sent.
	Key string `json:"key,omitempty"`
	// The longest time for making a connection. Default: 5s.
	ConnectTimeout caddy.Duration `json:"connect_timeout,omitempty"`
	// The longest time until an answer begins. Default: 5m.
	ResponseTimeout caddy.Duration `json:"response_timeout,omitempty"`
	// The longest silence of an answer that has begun. Default: `idle` of `streams`.
	IdleTimeout caddy.Duration `json:"idle_timeout,omitempty"`
	// Whether streamed chat completions have `stream_options`, which asks the provider for their usage: `auto` or `off`.
	// With `auto`, a refusal that names it leads to one more try without it; this is remembered for an hour. Without it
	// usage is estimated. Default: `auto`.
	StreamOptions string `json:"stream_options,omitempty"`
}

// Alias is a name under which every organization can ask for models.
type Alias struct {
	// The name that callers write as `model`. Required.
	Name string `json:"name,omitempty"`
	// The description that callers read about it. Default: none.
	Description string `json:"description,omitempty"`
	// The models that answer. At least one is required.
	Targets []Target `json:"targets,omitempty"`
	// The most tokens of output that its models make for one choice. No call reserves more, whatever it asks for. Default:
	// 1000000.
	MaxOutputTokens int64 `json:"max_output_tokens,omitempty"`
	// Other aliases of the configuration, whose targets are tried when all targets of this alias failed. Default: none.
	Fallbacks []string `json:"fallbacks,omitempty"`
}

// Target is a model of a configured provider.
type Target struct {
	// The provider's name. Required.
	Provider string `json:"provider,omitempty"`
	// The provider's name of the model. Required.
	Model string `json:"model,omitempty"`
	// The target's share of the calls that begin with it, in relation to the weights of the others. Default: 0; when all are 0,
	// the first one is tried first.
	Weight int `json:"weight,omitempty"`
}

// Account resolves the account and its key. It returns the name also when it fails.
func (p *Provider) Account() (accounts.AccountSettings, error) {
	s := accounts.AccountSettings{
		Kind: p.Kind, Name: cmp.Or(p.Name, p.Kind), BaseURL: p.BaseURL, NoStreamOptions: p.StreamOptions == accounts.StreamOptionsOff,
		Timeouts: storage.ModelTimeouts{Connect: time.Duration(p.ConnectTimeout), Response: time.Duration(p.ResponseTimeout), Idle: time.Duration(p.IdleTimeout)},
	}
	switch {
	case p.StreamOptions != "" && p.StreamOptions != accounts.StreamOptionsAuto && p.StreamOptions != accounts.StreamOptionsOff:
		return s, errors.New("stream_options is auto or off")
	case p.Key == "":
		return s, nil
	case !IsReference(p.Key):
		return s, errors.New("key takes a reference, {env.NAME} or {file./path}: a key written here would be readable on the admin endpoint")
	}
	key, err := Resolve(p.Key)
	if err != nil {
		return s, err
	}
	if !accounts.SecretText.MatchString(key) {
		return s, errors.New("the key has characters that no header may have")
	}
	s.Secret = seal.NewSecret(key)
	return s, nil
}

// Model returns the models behind the alias.
func (a *Alias) Model() accounts.ModelSettings {
	s := accounts.ModelSettings{Alias: a.Name, Description: a.Description, MaxOutput: a.MaxOutputTokens, Fallbacks: a.Fallbacks}
	for _, t := range a.Targets {
		s.Targets = append(s.Targets, accounts.TargetSettings{Account: t.Provider, Model: t.Model, Weight: t.Weight})
	}
	return s
}
