package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// figure is one promise about performance.
type figure struct {
	number, of string // "P1", "220 B"
	what       string
	// gate and goal bound the value: from below when more is better, otherwise from above.
	gate, goal float64
	more       bool
	unit       string
	// asked reports that the figure takes so long that it is measured only when it is selected by its number.
	asked bool
}

// name identifies the figure among all.
func (f *figure) name() string { return strings.TrimSpace(f.number + " " + f.of) }

// promises lists all figures, in the order of their numbers.
var promises = []figure{
	{number: "P1", of: "220 B", what: "tools/call, throughput over plain Caddy's", gate: 1.25, goal: 1.50, more: true},
	{number: "P1", of: "2 KB", what: "tools/call, throughput over plain Caddy's", gate: 1.25, goal: 1.50, more: true},
	{number: "P1", of: "10 KB", what: "tools/call, throughput over plain Caddy's", gate: 1.25, goal: 1.50, more: true},
	{number: "P2", of: "220 B", what: "tools/call, CPU per request over plain Caddy's", gate: 0.80, goal: 0.62},
	{number: "P2", of: "2 KB", what: "tools/call, CPU per request over plain Caddy's", gate: 0.80, goal: 0.62},
	{number: "P2", of: "10 KB", what: "tools/call, CPU per request over plain Caddy's", gate: 0.80, goal: 0.62},
	{number: "P1", of: "all processors", what: "tools/call of 220 B, throughput over plain Caddy's, all with all processors", gate: 1.18, goal: 1.30, more: true},
	{number: "P2", of: "all processors", what: "tools/call of 220 B, CPU per request over plain Caddy's, all with all processors", gate: 0.80, goal: 0.62},
	{number: "P3", of: "p50", what: "added to plain Caddy's latency at 400/s", gate: 15, goal: 0, unit: "us"},
	{number: "P3", of: "p99", what: "added to plain Caddy's latency at 400/s", gate: 100, goal: 0, unit: "us"},
	{number: "P4", what: "memory of an idle event stream over plain Caddy's", gate: 0.67, goal: 0.50},
	{number: "P5", of: "event", what: "CPU per event of a stream over plain Caddy's", gate: 1.05, goal: 0.90},
	{number: "P5", of: "call", what: "tools/call answered as a stream, CPU per request over plain Caddy's", gate: 0.80, goal: 0.60},
	{number: "P6", of: "call", what: "tools/call, CPU per request over that of a small gateway", gate: 1.10, goal: 1.03, asked: true},
	{number: "P6", of: "counter", what: "memory of a live counter that was busy in 12 seconds", gate: 200, goal: 200, unit: "B", asked: true},
	{number: "P7", what: "chat completion, throughput over plain Caddy's", gate: 1.10, goal: 1.30, more: true},
	{number: "P8", of: "seen", what: "first request of an unseen token, over one that was seen", gate: 120, goal: 85, unit: "us"},
	{number: "P8", of: "caddy", what: "first request of an unseen token, over plain Caddy's", gate: 120, goal: 85, unit: "us"},
	{number: "P9", what: "calls and tokens by which limits count wrongly under 8-way contention", gate: 0, goal: 0, unit: "wrong"},
	{number: "P10", what: "start to first answered request", gate: 1000, goal: 300, unit: "ms"},
	{number: "P11", of: "HTTP/1.1", what: "tools/call over TLS 1.3, throughput over plain Caddy's", gate: 1.15, goal: 1.30, more: true},
	{number: "P11", of: "HTTP/1.1 CPU", what: "tools/call over TLS 1.3, CPU per request over plain Caddy's", gate: 0.88, goal: 0.75},
	{number: "P11", of: "HTTP/2", what: "tools/call over TLS 1.3, throughput over plain Caddy's", gate: 1.15, goal: 1.30, more: true},
	{number: "P11", of: "HTTP/2 CPU", what: "tools/call over TLS 1.3, CPU per request over plain Caddy's", gate: 0.88, goal: 0.75},
	{number: "audit", what: "tools/call, processor time that the audit log takes of it", gate: 10, goal: 4, unit: "%"},
	{number: "audit", of: "all processors", what: "the same with all processors", gate: 12, goal: 4, unit: "%"},
}

// selectFigures returns the figures of a list of numbers or names; for "" all but those that must be asked for.
func selectFigures(only string) ([]figure, error) {
	if only == "" {
		return slices.DeleteFunc(slices.Clone(promises), func(f figure) bool { return f.asked }), nil
	}
	var selected []figure
	for number := range strings.SplitSeq(only, ",") {
		before := len(selected)
		for _, f := range promises {
			if number = strings.TrimSpace(number); strings.EqualFold(f.number, number) || strings.EqualFold(f.name(), number) {
				selected = append(selected, f)
			}
		}
		if len(selected) == before {
			return nil, fmt.Errorf("there is no figure %q", number)
		}
	}
	return selected, nil
}

// wants reports whether one of the numbers is selected.
func wants(figures []figure, numbers ...string) bool {
	return slices.ContainsFunc(figures, func(f figure) bool { return slices.Contains(numbers, f.number) })
}

// measurement is the result for a figure.
type measurement struct {
	values  []float64 // one per round, or per slice of the open loop; the median counts
	foreign []float64 // the part of the machine that other processes took in each round, 0 to 1; nil: not known
	failed  int       // requests, streams or starts that went wrong
	note    string    // remarks on the way of measuring
	err     error     // the reason for a missing result
}

// report prints a line for each figure, beginning with its number, and returns an error when one that was measured misses
// its gate, or when one could not be measured.
func report(out io.Writer, figures []figure, measured map[string]measurement) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var missed, broken []string
	for _, f := range figures {
		m := measured[f.name()]
		switch {
		case m.err != nil || len(m.values) == 0:
			if m.err == nil {
				m.err = errors.New("no sample")
			}
			broken = append(broken, f.name())
			fmt.Fprintf(table, "%s\tnot measured: %v\n", f.name(), m.err)
		default:
			verdict := "ok"
			if m.failed > 0 {
				verdict = fmt.Sprintf("MISSED (%d failed)", m.failed)
			} else if !f.holds(median(m.values)) {
				verdict = "MISSED"
			}
			if verdict != "ok" {
				missed = append(missed, f.name())
			}
			fmt.Fprintf(table, "%s\t%s\t(%s to %s)\tgate %s\tgoal %s\t%s\t%s\n", f.name(), f.text(median(m.values)), f.text(slices.Min(m.values)),
				f.text(slices.Max(m.values)), f.bound(f.gate), f.bound(f.goal), verdict, f.what+m.remarks())
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var problems []error
	if len(missed) > 0 {
		problems = append(problems, errors.New("missed: "+strings.Join(missed, ", ")))
	}
	if len(broken) > 0 {
		problems = append(problems, errors.New("could not be measured: "+strings.Join(broken, ", ")))
	}
	return errors.Join(problems...)
}

// reportAgainst prints a line for each figure that was measured against another gateway too: this one's over the other's.
func reportAgainst(out io.Writer, figures []figure, measured map[string]measurement) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range figures {
		m, found := measured["other "+f.name()]
		if !found || len(m.values) == 0 {
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t(%s to %s)\t%d failed\tover the other gateway's%s\n", f.name(), f.text(median(m.values)),
			f.text(slices.Min(m.values)), f.text(slices.Max(m.values)), m.failed, m.remarks())
	}
	_ = table.Flush()
}

// noise is the part of the machine that other processes may take before a figure is in doubt; compare repeats samples
// above it, and turns of slices above it are left out.
const noise = 0.08

// remarks returns the note, and whether the machine was not quiet. Ratios of processor time are not affected by that;
// throughput and latency are.
func (m *measurement) remarks() (text string) {
	if m.note != "" {
		text = " (" + m.note + ")"
	}
	if len(m.foreign) > 0 && median(m.foreign) > noise {
		text += fmt.Sprintf(" (noisy: other processes took %.0f %% of the machine)", 100*median(m.foreign))
	}
	return text
}

// holds reports whether a value is at its gate or past it, as it is printed: a rounded figure that reads like the gate
// has reached it.
func (f *figure) holds(value float64) bool {
	scale := 100.0
	switch f.unit {
	case "":
	case "%":
		scale = 10
	default:
		scale = 1
	}
	value = math.Round(value*scale) / scale
	if f.more {
		return value >= f.gate
	}
	return value <= f.gate
}

func (f *figure) text(value float64) string {
	switch {
	case f.unit == "":
		return fmt.Sprintf("%.2f", value)
	case f.unit == "%":
		return fmt.Sprintf("%.1f %s", value, f.unit)
	case f.unit == "us": // a difference
		return fmt.Sprintf("%+.0f %s", value, f.unit)
	}
	return fmt.Sprintf("%.0f %s", value, f.unit)
}

func (f *figure) bound(value float64) string {
	if f.more {
		return ">= " + f.text(value)
	}
	return "<= " + f.text(value)
}

// median returns the median of a list that is not empty.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
