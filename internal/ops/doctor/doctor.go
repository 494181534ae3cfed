// Package doctor judges the facts that an operator can have wrong: configuration, keys, files, the store, clocks,
// identity providers, disk. It is pure: the caller gathers the facts, and doctor says what they mean and how to mend
// them.
package doctor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// Severity says how bad a finding is.
type Severity string

// Severities, the worst first.
const (
	// Error means that the gateway does not start, refuses requests, or loses data.
	Error Severity = "error"
	// Warning means that something is weaker than it should be, or will break.
	Warning Severity = "warning"
	// Note means information that is good to know.
	Note Severity = "note"
)

var ranks = map[Severity]int{Error: 0, Warning: 1, Note: 2}

// Finding describes one problem.
type Finding struct {
	Severity Severity `json:"severity"`
	// Check names the checked part.
	Check string `json:"check"`
	// Found describes the problem and its effect.
	Found string `json:"found"`
	// Mend says how to mend it.
	Mend string `json:"mend"`
}

// Report lists what was checked and what was found.
type Report struct {
	Passed   []string  `json:"passed"`
	Findings []Finding `json:"findings"`
}

// Add adds the findings of a check; no finding means that it passed.
func (r *Report) Add(check string, findings ...Finding) {
	if len(findings) == 0 {
		r.Passed = append(r.Passed, check)
	}
	for _, f := range findings {
		f.Check = check
		r.Findings = append(r.Findings, f)
	}
}

// Failed reports whether any finding is an error.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity == Error })
}

// WriteText writes the report for people, the worst first.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, check := range r.Passed {
		fmt.Fprintf(&b, "ok       %s\n", check)
	}
	findings := slices.Clone(r.Findings)
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(ranks[a.Severity], ranks[b.Severity]) })
	counts := make(map[Severity]int)
	for _, f := range findings {
		counts[f.Severity]++
		fmt.Fprintf(&b, "%-8s %s: %s\n         %s\n", f.Severity, f.Check, f.Found, f.Mend)
	}
	fmt.Fprintf(&b, "%d passed, %s, %s, %s\n", len(r.Passed), count(counts[Error], "error"), count(counts[Warning], "warning"), count(counts[Note], "note"))
	_, err := io.WriteString(w, b.String())
	return err
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	written := *r
	written.Passed, written.Findings = append([]string{}, r.Passed...), append([]Finding{}, r.Findings...)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Failed bool `json:"failed"`
		Report
	}{r.Failed(), written})
}

// Bounds of the differences between clocks.
const (
	driftNoted   = time.Second
	driftRefused = 10 * time.Second
)

// Clock compares another clock with this machine's: theirs was read within trip before ours. precision is the unit in
// which the other clock is given.
func Clock(whose string, theirs, ours time.Time, trip, precision time.Duration) []Finding {
	drift := storage.ClockReading{Theirs: theirs, Ours: ours, Trip: trip, Precision: precision}.Ahead().Abs()
	if drift < driftNoted {
		return nil
	}
	f := Finding{
		Severity: Warning, Found: fmt.Sprintf("this machine's clock and that of %s are %s apart: tokens, approvals and limits end too early or too late", whose, drift.Round(100*time.Millisecond)),
		Mend: "Have both keep their time by NTP (chrony or systemd-timesyncd).",
	}
	if drift >= driftRefused {
		f.Severity = Error
	}
	return []Finding{f}
}
