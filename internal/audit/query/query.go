// Package query reads pages and spans of the audit log in a store.
package query

import (
	"cmp"
	"context"
	"encoding/hex"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/storage"
)

// Row is one event for display: an intent and its outcome make one row.
type Row struct {
	storage.AuditEntry
	Node     string
	Segment  string
	Sequence int64
	Hash     string // hex; of the first record
}

// Filter selects records of an organization's audit log. Zero members select all; From and To are required.
type Filter struct {
	OrganizationID string
	From, To       time.Time // To is exclusive

	Kinds                                         []storage.AuditKind
	UserID, AgentID, ServerID                     string
	Tool, Decision, Outcome, PolicyID, ApprovalID string
	Session                                       string
}

func (f *Filter) passes(e *storage.AuditEntry) bool {
	if len(f.Kinds) > 0 && !slices.Contains(f.Kinds, e.Kind) {
		return false
	}
	for _, pair := range [...]struct{ want, have string }{
		{f.UserID, e.UserID}, {f.AgentID, e.AgentID}, {f.ServerID, e.ServerID}, {f.Tool, e.Tool}, {f.Decision, e.Decision},
		{f.Outcome, e.Outcome}, {f.PolicyID, e.PolicyID}, {f.ApprovalID, e.ApprovalID}, {f.Session, e.Session},
	} {
		if pair.want != "" && pair.want != pair.have {
			return false
		}
	}
	return true
}

// Page reads one page of the records in the store, newest first.
func Page(ctx context.Context, store storage.Audits, f Filter, page storage.PageRequest) (storage.Page[Row], error) {
	var result storage.Page[Row]
	first := (page.Number - 1) * page.Limit
	to := f.To.Truncate(format.Precision)
	completed := make(completions)
	err := backwards(ctx, store, storage.AuditFilter{OrganizationID: f.OrganizationID, From: f.From, To: to.Add(format.GroupSpan)}, func(r *storage.AuditRecord) {
		e, err := format.EntryOf(r)
		if err != nil {
			return // tampered with: a verification reports it
		}
		if completed.take(&e, to) || !e.At.Before(to) {
			return
		}
		completed.complete(&e)
		if !f.passes(&e) {
			return
		}
		if result.Total >= first && (page.Limit == 0 || result.Total < first+page.Limit) {
			result.Items = append(result.Items, Row{AuditEntry: e, Node: r.Node, Segment: r.Segment, Sequence: r.Sequence, Hash: hex.EncodeToString(r.Hash[:])})
		}
		result.Total++
	})
	return result, err
}

// completions holds outcomes by the ids of their intents, which are older.
type completions map[string]completion

type completion struct {
	storage.AuditOutcome
	approvalID string
	detail     map[string]any
}

// take keeps the outcomes of an entry that are before to. It returns false for entries that have no outcome of another
// entry.
func (c completions) take(e *storage.AuditEntry, to time.Time) bool {
	switch {
	case e.Call != "" && e.At.Before(to):
		c[e.Call] = completion{
			AuditOutcome: storage.AuditOutcome{Outcome: e.Outcome, Duration: e.Duration, UpstreamStatus: e.UpstreamStatus},
			approvalID:   e.ApprovalID, detail: e.Detail,
		}
	case e.Call == "" && len(e.Outcomes) == 0:
		return false
	}
	for _, o := range e.Outcomes {
		if o.At.Before(to) {
			c[o.Call] = completion{AuditOutcome: o}
		}
	}
	return true
}

// complete adds the outcome to its intent.
func (c completions) complete(e *storage.AuditEntry) {
	outcome, ok := c[e.ID]
	if !ok {
		return
	}
	delete(c, e.ID)
	e.Outcome, e.Duration, e.UpstreamStatus = outcome.Outcome, outcome.Duration, outcome.UpstreamStatus
	e.ApprovalID = cmp.Or(e.ApprovalID, outcome.approvalID)
	for name, value := range outcome.detail {
		if e.Detail == nil {
			e.Detail = make(map[string]any)
		}
		e.Detail[name] = value
	}
}

// pageChunks is the number of chunks that are read at once.
const pageChunks = 32

// window is a time span with all records of an organization in it.
type window struct {
	from    time.Time
	records []timed // oldest first
}

type timed struct {
	at time.Time
	storage.AuditRecord
	chunk *storage.AuditChunk // in which the record is; nil: its hash is known
}

// readWindow reads the last part of [f.From, f.To) that can be read at once. Both must be multiples of precision.
func readWindow(ctx context.Context, store storage.Audits, f storage.AuditFilter) (window, error) {
	return readChunks(ctx, store, f, pageChunks, true)
}

// readChunks reads the last part of a span that is in so many chunks. Without hashed, the records of chunks have no hashes.
func readChunks(ctx context.Context, store storage.Audits, f storage.AuditFilter, most int, hashed bool) (window, error) {
	w := window{from: f.From}
	var chunks []storage.AuditChunk
	for limit := most; ; limit *= 2 {
		f.Limit = limit
		var err error
		if chunks, err = store.AuditChunks(ctx, f); err != nil {
			return w, err
		}
		if len(chunks) < limit {
			break
		}
		// The remaining chunks end no later than the last of these.
		if from := chunks[len(chunks)-1].To; from.Before(f.To) {
			if from.After(w.from) {
				w.from = from
			}
			break
		}
	}
	for i := len(chunks) - 1; i >= 0; i-- { // the oldest first: mostly, the records are sorted then
		if !hashed {
			w.take(former.ReadTexts(&chunks[i]), f.To, &chunks[i])
			continue
		}
		records, _ := former.ReadChunk(&chunks[i]) // tampered records are shown too; a verification reports them
		w.take(records, f.To, nil)
	}
	own, err := store.AuditRecords(ctx, storage.AuditFilter{OrganizationID: f.OrganizationID, From: w.from, To: f.To})
	if err != nil {
		return w, err
	}
	w.take(own, f.To, nil)
	order := func(a, b timed) int {
		p, q := a.position(), b.position()
		return p.compare(&q)
	}
	if !slices.IsSortedFunc(w.records, order) {
		slices.SortStableFunc(w.records, order)
	}
	return w, nil
}

func (w *window) take(records []storage.AuditRecord, to time.Time, chunk *storage.AuditChunk) {
	w.records = slices.Grow(w.records, len(records))
	for _, r := range records {
		if at := format.TimeOf(r.Text); !at.Before(w.from) && at.Before(to) {
			w.records = append(w.records, timed{at, r, chunk})
		}
	}
}

// backwards calls f with the records of an organization, newest first.
func backwards(ctx context.Context, store storage.Audits, filter storage.AuditFilter, f func(*storage.AuditRecord)) error {
	filter.From, filter.To = filter.From.Truncate(format.Precision), filter.To.Truncate(format.Precision)
	for filter.From.Before(filter.To) {
		w, err := readWindow(ctx, store, filter)
		if err != nil {
			return err
		}
		for i := range slices.Backward(w.records) {
			f(&w.records[i].AuditRecord)
		}
		filter.To = w.from
	}
	return nil
}

// Records calls each with the records of an organization between filter.From and filter.To, oldest first. It stops at the
// first error of each.
func Records(ctx context.Context, store storage.Audits, filter storage.AuditFilter, each func(*storage.AuditRecord) error) error {
	filter.From, filter.To = filter.From.Truncate(format.Precision), filter.To.Truncate(format.Precision)
	end := filter.To
	// Stores read from the end. So the records are read in spans that can be read at once.
	for span := time.Hour; filter.From.Before(end); {
		if filter.To = filter.From.Add(span); filter.To.After(end) {
			filter.To = end
		}
		w, err := readWindow(ctx, store, filter)
		if err != nil {
			return err
		}
		if w.from.After(filter.From) {
			span = max(format.Precision, (span / 2).Truncate(format.Precision))
			continue
		}
		for i := range w.records {
			if err := each(&w.records[i].AuditRecord); err != nil {
				return err
			}
		}
		filter.From = filter.To
		span = min(2*span, 1000*time.Hour)
	}
	return nil
}
