package storage

import (
	"fmt"
	"time"
)

// LLMProvider is an account at a model provider.
type LLMProvider struct {
	ID             string
	OrganizationID string
	Name           string // unique in the organization, without case and blanks
	Kind           string // the name of the module for its protocol: "openai", "anthropic"
	BaseURL        string // "": the kind's own
	SealedSecret   []byte // the provider's API key; nil when it needs none
	Timeouts       ModelTimeouts
	// NoStreamOptions says that it does not know stream_options in streamed chat completions.
	NoStreamOptions bool
	CreatedAt       time.Time
	UpdatedAt       time.Time
}

// ModelTimeouts bounds one call to a provider. A zero member takes the value of the next level: a target's that of
// its provider, a provider's that of the gateway.
type ModelTimeouts struct {
	Connect  time.Duration `json:"connect,omitempty"`
	Response time.Duration `json:"response,omitempty"` // until the response's headers
	Idle     time.Duration `json:"idle,omitempty"`     // between two bytes of a stream
}

// ModelMapping maps an alias to its models.
type ModelMapping struct {
	ID             string
	OrganizationID string
	Alias          string // unique among the organization's mappings and smart models, compared exactly
	Description    string
	// Targets lists at least one target, in the order in which they are tried.
	Targets []ModelTarget
	// Fallbacks lists aliases whose targets are tried, in order, after all of Targets have failed; their own
	// fallbacks are not. None is smart, nor the alias itself.
	Fallbacks []string
	// MaxOutputTokens is the maximum that its models produce for one choice; 0 means unknown.
	MaxOutputTokens int64
	CreatedAt       time.Time
	UpdatedAt       time.Time
}

// ModelTarget is a model of a provider.
type ModelTarget struct {
	ProviderID string `json:"provider_id"`
	Model      string `json:"model"` // the provider's name of it
	// Weight is the target's share of the calls that begin with it. When all are 0, every call begins with the first
	// one.
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
	// Breakpoints holds token counts, ascending: a request as long as the n-th or longer never goes to a slot below
	// n.
	Breakpoints             []int
	DeterminerInputMaxChars int
	DefaultSlot             int // index of the slot for requests on which the determiner fails
	Sticky                  bool
	CreatedAt               time.Time
	UpdatedAt               time.Time
}

// ModelSlot is an alias to which a smart model routes; it is not smart.
type ModelSlot struct {
	Alias string `json:"model_alias"`
	Label string `json:"label"`
}

// ModelSet holds all models that an organization has defined, in one state of the store, each list ordered by name or
// alias.
type ModelSet struct {
	Providers []LLMProvider
	Mappings  []ModelMapping
	Smart     []SmartModel
}

// ConfiguredModels holds the models that the configuration gives to every organization in addition to the store's.
// They can be referred to, and their names are taken. None of their aliases is smart. When an organization used a
// name before the configuration did, the name stays the organization's: a look-up of an alias asks the organization's
// own models first.
type ConfiguredModels struct {
	Providers map[string]string   // names by id
	Aliases   map[string]struct{} // of mappings
}

// TargetError says that a mapping or smart model refers to an object that does not exist, or to a smart model.
type TargetError struct {
	Field string // "targets", "fallbacks", "slots" or "determiner_model_alias"
	Index int    // in the list that Field names; else 0
	Smart bool   // it exists and is smart, or is the mapping itself; else it does not exist
}

func (e *TargetError) Error() string {
	if e.Smart {
		return fmt.Sprintf("%s %d cannot be routed to", e.Field, e.Index)
	}
	return fmt.Sprintf("%s %d does not exist", e.Field, e.Index)
}
