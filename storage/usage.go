package storage

import "time"

// Usage holds the use of models in one hour, by user, key, model and so on. Empty members do not apply. In sums,
// members that are not grouped by are empty.
type Usage struct {
	OrganizationID string
	Hour           time.Time // its start, in UTC
	UserID         string
	APIKeyID       string
	AgentID        string
	Alias          string // as the client called it
	Model          string // the provider's name of the answering model
	UsageCounts
}

// UsageCounts holds amounts that add up. None is negative; sums stay at the largest number.
type UsageCounts struct {
	Requests     int64
	InputTokens  int64
	OutputTokens int64
	CachedTokens int64 // of InputTokens, those that the provider had cached
	// Cost is in billionths of the price table's currency unit.
	Cost int64
}

// UsageBatch holds the usage that a node has counted since its previous batch.
type UsageBatch struct {
	Node string
	// Number ascends with a node's batches, over its restarts too. A batch that is added again counts once.
	Number int64
	Usage  []Usage
	Spends []BudgetSpend
	// SentAt is the time of sending. A node that sends nothing for ForgetNodeAfter is forgotten.
	SentAt time.Time `json:"-"`
}

// ForgetNodeAfter is the time for which a node's last number is kept. Each start is a node of its own, and their numbers would
// grow without bound. A batch that was added, stayed in a node's files and is sent again after that time counts
// twice.
const ForgetNodeAfter = 90 * 24 * time.Hour

// UsageRefused holds the parts of a batch that the store could not keep.
type UsageRefused struct {
	Usage  []Usage
	Spends []BudgetSpend
	// Reason is the reason for the first of them; see Unstorable.
	Reason error `json:"-"`
}

// UsageDimension is a dimension by which sums of usage can be grouped.
type UsageDimension string

// Dimensions of usage.
const (
	UsageByHour   UsageDimension = "hour"
	UsageByDay    UsageDimension = "day" // in UTC
	UsageByUser   UsageDimension = "user"
	UsageByAPIKey UsageDimension = "api_key"
	UsageByAgent  UsageDimension = "agent"
	UsageByAlias  UsageDimension = "model_alias"
	UsageByModel  UsageDimension = "model"
)

// UsageFilter selects the usage of an organization to be summed. Zero members do not narrow.
type UsageFilter struct {
	OrganizationID string
	From, To       time.Time // hours that begin at From or later, and before To
	UserID         string
	APIKeyID       string
	AgentID        string
	Alias          string
	Model          string
}

// BudgetPeriod is the period for which a budget's amount must last.
type BudgetPeriod string

// Periods of budgets, by the calendar in UTC.
const (
	BudgetDay   BudgetPeriod = "day"
	BudgetMonth BudgetPeriod = "month"
)

// Start returns the beginning of the period that contains t.
func (p BudgetPeriod) Start(t time.Time) time.Time {
	year, month, day := t.UTC().Date()
	if p == BudgetMonth {
		day = 1
	}
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// Budget bounds the cost of the calls in a scope. An organization has one for a scope and period.
type Budget struct {
	ID             string
	OrganizationID string
	Name           string
	Scope          Scope
	Period         BudgetPeriod
	Amount         int64 // for a period, in the unit of UsageCounts.Cost
	// AlertPercent is the percentage of Amount that, when spent, is reported; 0 reports nothing.
	AlertPercent int
	// HardStop refuses calls when Amount is spent.
	HardStop  bool
	Enabled   bool
	CreatedAt time.Time
	UpdatedAt time.Time
}

// BudgetTarget names the spending that a budget bounds. A budget with another target is another budget: its former spends are
// forgotten.
type BudgetTarget struct {
	Scope  Scope
	Period BudgetPeriod
}

// Target returns the spending that the budget bounds.
func (b *Budget) Target() BudgetTarget { return BudgetTarget{b.Scope, b.Period} }

// BudgetSpend holds the amount spent of a budget in one period.
type BudgetSpend struct {
	OrganizationID string
	BudgetID       string
	// Subject is the one of the separately counted subjects of the budget; "" for a pool.
	Subject string
	Start   time.Time // of the period
	Cost    int64     // not negative
	// Target names the budget's target at that time. AddUsage drops the spend when the budget has another target by
	// now. The zero value means the present target. Spends that are read have none.
	Target BudgetTarget
}
