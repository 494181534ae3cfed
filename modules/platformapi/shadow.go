package platformapi

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/policy/replay"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

const (
	// shadowDays is the number of days that are searched when the request names no time, and at most.
	shadowDays    = 7
	maxShadowDays = 31
	// maxDifferences is the number of differences that are listed at most; all of them are counted.
	maxDifferences = 10_000
)

// difference is one call that a draft in the shadow would have decided otherwise.
type difference struct {
	Time      routes.Instant `json:"time"`
	AuditID   string         `json:"audit_id"`
	UserID    string         `json:"user_id"`
	AgentID   *string        `json:"agent_id"`
	Method    string         `json:"method"`
	Tool      string         `json:"tool"`
	Decision  string         `json:"decision"`
	Rule      *string        `json:"rule"`
	Would     string         `json:"would_decide"`
	WouldRule *string        `json:"would_rule"`
}

// differenceCount counts the calls for which one decision would have been another.
type differenceCount struct {
	Decision string `json:"decision"`
	Would    string `json:"would_decide"`
	Count    int    `json:"count"`
}

// shadowReport lists the calls that a draft's present revision would have decided differently. Calls counts those that
// it would have decided while it was in the shadow; Different counts those of them with another decision.
type shadowReport struct {
	PolicyID  string            `json:"policy_id"`
	Revision  int               `json:"revision"`
	Shadow    bool              `json:"shadow"`
	From      routes.Instant    `json:"from"`
	Calls     int               `json:"calls"`
	Different int               `json:"different"`
	Counts    []differenceCount `json:"counts"`
	pageView[difference]
}

// reportShadow finds in the audit log the calls that a draft would have decided differently, since its last change.
func reportShadow(q *request) (any, error) {
	id, page := q.ID("policy_id"), q.Page()
	days := q.Query.Int("days", validate.Integer{Min: 1, Max: maxShadowDays}).Or(shadowDays)
	if err := q.Shape(); err != nil {
		return nil, err
	}
	p, err := q.Core.Store.Policy(q.Context(), q.Organization(), id)
	if err != nil {
		return nil, routes.Missing(err, errNoPolicy)
	}
	now := q.handler.now()
	from := now.AddDate(0, 0, -int(days))
	if p.UpdatedAt.After(from) {
		from = p.UpdatedAt
	}
	present, err := q.Core.Store.ServerPolicies(q.Context(), q.Organization(), p.ServerID)
	if err != nil {
		return nil, err
	}
	found := differences{policy: &p.Policy, scope: replay.NewScope(p.Policy, present), counts: make(map[differenceCount]int)}
	if err := q.Core.Audit.Records(q.Context(), q.Organization(), from, now.Add(time.Second), found.add); err != nil {
		return nil, unread(err)
	}
	return shadowReport{
		PolicyID: p.ID, Revision: p.Revision, Shadow: p.Shadow, From: routes.Instant(from), Calls: found.calls, Different: found.total,
		Counts: found.counted(), pageView: viewPage(page, found.page(page), func(d difference) difference { return d }),
	}, nil
}

// differences collects the differences of one policy's revision, and keeps the newest ones.
type differences struct {
	policy *storage.Policy
	scope  replay.Scope
	calls  int
	total  int
	counts map[differenceCount]int // with a Count of 0
	kept   []difference            // the oldest first
}

func (d *differences) add(r *storage.AuditRecord) error {
	if !bytes.Contains(r.Text, []byte(d.policy.ServerID)) {
		return nil // the others need not be read
	}
	e, err := format.EntryOf(r)
	if err != nil {
		return nil // the verification of the log finds tampered records
	}
	if !d.scope.Holds(&e) {
		return nil
	}
	d.calls++
	for _, s := range e.Shadow {
		if s.PolicyID != d.policy.ID || s.Revision != d.policy.Revision {
			continue
		}
		d.total++
		d.counts[differenceCount{Decision: e.Decision, Would: s.Decision}]++
		d.kept = append(d.kept, difference{
			Time: routes.Instant(e.At), AuditID: e.ID, UserID: e.UserID, AgentID: routes.Optional(e.AgentID), Method: e.Method, Tool: e.Tool,
			Decision: e.Decision, Rule: routes.Optional(e.Rule), Would: s.Decision, WouldRule: routes.Optional(s.Rule),
		})
		if len(d.kept) >= 2*maxDifferences {
			d.kept = append(d.kept[:0], d.kept[len(d.kept)-maxDifferences:]...)
		}
	}
	return nil
}

// counted lists the counts, the largest first.
func (d *differences) counted() []differenceCount {
	list := make([]differenceCount, 0, len(d.counts))
	for kind, n := range d.counts {
		kind.Count = n
		list = append(list, kind)
	}
	slices.SortFunc(list, func(a, b differenceCount) int {
		return cmp.Or(b.Count-a.Count, cmp.Compare(a.Decision, b.Decision), cmp.Compare(a.Would, b.Would))
	})
	return list
}

// page returns a page of the kept differences, the newest first.
func (d *differences) page(asked storage.PageRequest) storage.Page[difference] {
	kept := d.kept[max(0, len(d.kept)-maxDifferences):]
	newest := slices.Clone(kept)
	slices.Reverse(newest)
	first := min((asked.Number-1)*asked.Limit, len(newest))
	return storage.Page[difference]{Items: newest[first:min(first+asked.Limit, len(newest))], Total: len(newest)}
}
