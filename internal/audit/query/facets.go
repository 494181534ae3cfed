package query

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// Facets are the members of an event whose values can be counted.
var Facets = []string{"event", "kind", "outcome", "decision", "server", "user", "agent", "tool", "policy"}

const (
	// maxValues is the number of values of a facet that are listed.
	maxValues = 20
	// maxCounted is the number of values of a facet that are told apart. A caller who makes up names of tools must not take
	// memory.
	maxCounted = 10_000
)

// Count is the number of events with a value.
type Count struct {
	Value  string
	Events int
}

// Counts holds the numbers of events by their values.
type Counts struct {
	Events  int
	Values  map[string][]Count // by facet: the most frequent first
	Others  map[string]int     // events with values that are not listed
	Partial bool               // older events were not counted
	From    time.Time          // the time from which all events were counted
}

// CountFacets counts the newest events that a filter selects, by the values of facets. An event without a value counts
// under "".
func CountFacets(ctx context.Context, store storage.Audits, f Filter, facets []string) (Counts, error) {
	s := newScan(store, f)
	c := Counts{Values: make(map[string][]Count), Others: make(map[string]int), From: f.From}
	seen := make([]map[string]*int, len(facets))
	for i := range seen {
		seen[i] = make(map[string]*int)
	}
	var g format.Glance
	last, err := s.run(ctx, nil, func(r *timed, outcome []byte) (bool, error) {
		if !g.Read(r.Text) {
			e, err := format.EntryOf(&r.AuditRecord)
			if err != nil {
				return true, nil // tampered with: a verification reports it
			}
			g.Of(&e)
		}
		c.Events++
		for i, facet := range facets {
			value := facetOf(facet, &g, outcome)
			n := seen[i][string(value)]
			if n == nil {
				if len(seen[i]) == maxCounted {
					c.Others[facet]++
					continue
				}
				n = new(int)
				seen[i][string(value)] = n
			}
			*n++
		}
		return true, nil
	})
	for i, facet := range facets {
		all := make([]Count, 0, len(seen[i]))
		for value, n := range seen[i] {
			all = append(all, Count{value, *n})
		}
		slices.SortFunc(all, func(a, b Count) int {
			return cmp.Or(cmp.Compare(b.Events, a.Events), strings.Compare(a.Value, b.Value))
		})
		for _, rest := range all[min(maxValues, len(all)):] {
			c.Others[facet] += rest.Events
		}
		c.Values[facet] = all[:min(maxValues, len(all))]
	}
	if last != nil {
		c.Partial, c.From = true, last.At
	}
	return c, err
}

func facetOf(name string, g *format.Glance, outcome []byte) []byte {
	switch name {
	case "event":
		return g.Event
	case "kind":
		return g.Kind
	case "outcome":
		return outcome
	case "decision":
		return g.Decision
	case "server":
		return g.ServerID
	case "user":
		return g.UserID
	case "agent":
		return g.AgentID
	case "tool":
		return g.Tool
	case "policy":
		return g.PolicyID
	}
	return nil
}
