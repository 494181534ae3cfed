package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSummary checks that packages are shown in the order of their ends, failed tests with what they wrote, passed ones
// without, and a panic and what does not compile as they are.
func TestSummary(t *testing.T) {
	const p = `"Package":"github.com/durward-gateway/durward/`
	var out strings.Builder
	s := newSummary(&out)
	for line := range strings.Lines(`{"Action":"start",` + p + `a"}
{"Action":"start",` + p + `b"}
{"Action":"run",` + p + `a","Test":"TestOne"}
{"Action":"output",` + p + `a","Test":"TestOne","Output":"=== RUN   TestOne\n"}
{"Action":"output",` + p + `a","Test":"TestOne","Output":"    one says\n"}
{"Action":"run",` + p + `b","Test":"TestGood"}
{"Action":"output",` + p + `b","Test":"TestGood","Output":"    good says\n"}
{"Action":"pass",` + p + `b","Test":"TestGood","Elapsed":0.1}
{"Action":"output",` + p + `b","Output":"PASS\n"}
{"Action":"pass",` + p + `b","Elapsed":1.25}
still here
{"Action":"output",` + p + `a","Test":"TestOne","Output":"--- FAIL: TestOne (0.00s)\n"}
{"Action":"fail",` + p + `a","Test":"TestOne","Elapsed":0}
{"Action":"output",` + p + `a","Output":"panic: test timed out\n"}
{"Action":"fail",` + p + `a","Elapsed":61}
{"ImportPath":"github.com/durward-gateway/durward/c","Action":"build-output","Output":"c.go:1: no\n"}
{"ImportPath":"github.com/durward-gateway/durward/c","Action":"build-fail"}
{"Action":"fail",` + p + `c","Elapsed":0,"FailedBuild":"github.com/durward-gateway/durward/c"}
{"Action":"skip",` + p + `d","Elapsed":0}
`) {
		s.read([]byte(line))
		if strings.Contains(line, `"Test":"TestGood","Output"`) {
			s.stillRunning(30 * time.Second)
		}
	}
	s.end(90 * time.Second)
	want := `         30 s  running: a (0 tests done, now TestOne), b (0 tests done, now TestGood)
ok      1.2 s  b
still here
panic: test timed out
    one says
--- FAIL: TestOne (0.00s)
FAIL   61.0 s  a
c.go:1: no
FAIL    0.0 s  c  does not compile
-       0.0 s  d  no tests
4 packages in 1m30s, FAILED: github.com/durward-gateway/durward/a github.com/durward-gateway/durward/c
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
