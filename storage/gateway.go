package storage

import (
	"context"
	"time"
)

// Gateway keeps the records that govern the LLM gateway.
type Gateway interface {
	APIKeys
	RateLimits
	Models
	Usages
	Budgets
}

// APIKeys keeps API keys.
type APIKeys interface {
	// CreateAPIKey stores a key. It returns ErrNotFound when the organization has no such user (k.UserID), or when
	// the user was revoked at k.CreatedAt or later: a revocation also ends keys that are made during it. It returns a
	// ConflictError on hmac when any organization's key has it.
	CreateAPIKey(ctx context.Context, k APIKey) error
	// APIKeys lists an organization's keys, revoked ones too, the newest first.
	APIKeys(ctx context.Context, organization string) ([]APIKey, error)
	// UserAPIKeys lists the keys that stand for a user, the newest first.
	UserAPIKeys(ctx context.Context, organization, userID string) ([]APIKey, error)
	// APIKey reads one key.
	APIKey(ctx context.Context, organization, id string) (APIKey, error)
	// APIKeyByHMAC finds a key of any organization, whatever its state: the caller asks Valid. The whole HMAC is the
	// key of the look-up, so that its duration reveals nothing about similar keys. It returns ErrNotFound when no key
	// has it.
	APIKeyByHMAC(ctx context.Context, hmac []byte) (APIKeyHolder, error)
	// UpdateAPIKey lets edit change Name, Scopes, ExpiresAt, Disabled, Prefix and HMAC; other changes are ignored. A revoked
	// key stays revoked. It returns a ConflictError on hmac when another key has it.
	UpdateAPIKey(ctx context.Context, organization, id string, edit func(*APIKey) error) (APIKey, error)
	// NoteAPIKey notes a use of a key. The time never goes back. It is no change that anybody waits for, and no error when
	// there is no such key.
	NoteAPIKey(ctx context.Context, organization, id string, at time.Time) error
	// RevokeAPIKey sets RevokedAt. A key that is already revoked stays as it is, which is no error.
	RevokeAPIKey(ctx context.Context, organization, id string, at time.Time) (APIKey, error)
	// RevokeUserAPIKey revokes like RevokeAPIKey a key that stands for the user. It returns ErrNotFound for other
	// keys.
	RevokeUserAPIKey(ctx context.Context, organization, userID, id string, at time.Time) (APIKey, error)
}

// RateLimits keeps rate-limit policies. The object of a scope need not exist: a limit on a deleted object limits
// nothing.
type RateLimits interface {
	// CreateRateLimit stores a policy. It returns a ConflictError on scope when the organization has one for the same
	// scope and traffic.
	CreateRateLimit(ctx context.Context, l RateLimit) error
	// RateLimits lists an organization's policies, ordered by name, id.
	RateLimits(ctx context.Context, organization string) ([]RateLimit, error)
	// EnabledRateLimits lists the enforced policies, ordered by name, id.
	EnabledRateLimits(ctx context.Context, organization string) ([]RateLimit, error)
	// RateLimit reads one policy.
	RateLimit(ctx context.Context, organization, id string) (RateLimit, error)
	// UpdateRateLimit lets edit change a policy in one transaction. An error of edit is returned unchanged and
	// nothing is written. It returns a ConflictError as CreateRateLimit does. Id, organization and creation time
	// cannot be changed. edit must not call the store.
	UpdateRateLimit(ctx context.Context, organization, id string, edit func(*RateLimit) error) (RateLimit, error)
	// DeleteRateLimit deletes a policy.
	DeleteRateLimit(ctx context.Context, organization, id string) error
}

// Models keeps providers, mappings and smart models. An alias is unique among an organization's mappings and smart
// models and the configured ones. An object that a mapping or smart model refers to exists as long as they do. Both
// hold under concurrency. Edits are as in UpdateRateLimit.
type Models interface {
	// ModelSet reads all models of an organization.
	ModelSet(ctx context.Context, organization string) (ModelSet, error)

	// CreateLLMProvider stores a provider. It returns a ConflictError on name, and on id when the configuration has
	// it.
	CreateLLMProvider(ctx context.Context, configured ConfiguredModels, p LLMProvider) error
	// LLMProvider reads one provider.
	LLMProvider(ctx context.Context, organization, id string) (LLMProvider, error)
	// UpdateLLMProvider lets edit change a provider. It returns a ConflictError on name.
	UpdateLLMProvider(ctx context.Context, configured ConfiguredModels, organization, id string, edit func(*LLMProvider) error) (LLMProvider, error)
	// DeleteLLMProvider deletes a provider. It returns a ConflictError on in_use while a target of a mapping uses it.
	DeleteLLMProvider(ctx context.Context, organization, id string) error

	// CreateModelMapping stores a mapping. It returns a ConflictError on model_alias, and a *TargetError when the
	// provider of a target, or a fallback, does not exist, or a fallback is smart.
	CreateModelMapping(ctx context.Context, configured ConfiguredModels, m ModelMapping) error
	// ModelMapping reads one mapping.
	ModelMapping(ctx context.Context, organization, id string) (ModelMapping, error)
	// UpdateModelMapping lets edit change a mapping. Errors are those of CreateModelMapping, for the parts that edit
	// changed, and ConflictError on in_use when edit renames an alias that something refers to.
	UpdateModelMapping(ctx context.Context, configured ConfiguredModels, organization, id string, edit func(*ModelMapping) error) (ModelMapping, error)
	// DeleteModelMapping deletes a mapping. It returns a ConflictError on in_use while a slot, a determiner or a
	// fallback is its alias.
	DeleteModelMapping(ctx context.Context, organization, id string) error

	// CreateSmartModel stores a smart model. It returns a ConflictError on model_alias, and a *TargetError when a
	// slot or the determiner does not exist or is smart. A determiner of "" is none.
	CreateSmartModel(ctx context.Context, configured ConfiguredModels, m SmartModel) error
	// SmartModel reads one smart model.
	SmartModel(ctx context.Context, organization, id string) (SmartModel, error)
	// UpdateSmartModel lets edit change a smart model. Errors are those of CreateSmartModel, for the parts that edit
	// changed.
	UpdateSmartModel(ctx context.Context, configured ConfiguredModels, organization, id string, edit func(*SmartModel) error) (SmartModel, error)
	// DeleteSmartModel deletes a smart model.
	DeleteSmartModel(ctx context.Context, organization, id string) error
}

// Usages keeps records of usage. OnChange does not report it, and it refers to nothing: it outlives users and keys.
type Usages interface {
	// AddUsage adds a batch to the stored usage, exactly once: a batch whose Number is not above that of the node's
	// last one is ignored. Hours are cut to their start. Spends of budgets that do not exist are dropped. Values that
	// cannot be stored are left out and returned, and everything else of the batch counts; refused is nil when there
	// are none. On an error nothing was added.
	AddUsage(ctx context.Context, batch UsageBatch) (refused *UsageRefused, err error)
	// Usage sums the selected usage, by the dimensions, ordered by them in the order of Usage's members. Hour and day
	// exclude each other. Without dimensions it returns one sum, or nothing.
	Usage(ctx context.Context, f UsageFilter, by []UsageDimension) ([]Usage, error)
}

// Budgets keeps budgets and the amounts spent of them.
type Budgets interface {
	// CreateBudget stores a budget. It returns a ConflictError on scope when the organization has one for the same
	// scope and period.
	CreateBudget(ctx context.Context, b Budget) error
	// Budgets lists an organization's budgets, ordered by name, id.
	Budgets(ctx context.Context, organization string) ([]Budget, error)
	// Budget reads one budget.
	Budget(ctx context.Context, organization, id string) (Budget, error)
	// UpdateBudget lets edit change a budget, as UpdateRateLimit does. The spent amount stays; a change of scope or
	// period deletes it.
	UpdateBudget(ctx context.Context, organization, id string, edit func(*Budget) error) (Budget, error)
	// DeleteBudget deletes a budget and its spent amounts.
	DeleteBudget(ctx context.Context, organization, id string) error
	// BudgetSpends lists the amounts spent of an organization's budgets in the periods that began at since or later,
	// ordered by budget, start, subject.
	BudgetSpends(ctx context.Context, organization string, since time.Time) ([]BudgetSpend, error)
}
