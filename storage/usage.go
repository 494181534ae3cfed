package storage

import "time"

// Usage is what was used of models in one hour, by whom and of what. Empty members do not apply. In sums, members by which
// is not grouped are empty.
type Usage struct {
	OrganizationID string
	Hour           time.Time // its start, in UTC
	UserID         string
	APIKeyID       string
	AgentID        string
	Alias          string // that the client called
	Model          string // the provider's name of what answered
	UsageCounts
}

// UsageCounts are amounts that add up. None is negative; sums stay at the largest number.
type UsageCounts struct {
	Requests     int64
	InputTokens  int64
	OutputTokens int64
	CachedTokens int64 // of InputTokens, those that the provider had cached
	// Cost in billionths of the price table's currency unit.
	Cost int64
}

// UsageBatch is what a node has counted since its batch before.
type UsageBatch struct {
	Node string
	// Number ascends with a node's batches, over its restarts too. A batch that is added again counts once.
	Number int64
	Usage  []Usage
	Spends []BudgetSpend
	// SentAt is when it is sent. A node that sends nothing for ForgetNodeAfter is forgotten.
	SentAt time.Time `json:"-"`
}

// ForgetNodeAfter is how long a node's last number is kept. Each start is a node of its own, and their numbers would grow without
// bound. A batch that was added, stayed in a node's files and is sent again after that time counts twice.
const ForgetNodeAfter = 90 * 24 * time.Hour

// UsageRefused is what of a batch the store could not keep.
type UsageRefused struct {
	Usage  []Usage
	Spends []BudgetSpend
	// Reason is why the first of them was refused; see Unstorable.
	Reason error `json:"-"`
}

// UsageDimension is what sums of usage can be grouped by.
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

// UsageFilter narrows what of an organization's usage is summed. Zero members do not narrow.
type UsageFilter struct {
	OrganizationID string
	From, To       time.Time // hours that begin at From or later, and before To
	UserID         string
	APIKeyID       string
	AgentID        string
	Alias          string
	Model          string
}

// BudgetPeriod is how long a budget's amount has to last.
type BudgetPeriod string

// Periods of budgets, by the calendar in UTC.
const (
	BudgetDay   BudgetPeriod = "day"
	BudgetMonth BudgetPeriod = "month"
)

// Start is when the period that t is in began.
func (p BudgetPeriod) Start(t time.Time) time.Time {
	year, month, day := t.UTC().Date()
	if p == BudgetMonth {
		day = 1
	}
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// Budget bounds what the calls in a scope may cost. An organization has one for a scope and period.
type Budget struct {
	ID             string
	OrganizationID string
	Name           string
	Scope          Scope
	Period         BudgetPeriod
	Amount         int64 // for a period, in the unit of UsageCounts.Cost
	// AlertPercent of Amount: whoever has spent as much is told of; 0: nobody is.
	AlertPercent int
	// HardStop: calls are refused when Amount is spent.
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

// Target returns what the budget bounds.
func (b *Budget) Target() BudgetTarget { return BudgetTarget{b.Scope, b.Period} }

// BudgetSpend is what was spent of a budget in one period.
type BudgetSpend struct {
	OrganizationID string
	BudgetID       string
	// Subject is which of those that the budget applies to apart; "" for a pool.
	Subject string
	Start   time.Time // of the period
	Cost    int64     // not negative
	// Target names what the budget bounded at that time. AddUsage drops the spend when the budget bounds something else by now.
	// The zero value: whatever it bounds. What is read has none.
	Target BudgetTarget
}
