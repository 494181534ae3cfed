package limit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/durward-gateway/durward/internal/ratelimit/window"
	"github.com/durward-gateway/durward/storage"
)

// Gauge holds the use of one measure of a limit at this moment. All fields are 0 when the limit lacks the measure.
type Gauge struct {
	Used       int64
	Limit      int64
	Percentage float64 // of Limit; may be above 100; 100 for a limit of 0
}

// SubjectUsage holds the use of one subject, for a limit that counts each subject apart.
type SubjectUsage struct {
	Subject  string // an id, or a name where the subject has no id
	Requests int64
	Tokens   int64
}

// Status holds a limit and the values of its counters. For a limit that counts each subject apart, a gauge shows the
// subject with the highest use.
type Status struct {
	Limit    storage.RateLimit
	Requests Gauge
	Tokens   Gauge
	Apart    bool
	Active   int            // number of subjects that have used something
	Subjects []SubjectUsage // the subjects with the highest use, at most MaxSubjects
	Degraded bool           // these are the numbers of this node alone
}

// MaxSubjects bounds the number of subjects in a Status.
const MaxSubjects = 100

// Status returns every limit of the set, in its order. The values come from the counters that enforce the limits.
func (e *Engine) Status(ctx context.Context, s *Set) ([]Status, error) {
	out := make([]Status, len(s.limits))
	var keys []window.Key
	for i := range s.limits {
		l := &s.limits[i]
		out[i] = Status{Limit: l.RateLimit, Apart: l.apart}
		if l.apart {
			if err := e.subjects(ctx, s, l, &out[i]); err != nil {
				return nil, fmt.Errorf("reading rate limits: %w", err)
			}
			continue
		}
		keys = append(keys, window.NewKey(l.requests, window.Digest{}), window.NewKey(l.tokens, window.Digest{}))
	}
	used := make([]int64, len(keys))
	v, err := e.coordinator.Used(ctx, keys, used) // called without keys too: the verdict says whether the other nodes were asked
	if err != nil {
		return nil, fmt.Errorf("reading rate limits: %w", err)
	}
	for i := range out {
		if out[i].Degraded = v.Degraded; !out[i].Apart {
			out[i].Requests.Used, out[i].Tokens.Used = used[0], used[1]
			used = used[2:]
		}
		out[i].Requests.fill(out[i].Limit.RequestsPerMinute)
		out[i].Tokens.fill(out[i].Limit.TokensPerMinute)
	}
	return out, nil
}

// StatusOf returns the limits of the set that count a subject, in their order, with what the counters that enforce them hold
// for it. Nothing is told about other subjects of a limit that counts each apart.
func (e *Engine) StatusOf(ctx context.Context, s *Set, subject *Subject) ([]Status, error) {
	hits := s.index.Match(subject)
	out := make([]Status, len(hits))
	var keys []window.Key
	for i, h := range hits {
		l, member := &s.limits[h.Index], s.member(h.Subject)
		out[i] = Status{Limit: l.RateLimit, Apart: l.apart}
		keys = append(keys, window.NewKey(l.requests, member), window.NewKey(l.tokens, member))
	}
	used := make([]int64, len(keys))
	v, err := e.coordinator.Used(ctx, keys, used)
	if err != nil {
		return nil, fmt.Errorf("reading rate limits: %w", err)
	}
	for i := range out {
		out[i].Degraded, out[i].Requests.Used, out[i].Tokens.Used = v.Degraded, used[2*i], used[2*i+1]
		out[i].Requests.fill(out[i].Limit.RequestsPerMinute)
		out[i].Tokens.fill(out[i].Limit.TokensPerMinute)
	}
	return out, nil
}

// fill computes the other fields of a gauge from its Used.
func (g *Gauge) fill(limit *int64) {
	switch {
	case limit == nil:
		*g = Gauge{}
	case *limit <= 0:
		g.Percentage = 100
	default:
		g.Limit, g.Percentage = *limit, float64(g.Used)/float64(*limit)*100
	}
}

// subjects reads the counters of a limit that counts each subject apart.
func (e *Engine) subjects(ctx context.Context, s *Set, l *compiled, out *Status) error {
	usage := make(map[window.Digest]SubjectUsage)
	if l.RequestsPerMinute != nil {
		members, err := e.coordinator.Members(ctx, l.requests)
		if err != nil {
			return err
		}
		for _, m := range members {
			usage[m.Member] = SubjectUsage{Requests: m.Used}
			out.Requests.Used = max(out.Requests.Used, m.Used)
		}
	}
	if l.TokensPerMinute != nil {
		members, err := e.coordinator.Members(ctx, l.tokens)
		if err != nil {
			return err
		}
		for _, m := range members {
			u := usage[m.Member]
			u.Tokens = m.Used
			usage[m.Member] = u
			out.Tokens.Used = max(out.Tokens.Used, m.Used)
		}
	}
	type ranked struct {
		member window.Digest
		full   float64
		SubjectUsage
	}
	all := make([]ranked, 0, len(usage))
	for d, u := range usage {
		requests, tokens := Gauge{Used: u.Requests}, Gauge{Used: u.Tokens}
		requests.fill(l.RequestsPerMinute)
		tokens.fill(l.TokensPerMinute)
		all = append(all, ranked{d, max(requests.Percentage, tokens.Percentage), u})
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.full, a.full), slices.Compare(a.member[:], b.member[:]))
	})
	out.Active = len(all)
	for _, r := range all[:min(len(all), MaxSubjects)] {
		r.Subject = s.subject(r.member)
		out.Subjects = append(out.Subjects, r.SubjectUsage)
	}
	return nil
}
