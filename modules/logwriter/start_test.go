package logwriter

import (
	"strings"
	"testing"
)

type collected struct{ strings.Builder }

func (*collected) Close() error { return nil }

// TestQuietStart checks that while a command starts, only errors are written, in either format; then everything is.
func TestQuietStart(t *testing.T) {
	out := new(collected)
	w := &startWriter{out}
	lines := []string{
		`{"level":"info","ts":1,"msg":"serving"}`, `{"level":"warn","ts":1,"msg":"ERROR"}`, `{"level":"error","ts":1,"msg":"INFORMED"}`,
		"2026/11/25 07:00:00.000\t\x1b[34mINFO\x1b[0m\ttls\tcleaning", "2026/11/25 07:00:00.000\t\x1b[31mERROR\x1b[0m\ttls\tfailed", "panic: something",
	}
	write := func() string {
		out.Reset()
		for _, line := range lines {
			if n, err := w.Write([]byte(line + "\n")); n != len(line)+1 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		}
		return out.String()
	}
	Quiet(true)
	t.Cleanup(func() { Quiet(false) })
	if got, want := write(), lines[2]+"\n"+lines[4]+"\n"+lines[5]+"\n"; got != want {
		t.Errorf("while it starts: %q, want %q", got, want)
	}
	Quiet(false)
	if got, want := write(), strings.Join(lines, "\n")+"\n"; got != want {
		t.Errorf("then: %q", got)
	}
}
