package query

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/storage"
)

// These bound the work of one search, whatever the log holds: its time grows with the records that it reads.
const (
	// maxRead is the number of records that a search reads at most.
	maxRead = 20_000
	// maxAhead is the number of records in which outcomes are looked for that are newer than the page.
	maxAhead = 20_000
	// firstChunks is the number of chunks in the first window of a search: most pages need no more.
	firstChunks = 2
	// firstAhead is the span in which an outcome is looked for first.
	firstAhead = 2 * time.Second
)

// Found holds the rows that a search has found, newest first.
type Found struct {
	Rows []Row
	// Next is where the search goes on; nil: it has reached the beginning of the span.
	Next *Position
	// Partial reports that the search ended at its bound: older records may match, and the outcome of a row may be missing.
	Partial bool
	// From is the time down to which the search has read.
	From time.Time
}

// Search reads at most limit rows that are older than after, newest first. nil is the end of the span. Unlike [Page] it
// counts nothing, and so it reads no further than it needs.
func Search(ctx context.Context, store storage.Audits, f Filter, after *Position, limit int) (Found, error) {
	s := newScan(store, f)
	found := Found{From: f.From}
	hashes := make(map[*storage.AuditChunk][]storage.AuditRecord)
	last, err := s.run(ctx, after, func(r *timed, _ []byte) (bool, error) {
		e, err := format.EntryOf(&r.AuditRecord)
		if err != nil {
			return true, nil // tampered with: a verification reports it
		}
		s.completed.complete(&e)
		if r.chunk != nil {
			if hashes[r.chunk] == nil {
				hashes[r.chunk], _ = former.ReadChunk(r.chunk) // tampered records are shown too
			}
			if i := r.Sequence - r.chunk.First; i < int64(len(hashes[r.chunk])) {
				r.Hash = hashes[r.chunk][i].Hash
			}
		}
		found.Rows = append(found.Rows, Row{AuditEntry: e, Node: r.Node, Segment: r.Segment, Sequence: r.Sequence, Hash: hex.EncodeToString(r.Hash[:])})
		return len(found.Rows) < limit, nil
	})
	if last != nil {
		found.Next, found.From = last, last.At
	}
	found.Partial = s.missed || last != nil && len(found.Rows) < limit
	return found, err
}

// scan reads the entries of a log that pass a filter, newest first, until it has read as much as it may.
type scan struct {
	store     storage.Audits
	filter    Filter
	to        time.Time
	left      int // records that it may still read
	completed completions
	ahead     *ahead // nil: the scan begins at the end of the span, and meets each outcome before its intent
	missed    bool   // an outcome was not found within the bound
}

func newScan(store storage.Audits, f Filter) *scan {
	return &scan{store: store, filter: f, to: f.To.Truncate(format.Precision), left: maxRead, completed: make(completions)}
}

// run calls f with each record that passes, and its outcome, until f returns false. It returns the position at which it
// ended, nil for the beginning of the span.
func (s *scan) run(ctx context.Context, after *Position, f func(r *timed, outcome []byte) (bool, error)) (*Position, error) {
	span := storage.AuditFilter{OrganizationID: s.filter.OrganizationID, From: s.filter.From.Truncate(format.Precision), To: s.to.Add(format.GroupSpan)}
	if after != nil {
		s.ahead = &ahead{from: after.At.Truncate(format.Precision), to: span.To, span: firstAhead, left: maxAhead}
		if to := after.At.Truncate(format.Precision).Add(format.Precision); to.Before(span.To) {
			span.To = to
		}
	}
	var g format.Glance
	for chunks := firstChunks; span.From.Before(span.To); chunks = min(2*chunks, pageChunks) {
		w, err := readChunks(ctx, s.store, span, chunks, false)
		if err != nil {
			return nil, err
		}
		for i := len(w.records) - 1; i >= 0; i-- {
			r := &w.records[i]
			at := r.position()
			if after != nil && at.compare(after) >= 0 {
				continue
			}
			s.left--
			outcome, ok, err := s.passes(ctx, r, &g)
			if err != nil {
				return nil, err
			}
			more := true
			if ok {
				if more, err = f(r, outcome); err != nil {
					return nil, err
				}
			}
			if !more || s.left <= 0 {
				return &at, nil
			}
		}
		span.To = w.from
	}
	return nil, nil
}

// passes reports whether a record is an event that the filter selects, with its outcome.
func (s *scan) passes(ctx context.Context, r *timed, g *format.Glance) (outcome []byte, ok bool, err error) {
	if !g.Read(r.Text) {
		e, err := format.EntryOf(&r.AuditRecord)
		if err != nil {
			return nil, false, nil //nolint:nilerr // tampered with: a verification reports it
		}
		g.Of(&e)
	}
	switch {
	case g.Completes:
		s.take(g, &r.AuditRecord)
		return nil, false, nil
	case !g.At.Before(s.to) || !s.filter.admits(g):
		return nil, false, nil
	}
	outcome = g.Outcome
	done, known := s.completed[string(g.ID)]
	if !known && len(outcome) == 0 && s.ahead != nil && string(g.Kind) == string(storage.AuditCall) {
		if known, err = s.lookAhead(ctx, string(g.ID)); err != nil {
			return nil, false, err
		}
		done = s.completed[string(g.ID)]
	}
	approval := string(g.ApprovalID)
	if known {
		outcome = []byte(done.Outcome)
		if approval == "" {
			approval = done.approvalID
		}
	}
	f := &s.filter
	return outcome, (f.Outcome == "" || f.Outcome == string(outcome)) && (f.ApprovalID == "" || f.ApprovalID == approval), nil
}

// take keeps the outcomes of a record.
func (s *scan) take(g *format.Glance, r *storage.AuditRecord) {
	if g.Outcomes(func(o storage.AuditOutcome) {
		if o.At.Before(s.to) {
			s.completed[o.Call] = completion{AuditOutcome: o}
		}
	}) {
		return
	}
	if e, err := format.EntryOf(r); err == nil {
		s.completed.take(&e, s.to)
	}
}

// admits reports whether an event passes all parts of the filter that do not depend on its outcome.
func (f *Filter) admits(g *format.Glance) bool {
	if len(f.Kinds) > 0 {
		among := false
		for _, kind := range f.Kinds {
			among = among || string(kind) == string(g.Kind)
		}
		if !among {
			return false
		}
	}
	for _, pair := range [...]struct {
		want string
		have []byte
	}{
		{f.UserID, g.UserID}, {f.AgentID, g.AgentID}, {f.ServerID, g.ServerID}, {f.Tool, g.Tool}, {f.Decision, g.Decision}, {f.PolicyID, g.PolicyID},
		{f.Session, g.Session},
	} {
		if pair.want != "" && pair.want != string(pair.have) {
			return false
		}
	}
	return true
}

// ahead reads the part of the log that is newer than a page, for the outcomes of the page's calls.
type ahead struct {
	from, to time.Time
	span     time.Duration // which is read next
	left     int           // records that may still be read
}

// lookAhead looks for the outcome of a call in the part of the log that is newer than the page.
func (s *scan) lookAhead(ctx context.Context, call string) (found bool, err error) {
	for a := s.ahead; a.from.Before(a.to); {
		if a.left <= 0 {
			s.missed = true
			return false, nil
		}
		f := storage.AuditFilter{OrganizationID: s.filter.OrganizationID, From: a.from, To: a.from.Add(a.span)}
		if f.To.After(a.to) {
			f.To = a.to
		}
		w, err := readChunks(ctx, s.store, f, pageChunks, false)
		if err != nil {
			return false, err
		}
		a.left -= len(w.records)
		if w.from.After(a.from) { // there is more than can be read at once
			a.span = max(format.Precision, (a.span / 2).Truncate(format.Precision))
			continue
		}
		var g format.Glance
		for i := range w.records {
			r := &w.records[i].AuditRecord
			if !g.Read(r.Text) {
				g = format.Glance{Completes: true} // EntryOf tells
			}
			if g.Completes {
				s.take(&g, r)
			}
		}
		a.from, a.span = f.To, min(2*a.span, 1000*time.Hour)
		if _, found = s.completed[call]; found {
			return true, nil
		}
	}
	return false, nil
}

// Newest returns the position of an organization's newest record in the store, nil when there is none.
func Newest(ctx context.Context, store storage.Audits, organization string) (*Position, error) {
	f := storage.AuditFilter{OrganizationID: organization, Limit: 1}
	chunks, err := store.AuditChunks(ctx, f)
	if err != nil {
		return nil, err
	}
	own, err := store.AuditRecords(ctx, f)
	if err != nil {
		return nil, err
	}
	var newest *Position
	for _, c := range chunks {
		newest = &Position{c.To.Add(-format.Precision), c.Node, c.Segment, c.Last}
	}
	for _, r := range own {
		if newest == nil || r.At.After(newest.At) {
			newest = &Position{r.At, r.Node, r.Segment, r.Sequence}
		}
	}
	return newest, nil
}
