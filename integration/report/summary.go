package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// event is a line of `go test -json` (see `go doc test2json`, and `go help buildjson`).
type event struct {
	Action      string
	Package     string
	Test        string
	Output      string
	Elapsed     float64
	FailedBuild string
}

// testPackage is a package whose tests run.
type testPackage struct {
	written map[string][]string // by test, "" for the package itself; of tests that passed, nothing
	running []string
	done    int
}

// summary writes a line for each package.
type summary struct {
	to       io.Writer
	packages map[string]*testPackage
	ended    int
	failed   []string
}

func newSummary(to io.Writer) *summary {
	return &summary{to: to, packages: make(map[string]*testPackage)}
}

// read takes one line, and says whether it showed anything.
func (s *summary) read(line []byte) bool {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		_, _ = s.to.Write(line)
		return true
	}
	switch {
	case e.Action == "build-output":
		fmt.Fprint(s.to, e.Output)
		return true
	case e.Package == "":
		return false
	case e.Test == "":
		return s.readPackage(e)
	}
	p := s.of(e.Package)
	switch e.Action {
	case "run":
		p.running = append(p.running, e.Test)
	case "output":
		p.written[e.Test] = append(p.written[e.Test], e.Output)
	case "pass", "skip":
		delete(p.written, e.Test)
		p.endTest(e.Test)
	case "fail":
		p.endTest(e.Test)
	}
	return false
}

func (s *summary) readPackage(e event) bool {
	p := s.of(e.Package)
	switch e.Action {
	case "output":
		p.written[""] = append(p.written[""], e.Output)
		return false
	case "pass":
		s.line("ok", e)
	case "skip":
		s.line("-", e)
	case "fail":
		s.failed = append(s.failed, e.Package)
		p.show(s.to)
		s.line("FAIL", e)
	default:
		return false
	}
	s.ended++
	delete(s.packages, e.Package)
	return true
}

func (s *summary) line(what string, e event) {
	note := ""
	switch {
	case e.FailedBuild != "":
		note = "  does not compile"
	case what == "-":
		note = "  no tests"
	}
	fmt.Fprintf(s.to, "%-4s %6.1f s  %s%s\n", what, e.Elapsed, short(e.Package), note)
}

// stillRunning shows which packages run, and one of the tests of each that run.
func (s *summary) stillRunning(since time.Duration) {
	var all []string
	for name, p := range s.packages {
		text := fmt.Sprintf("%s (%d tests done", short(name), p.done)
		if n := len(p.running); n > 0 {
			text += ", now " + p.running[n-1]
		}
		all = append(all, text+")")
	}
	slices.Sort(all)
	fmt.Fprintf(s.to, "     %6.0f s  running: %s\n", since.Seconds(), strings.Join(all, ", "))
}

func (s *summary) end(took time.Duration) {
	fmt.Fprintf(s.to, "%d packages in %v", s.ended, took.Round(time.Second))
	if len(s.failed) > 0 {
		fmt.Fprintf(s.to, ", FAILED: %s", strings.Join(s.failed, " "))
	}
	fmt.Fprintln(s.to)
}

func (s *summary) of(name string) *testPackage {
	p := s.packages[name]
	if p == nil {
		p = &testPackage{written: make(map[string][]string)}
		s.packages[name] = p
	}
	return p
}

func (p *testPackage) endTest(name string) {
	p.done++
	p.running = slices.DeleteFunc(p.running, func(n string) bool { return n == name })
}

// show writes the output of tests that did not pass, and the other output of the package: a panic, the end of its time.
func (p *testPackage) show(to io.Writer) {
	tests := make([]string, 0, len(p.written))
	for name := range p.written {
		tests = append(tests, name)
	}
	slices.Sort(tests)
	for _, name := range tests {
		for _, text := range p.written[name] {
			if !strings.HasPrefix(text, "=== ") {
				fmt.Fprint(to, text)
			}
		}
	}
}

// module is the beginning of our packages' paths.
const module = "github.com/durward-gateway/durward/"

func short(name string) string { return strings.TrimPrefix(name, module) }
