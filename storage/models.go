package storage

import (
	"fmt"
	"time"
)

// LLMProvider is an account with a provider of models.
type LLMProvider struct {
	ID             string
	OrganizationID string
	Name           string // unique in the organization, without case and blanks
	Kind           string // the name of the module that speaks to it: "openai", "anthropic"
	BaseURL        string // "": the kind's own
	SealedSecret   []byte // the provider's API key; nil when it needs none
	Timeouts       ModelTimeouts
	// NoStreamOptions: it knows no stream_options in streamed chat completions.
	NoStreamOptions bool
	CreatedAt       time.Time
	UpdatedAt       time.Time
}

// ModelTimeouts bound one call to a provider. Zero members leave it to what is around: a target's to its provider's, a
// provider's to the gateway's.
type ModelTimeouts struct {
	Connect  time.Duration `json:"connect,omitempty"`
	Response time.Duration `json:"response,omitempty"` // until the response's headers
	Idle     time.Duration `json:"idle,omitempty"`     // between two bytes of a stream
}

// ModelMapping gives an alias its models.
type ModelMapping struct {
	ID             string
	OrganizationID string
	Alias          string // unique among the organization's mappings and smart models, compared exactly
	Description    string
	// Targets, at least one, in the order in which they are tried.
	Targets []ModelTarget
	// Fallbacks are aliases whose targets are tried, in order, after all of Targets have failed; their own fallbacks are not.
	// None is smart, nor the alias itself.
	Fallbacks []string
	// MaxOutputTokens is the most that its models make for one choice; 0: nobody said.
	MaxOutputTokens int64
	CreatedAt       time.Time
	UpdatedAt       time.Time
}

// ModelTarget is a model of a provider.
type ModelTarget struct {
	ProviderID string `json:"provider_id"`
	Model      string `json:"model"` // the provider's name of it
	// Weight is the target's share of the calls that begin with it. When all are 0, every call begins with the first one.
	Weight   int           `json:"weight,omitempty"`
	Timeouts ModelTimeouts `json:"timeouts,omitzero"`
}

// SmartModel is an alias that sends each request to one of several aliases.
type SmartModel struct {
	ID              string
	OrganizationID  string
	Alias           string // unique among the organization's mappings and smart models, compared exactly
	Description     string
	Enabled         bool
	DeterminerAlias string // the alias whose model classifies; not smart
	Slots           []ModelSlot
	// Breakpoints are token counts, ascending: a request as long as the n-th or longer never goes to a slot below n.
	Breakpoints             []int
	DeterminerInputMaxChars int
	DefaultSlot             int // index of the slot that is taken when the determiner fails
	Sticky                  bool
	CreatedAt               time.Time
	UpdatedAt               time.Time
}

// ModelSlot is an alias that a smart model routes to; it is not smart.
type ModelSlot struct {
	Alias string `json:"model_alias"`
	Label string `json:"label"`
}

// ModelSet is all that an organization has defined about models, in one state of the store, each ordered by name or alias.
type ModelSet struct {
	Providers []LLMProvider
	Mappings  []ModelMapping
	Smart     []SmartModel
}

// ConfiguredModels is what the configuration gives to every organization beside what the store keeps. It can be referred
// to, and its names are taken. None of its aliases is smart. A name that the configuration came to use after an organization
// did stays the organization's: whoever looks an alias up asks the organization's own first.
type ConfiguredModels struct {
	Providers map[string]string   // names by id
	Aliases   map[string]struct{} // of mappings
}

// TargetError: a mapping or smart model refers to what is not there, or to a smart model.
type TargetError struct {
	Field string // "targets", "fallbacks", "slots" or "determiner_model_alias"
	Index int    // in the list that Field names; else 0
	Smart bool   // it is there and is smart, or is the mapping itself; else it is not there
}

func (e *TargetError) Error() string {
	if e.Smart {
		return fmt.Sprintf("%s %d cannot be routed to", e.Field, e.Index)
	}
	return fmt.Sprintf("%s %d does not exist", e.Field, e.Index)
}
