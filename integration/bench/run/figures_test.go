package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReport(t *testing.T) {
	exact := measurement{values: []float64{0}}
	figures := []figure{
		{number: "P1", of: "220 B", what: "throughput", gate: 1.25, goal: 1.50, more: true},
		{number: "P3", of: "p50", what: "latency", gate: 15, goal: 0, unit: "us"},
		{number: "P9", what: "limits", unit: "wrong"},
	}
	for name, test := range map[string]struct {
		measured map[string]measurement
		lines    []string // parts that the lines have, in this order
		err      string
	}{
		"both hold": {
			map[string]measurement{"P1 220 B": {values: []float64{1.3, 1.2, 1.4}}, "P3 p50": {values: []float64{-3, 15.4}}, "P9": exact},
			[]string{"1.30     (1.20 to 1.40)        gate >= 1.25     goal >= 1.50     ok  throughput", "P3 p50    +6 us", "P9        0 wrong"}, "",
		},
		"two miss": {
			map[string]measurement{"P1 220 B": {values: []float64{1.2449}}, "P3 p50": {values: []float64{0}}, "P9": {values: []float64{0, 1, 1}, note: "16 calls"}},
			[]string{"MISSED", "ok", "MISSED  limits (16 calls)"}, "missed: P1 220 B, P9",
		},
		"a rounded figure that reads like the gate has reached it": {
			map[string]measurement{"P1 220 B": {values: []float64{1.2451}}, "P3 p50": {values: []float64{15.4}}, "P9": exact},
			[]string{"1.25", "+15 us", "ok"}, "",
		},
		"a noisy machine": {
			map[string]measurement{"P1 220 B": {values: []float64{2}, foreign: []float64{0.3, 0.2, 0.1}}, "P3 p50": {values: []float64{0}, foreign: []float64{0.01}}, "P9": exact},
			[]string{"ok  throughput (noisy: other processes took 20 % of the machine)", "ok  latency", "ok"}, "",
		},
		"failed requests": {
			map[string]measurement{"P1 220 B": {values: []float64{9}, failed: 2}, "P3 p50": {values: []float64{0}}, "P9": exact},
			[]string{"MISSED (2 failed)", "ok", "ok"}, "missed: P1 220 B",
		},
		"nothing to see": {
			map[string]measurement{"P1 220 B": {err: errors.New("boom")}, "P9": exact},
			[]string{"not measured: boom", "not measured: no sample", "ok"}, "could not be measured: P1 220 B, P3 p50",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := report(&out, figures, test.measured)
			if (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
				t.Errorf("error %v instead of %q", err, test.err)
			}
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if len(lines) != len(figures) {
				t.Fatalf("%d lines:\n%s", len(lines), &out)
			}
			for i, f := range figures {
				if !strings.HasPrefix(lines[i], f.name()+" ") || !strings.Contains(lines[i], test.lines[i]) {
					t.Errorf("line %q instead of %q ... %q", lines[i], f.name(), test.lines[i])
				}
			}
		})
	}
}

// TestReportParts checks that a part is judged by its first decimal: 5.4 % are not 5 %.
func TestReportParts(t *testing.T) {
	figures := []figure{{number: "audit", what: "part", gate: 5, goal: 4, unit: "%"}}
	for value, want := range map[float64]string{5.04: "audit  5.0 %  (5.0 % to 5.0 %)  gate <= 5.0 %  goal <= 4.0 %  ok", 5.06: "audit  5.1 %  (5.1 % to 5.1 %)  gate <= 5.0 %  goal <= 4.0 %  MISSED"} {
		var out bytes.Buffer
		err := report(&out, figures, map[string]measurement{"audit": {values: []float64{value}}})
		if (err == nil) != strings.HasSuffix(want, "ok") || !strings.HasPrefix(out.String(), want) {
			t.Errorf("%q, %v, instead of %q", &out, err, want)
		}
	}
}

func TestAccountedFor(t *testing.T) {
	const table = `File: durward
Type: cpu
Duration: 8.1s, Total samples = 7.95s (98.1%)
Active filters:
   focus=durward/internal/audit/
Showing nodes accounting for 0.38s, 4.78% of 7.95s total
      flat  flat%   sum%        cum   cum%
     0.10s  1.26%  1.26%      0.10s  1.26%  crypto/sha256.block
`
	if part, err := accountedFor(table); err != nil || part != 4.78 {
		t.Errorf("%v, %v", part, err)
	}
	if part, err := accountedFor("Showing nodes accounting for 0, 0% of 7.95s total"); err != nil || part != 0 {
		t.Errorf("nothing: %v, %v", part, err)
	}
	if _, err := accountedFor("something else"); err == nil {
		t.Error("anything is taken")
	}
}

func TestSelectFigures(t *testing.T) {
	names := func(figures []figure) (list []string) {
		for _, f := range figures {
			list = append(list, f.name())
		}
		return list
	}
	selected, err := selectFigures("p10, P3")
	if diff := cmp.Diff([]string{"P10", "P3 p50", "P3 p99"}, names(selected)); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	selected, err = selectFigures("p5 Call")
	if diff := cmp.Diff([]string{"P5 call"}, names(selected)); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := selectFigures("P12"); err == nil {
		t.Error("an unknown figure is taken")
	}
	if all, err := selectFigures(""); err != nil || len(all) != len(promises)-2 || wants(all, "P6") {
		t.Errorf("%v, %v", names(all), err)
	}
	if slow, err := selectFigures("P6"); err != nil || len(slow) != 2 {
		t.Errorf("%v, %v", names(slow), err)
	}
}

// TestEveryPromiseIsMeasured checks that every promise is measured, and that only promises are measured.
func TestEveryPromiseIsMeasured(t *testing.T) {
	measured := map[string]bool{"P6 call": true, "P6 counter": true, "P8 seen": true, "P8 caddy": true, "P9": true, "P10": true, "audit": true,
		"audit all processors": true}
	for _, c := range comparisons {
		for _, d := range c.figures {
			measured[d.name] = true
		}
	}
	for _, f := range promises {
		if !measured[f.name()] {
			t.Errorf("%s is not measured", f.name())
		}
		delete(measured, f.name())
	}
	for name := range measured {
		t.Errorf("%s was not promised", name)
	}
}

func TestDerivedPairsRounds(t *testing.T) {
	samples := []sample{
		{Name: "caddy", Scenario: "mcp", Throughput: 100}, {Name: "caddy", Scenario: "mcp", Rate: 400, Throughput: 1, Awake: true},
		{Name: "durward", Scenario: "mcp", Throughput: 150}, {Name: "nginx", Scenario: "mcp", Throughput: 900},
		{Name: "durward", Scenario: "mcp", Throughput: 100, Bad: 3}, {Name: "caddy", Scenario: "mcp", Throughput: 200},
		{Name: "durward", Scenario: "mcpsse", Throughput: 7}, {Name: "durward", Scenario: "mcp", Throughput: 8}, // no partner
	}
	d := derived{scenario: "mcp", value: throughput}
	if m := d.from(samples); !cmp.Equal(m.values, []float64{1.5, 0.5}) || m.failed != 3 {
		t.Errorf("%+v", m)
	}
	d.first = true
	if m := d.from(samples); !cmp.Equal(m.values, []float64{1.5}) || m.failed != 0 {
		t.Errorf("first: %+v", m)
	}
	d.open, d.first = true, false
	if m := d.from(samples); len(m.values) != 0 {
		t.Errorf("open: %+v", m)
	}
	slice := func(name string, throughput float64, latencies ...float64) sample {
		return sample{Name: name, Scenario: "mcp", Rate: 400, Throughput: throughput, Latencies: latencies, Awake: true}
	}
	d.together = true
	samples = append(samples, slice("durward", 3, 5, 2), slice("durward", 4, 1, 3), slice("caddy", 2, 6, 7)) // the second turn begins elsewhere
	if m := d.from(samples); !cmp.Equal(m.values, []float64{3, 2}) || m.note != "2 slices; the p99 of all their calls together 5 us, plain Caddy's 7 us" {
		t.Errorf("slices: %+v", m)
	}
	samples[len(samples)-1].Awake = false
	if m := d.from(samples); !strings.HasSuffix(m.note, "plain Caddy's 7 us; idle processors went to sleep, see docs/performance.md") {
		t.Errorf("processors that sleep: %q", m.note)
	}
	var slices []sample
	for n := range 24 {
		ours, theirs := slice("durward", 6), slice("caddy", 1)
		if n < 12 {
			ours, theirs = slice("durward", 1), slice("caddy", 1)
			theirs.Foreign, ours.Bad = 2*noise, 1
		}
		slices = append(slices, ours, theirs)
	}
	if m := d.from(slices); len(m.values) != 12 || m.values[0] != 6 || m.failed != 12 {
		t.Errorf("with disturbed slices: %+v", m)
	}
	if m := d.from(slices[:2*(12+enough-1)]); len(m.values) != 12+enough-1 || median(m.foreign) <= noise {
		t.Errorf("with too many of them: %+v", m)
	}
}
