package declare

import (
	"strings"
	"time"
	"unicode"

	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/llm/llmedit"
	"github.com/durward-gateway/durward/storage"
)

// written form of what belongs to the LLM gateway.
type (
	providerForm struct {
		Name          string        `json:"name"`
		Kind          string        `json:"kind"`
		BaseURL       string        `json:"base_url,omitempty"`
		Secret        string        `json:"api_key,omitempty"` // a reference
		Timeouts      *timeoutsForm `json:"timeouts,omitempty"`
		StreamOptions string        `json:"stream_options,omitempty"`
	}
	timeoutsForm struct {
		Connect  int64 `json:"connect_ms,omitempty"`
		Response int64 `json:"response_ms,omitempty"`
		Idle     int64 `json:"idle_ms,omitempty"`
	}
	mappingForm struct {
		Alias       string       `json:"model_alias"`
		Description string       `json:"description,omitempty"`
		Targets     []targetForm `json:"targets"`
		Fallbacks   []string     `json:"fallbacks,omitempty"`
		MaxOutput   int64        `json:"max_output_tokens,omitempty"`
	}
	targetForm struct {
		Provider string        `json:"provider"`
		Model    string        `json:"model"`
		Weight   int           `json:"weight,omitempty"`
		Timeouts *timeoutsForm `json:"timeouts,omitempty"`
	}
	smartForm struct {
		Alias       string     `json:"model_alias"`
		Description string     `json:"description,omitempty"`
		Enabled     bool       `json:"enabled"`
		Determiner  string     `json:"determiner_model_alias,omitempty"`
		Slots       []slotForm `json:"slots"`
		Breakpoints []int      `json:"context_breakpoints,omitempty"`
		MaxChars    int        `json:"determiner_input_max_chars"`
		DefaultSlot int        `json:"default_slot_on_failure,omitempty"`
		Sticky      bool       `json:"sticky,omitempty"`
	}
	slotForm struct {
		Alias string `json:"model_alias"`
		Label string `json:"label,omitempty"`
	}
	scopeForm struct {
		Type    storage.ScopeType `json:"scope_type"`
		Subject string            `json:"subject,omitempty"` // the name of what the scope's id names
		Value   string            `json:"scope_value,omitempty"`
	}
	limitForm struct {
		Name string `json:"name"`
		scopeForm
		Traffic  storage.TrafficType `json:"traffic_type"`
		Enabled  bool                `json:"enabled"`
		Requests *int64              `json:"requests_per_minute,omitempty"`
		Tokens   *int64              `json:"tokens_per_minute,omitempty"`
	}
	budgetForm struct {
		Name string `json:"name"`
		scopeForm
		Period   storage.BudgetPeriod `json:"period"`
		Amount   llmedit.Amount       `json:"amount"`
		Alert    int                  `json:"alert_percent"`
		HardStop bool                 `json:"hard_stop"`
		Enabled  bool                 `json:"enabled"`
	}
)

func formOfTimeouts(t storage.ModelTimeouts) *timeoutsForm {
	if t == (storage.ModelTimeouts{}) {
		return nil
	}
	in := func(d time.Duration) int64 { return d.Milliseconds() }
	return &timeoutsForm{in(t.Connect), in(t.Response), in(t.Idle)}
}

// formOfProvider returns a provider without a reference to its secret.
func formOfProvider(p storage.LLMProvider) providerForm {
	f := providerForm{Name: p.Name, Kind: p.Kind, BaseURL: p.BaseURL, Timeouts: formOfTimeouts(p.Timeouts)}
	if p.NoStreamOptions {
		f.StreamOptions = accounts.StreamOptionsOff
	}
	return f
}

// keyReference returns the reference by which an export names a provider's secret. Another provider's name may give the same
// one, which taken holds.
func keyReference(name string, taken map[string]bool) string {
	base := strings.Map(func(r rune) rune {
		if r = unicode.ToUpper(r); 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, name)
	for taken[base] {
		base += "_"
	}
	taken[base] = true
	return "{env." + base + "_API_KEY}"
}

func (n *names) formOfMapping(m storage.ModelMapping) mappingForm {
	f := mappingForm{Alias: m.Alias, Description: m.Description, Fallbacks: m.Fallbacks, MaxOutput: m.MaxOutputTokens}
	for _, t := range m.Targets {
		name := n.providerOf[t.ProviderID]
		if name == "" {
			name = t.ProviderID // of a former configuration
		}
		f.Targets = append(f.Targets, targetForm{name, t.Model, t.Weight, formOfTimeouts(t.Timeouts)})
	}
	return f
}

func formOfSmart(m storage.SmartModel) smartForm {
	f := smartForm{
		Alias: m.Alias, Description: m.Description, Enabled: m.Enabled, Determiner: m.DeterminerAlias, Breakpoints: m.Breakpoints,
		MaxChars: m.DeterminerInputMaxChars, DefaultSlot: m.DefaultSlot, Sticky: m.Sticky,
	}
	for _, s := range m.Slots {
		f.Slots = append(f.Slots, slotForm(s))
	}
	return f
}

func (n *names) formOfScope(s storage.Scope) scopeForm {
	return scopeForm{s.Type, n.subject(s), s.Value}
}

func (n *names) formOfLimit(l storage.RateLimit) limitForm {
	return limitForm{l.Name, n.formOfScope(l.Scope), l.Traffic, l.Enabled, l.RequestsPerMinute, l.TokensPerMinute}
}

func (n *names) formOfBudget(b storage.Budget) budgetForm {
	return budgetForm{b.Name, n.formOfScope(b.Scope), b.Period, llmedit.Amount(b.Amount), b.AlertPercent, b.HardStop, b.Enabled}
}
