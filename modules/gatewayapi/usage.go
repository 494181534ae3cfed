package gatewayapi

import (
	"slices"
	"strconv"
	"time"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/llm/llmedit"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// These are the spans of usage. A request without times gets the last days; sums by hour are many.
const (
	usageDays        = 30
	maxUsageDays     = 366
	maxUsageHourDays = 31
)

var usageDimensions = []string{
	string(storage.UsageByHour), string(storage.UsageByDay), string(storage.UsageByUser), string(storage.UsageByAPIKey),
	string(storage.UsageByAgent), string(storage.UsageByAlias), string(storage.UsageByModel),
}

// usageView is one sum. Members that are not grouped by are left out; those that did not apply are empty.
type usageView struct {
	Hour         *routes.Instant `json:"hour,omitempty"`
	Day          *string         `json:"day,omitempty"`
	UserID       *string         `json:"user_id,omitempty"`
	APIKeyID     *string         `json:"api_key_id,omitempty"`
	AgentID      *string         `json:"agent_id,omitempty"`
	Alias        *string         `json:"model_alias,omitempty"`
	Model        *string         `json:"model,omitempty"`
	Requests     int64           `json:"requests"`
	InputTokens  int64           `json:"input_tokens"`
	OutputTokens int64           `json:"output_tokens"`
	CachedTokens int64           `json:"cached_tokens"`
	Cost         llmedit.Amount  `json:"cost"`
}

type usagesView struct {
	From    routes.Instant `json:"from"`
	To      routes.Instant `json:"to"`
	GroupBy []string       `json:"group_by"`
	Data    []usageView    `json:"data"`
}

// listUsage returns sums of the usage. Hours are counted whole: those that begin at from or later, and before to.
func listUsage(q *request) (any, error) {
	dimensions := q.Query.Enums("group_by", usageDimensions...)
	bucket := q.Query.Text("bucket", validate.Text{Enum: usageBuckets}).Value
	timed := slices.Contains(dimensions, string(storage.UsageByHour)) || slices.Contains(dimensions, string(storage.UsageByDay))
	switch {
	case bucket != "" && timed:
		q.Query.Report(validate.ValueError, "Value error, bucket and a time in group_by exclude each other", "bucket")
	case bucket != "":
		dimensions = append([]string{bucket}, dimensions...)
	}
	f := storage.UsageFilter{
		OrganizationID: q.Organization(), From: q.Instant("from"), To: q.Instant("to"), UserID: q.Query.UUID("user_id", 0).Value,
		APIKeyID: q.Query.UUID("api_key_id", 0).Value, AgentID: q.Query.UUID("agent_id", 0).Value,
		Alias: q.Query.Text("model_alias", validate.Text{Max: llmedit.MaxName}).Value, Model: q.Query.Text("model", validate.Text{Max: llmedit.MaxName}).Value,
	}
	if f.To.IsZero() {
		f.To = q.now()
	}
	if f.From.IsZero() {
		f.From = f.To.AddDate(0, 0, -usageDays)
	}
	hourly := slices.Contains(dimensions, string(storage.UsageByHour))
	days := maxUsageDays
	if hourly {
		days = maxUsageHourDays
	}
	switch {
	case hourly && slices.Contains(dimensions, string(storage.UsageByDay)):
		q.Query.Report(validate.ValueError, "Value error, hour and day exclude each other", "group_by")
	case f.To.Before(f.From):
		q.Query.Report(validate.ValueError, "Value error, to is before from", "to")
	case f.To.Sub(f.From) > time.Duration(days)*24*time.Hour:
		q.Query.Report(validate.ValueError, "Value error, the span is too long", "from")
	}
	if err := q.Shape(); err != nil {
		return nil, err
	}
	by := make([]storage.UsageDimension, len(dimensions))
	for i, d := range dimensions {
		by[i] = storage.UsageDimension(d)
	}
	q.Core.Usage.Flush(q.Context())
	sums, err := q.Core.Store.Usage(q.Context(), f, by)
	if err != nil {
		return nil, err
	}
	if bucket != "" && len(by) == 1 {
		sums = withEmptyBuckets(sums, f, bucket)
	}
	if q.Prefers(routes.CSV) {
		return routes.Tabular("usage", usageTable(sums, by)), nil
	}
	return usagesView{
		From: routes.Instant(f.From), To: routes.Instant(f.To), GroupBy: routes.List(dimensions),
		Data: views(sums, func(u storage.Usage) usageView { return viewUsage(u, by) }),
	}, nil
}

// usageBuckets are the spans of sums over time.
var usageBuckets = []string{string(storage.UsageByHour), string(storage.UsageByDay)}

// withEmptyBuckets adds the spans in which nothing was used: a line between the others would show use there.
func withEmptyBuckets(sums []storage.Usage, f storage.UsageFilter, bucket string) []storage.Usage {
	each := time.Hour
	if bucket == string(storage.UsageByDay) {
		each = 24 * time.Hour
	}
	first := f.From.UTC().Truncate(time.Hour)
	if first.Before(f.From) {
		first = first.Add(time.Hour) // hours are counted whole
	}
	var all []storage.Usage
	for at := first.Truncate(each); at.Before(f.To); at = at.Add(each) {
		if len(sums) > 0 && sums[0].Hour.Equal(at) {
			all, sums = append(all, sums[0]), sums[1:]
			continue
		}
		all = append(all, storage.Usage{OrganizationID: f.OrganizationID, Hour: at})
	}
	return all
}

// usageTable returns the sums as a table: a column for each dimension, then the numbers.
func usageTable(sums []storage.Usage, by []storage.UsageDimension) [][]string {
	var names []string
	for _, d := range by {
		names = append(names, usageColumns[d])
	}
	table := [][]string{append(names, "requests", "input_tokens", "output_tokens", "cached_tokens", "cost")}
	for _, u := range sums {
		var row []string
		for _, d := range by {
			row = append(row, usageValue(&u, d))
		}
		cost, _ := llmedit.Amount(u.Cost).MarshalJSON() // never fails
		for _, n := range []int64{u.Requests, u.InputTokens, u.OutputTokens, u.CachedTokens} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		table = append(table, append(row, string(cost)))
	}
	return table
}

// usageColumns are the names of dimensions in rows, as those of usageView.
var usageColumns = map[storage.UsageDimension]string{
	storage.UsageByHour: "hour", storage.UsageByDay: "day", storage.UsageByUser: "user_id", storage.UsageByAPIKey: "api_key_id",
	storage.UsageByAgent: "agent_id", storage.UsageByAlias: "model_alias", storage.UsageByModel: "model",
}

func usageValue(u *storage.Usage, d storage.UsageDimension) string {
	switch d {
	case storage.UsageByHour:
		return u.Hour.UTC().Format(time.RFC3339)
	case storage.UsageByDay:
		return u.Hour.UTC().Format(time.DateOnly)
	case storage.UsageByUser:
		return u.UserID
	case storage.UsageByAPIKey:
		return u.APIKeyID
	case storage.UsageByAgent:
		return u.AgentID
	case storage.UsageByAlias:
		return u.Alias
	case storage.UsageByModel:
		return u.Model
	}
	return ""
}

func viewUsage(u storage.Usage, by []storage.UsageDimension) usageView {
	v := usageView{Requests: u.Requests, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CachedTokens: u.CachedTokens, Cost: llmedit.Amount(u.Cost)}
	for _, d := range by {
		switch d {
		case storage.UsageByHour:
			v.Hour = (*routes.Instant)(&u.Hour)
		case storage.UsageByDay:
			day := u.Hour.UTC().Format(time.DateOnly)
			v.Day = &day
		case storage.UsageByUser:
			v.UserID = &u.UserID
		case storage.UsageByAPIKey:
			v.APIKeyID = &u.APIKeyID
		case storage.UsageByAgent:
			v.AgentID = &u.AgentID
		case storage.UsageByAlias:
			v.Alias = &u.Alias
		case storage.UsageByModel:
			v.Model = &u.Model
		}
	}
	return v
}
