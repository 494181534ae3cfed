package accounts

import (
	"cmp"
	"time"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
)

// Models holds the models that the callers of an organization can ask for: its own aliases and the configuration's. It
// is shared by requests and must not be changed, nor may the values it points to.
type Models struct {
	byAlias map[string]*Model
	aliases []string // sorted
}

// Model is the target of an alias.
type Model struct {
	Alias       string
	Description string
	CreatedAt   time.Time // zero for the configuration's
	// Smart is set for a smart model; it has no targets of its own.
	Smart   *storage.SmartModel
	Targets []Target
	// Fallbacks are the models whose targets are tried after Targets, in order; their own fallbacks are not.
	Fallbacks []*Model
	// MaxOutput is the greatest number of tokens that it makes for one choice; 0: not set.
	MaxOutput int64
}

// Target is a model of a provider.
type Target struct {
	Account  *Account
	Model    string // the provider's name of it
	Weight   int
	Timeouts storage.ModelTimeouts // zero members take the gateway's values
}

// Find returns the model of an alias. Disabled smart models are not found.
func (m *Models) Find(alias string) (*Model, bool) {
	found, ok := m.byAlias[alias]
	return found, ok
}

// All calls each with every model that can be asked for, ordered by alias.
func (m *Models) All(each func(*Model) bool) {
	for _, alias := range m.aliases {
		if !each(m.byAlias[alias]) {
			return
		}
	}
}

// MostOutput returns the greatest number of tokens for one choice of any model that can answer a call to this one.
func (m *Model) MostOutput() int64 {
	most := cmp.Or(m.MaxOutput, limit.MostOutput)
	for _, f := range m.Fallbacks {
		most = max(most, cmp.Or(f.MaxOutput, limit.MostOutput))
	}
	return most
}

// addMappings adds an organization's mappings, whose fallbacks may be each other and the configuration's models.
func (m *Models) addMappings(mappings []storage.ModelMapping, accounts map[string]*Account) {
	for i := range mappings {
		mapping := &mappings[i]
		m.byAlias[mapping.Alias] = &Model{
			Alias: mapping.Alias, Description: mapping.Description, CreatedAt: mapping.CreatedAt, Targets: targetsAt(accounts, mapping.Targets),
			MaxOutput: mapping.MaxOutputTokens,
		}
	}
	for i := range mappings {
		mapping := &mappings[i]
		model := m.byAlias[mapping.Alias]
		for _, alias := range mapping.Fallbacks {
			if fallback := m.byAlias[alias]; fallback != nil {
				model.Fallbacks = append(model.Fallbacks, fallback)
			}
		}
	}
}

// targetsAt returns the targets of a mapping whose accounts exist.
func targetsAt(accounts map[string]*Account, stored []storage.ModelTarget) (targets []Target) {
	for _, t := range stored {
		account := accounts[t.ProviderID]
		if account == nil {
			continue // an account of the configuration, which no longer has it
		}
		targets = append(targets, Target{Account: account, Model: t.Model, Weight: t.Weight, Timeouts: within(t.Timeouts, account.timeouts)})
	}
	return targets
}

// within fills the unset members of timeouts from the surrounding ones.
func within(t, around storage.ModelTimeouts) storage.ModelTimeouts {
	return storage.ModelTimeouts{
		Connect: cmp.Or(t.Connect, around.Connect), Response: cmp.Or(t.Response, around.Response), Idle: cmp.Or(t.Idle, around.Idle),
	}
}
