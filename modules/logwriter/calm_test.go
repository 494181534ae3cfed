package logwriter

import (
	"strings"
	"testing"
)

// TestCalm checks that harmless lines are no warnings, and no other line is changed.
func TestCalm(t *testing.T) {
	t.Parallel()
	for line, changes := range map[string]bool{
		`{"level":"warn","ts":1.5,"logger":"http","msg":"HTTP/2 skipped because it requires TLS","network":"tcp","addr":":80"}`:                                true,
		`{"level":"warn","ts":1.5,"logger":"admin","msg":"admin endpoint on open interface; host checking disabled","address":"unix//run/durward/admin.sock"}`: true,
		`{"level":"warn","ts":1.5,"logger":"admin","msg":"admin endpoint on open interface; host checking disabled","address":"0.0.0.0:2019"}`:                 false,
		`{"level":"warn","ts":1.5,"msg":"exiting; byeee!! 👋","signal":"SIGTERM"}`:                                                                              true,
		`{"level":"warn","ts":1.5,"logger":"durward","msg":"refusing a form","path":"\"msg\":\"admin endpoint disabled\""}`:                                    false,
		`{"level":"warn","ts":1.5,"msg":"admin endpoint disabled twice"}`:                                                                                      false,
		`{"level":"error","ts":1.5,"msg":"admin endpoint disabled"}`:                                                                                           false,
		"2026/11/25 07:00:00.000\t\x1b[33mWARN\x1b[0m\thttp\tHTTP/3 skipped because it requires TLS\t{\"addr\": \":80\"}":                                      true,
		"2026/11/25 07:00:00.000\tWARN\tadmin\tadmin endpoint disabled":                                                                                        true,
		"2026/11/25 07:00:00.000\tWARN\tdurward\tthe clock is behind":                                                                                          false,
		`{"severity":"warn","msg":"admin endpoint disabled"}`:                                                                                                  false,
	} {
		line += "\n"
		want := line
		if changes {
			want = strings.NewReplacer(`"level":"warn"`, `"level":"info"`, "WARN", "INFO").Replace(line)
		}
		if got := string(calm([]byte(line))); got != want {
			t.Errorf("%q becomes %q", line, got)
		}
	}
}
