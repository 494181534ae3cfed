//go:build !nodev

package commands

import (
	"bytes"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/cmd/commands/terminal"
	"github.com/durward-gateway/durward/cmd/commands/tour"
	"github.com/durward-gateway/durward/modules/devidp/welcome"
)

// TestDefaultGateway checks that commands look for the gateway where `durward dev` listens.
func TestDefaultGateway(t *testing.T) {
	if defaultGateway != welcome.DefaultURL {
		t.Errorf("%s, and dev is at %s", defaultGateway, welcome.DefaultURL)
	}
}

func TestReports(t *testing.T) {
	passed := tour.Step{Name: "login", Title: "Log in", OK: true, MS: 12.345, Detail: []string{"GET /a -> 200, with <b>"}}
	failed := tour.Step{Name: "connect", Title: "Connect", MS: 1, Detail: []string{}, Error: "it broke", Hint: "mend it"}
	var text, lines bytes.Buffer
	for _, s := range []tour.Step{passed, failed} {
		writeStep(&text, terminal.Terminal{}, s)
		reportJSON(&lines)(s)
	}
	wantText := "✓ Log in  (12 ms)\n    GET /a -> 200, with <b>\n✗ Connect  (1 ms)\n    failed: it broke\n    what to do: mend it\n"
	if text.String() != wantText {
		t.Errorf("got\n%s", &text)
	}
	wantLines := `{"step":"login","ok":true,"ms":12.345,"detail":["GET /a -> 200, with <b>"],"title":"Log in"}
{"step":"connect","ok":false,"ms":1,"detail":[],"error":"it broke","hint":"mend it","title":"Connect"}
`
	if lines.String() != wantLines {
		t.Errorf("got\n%s", &lines)
	}
	if strings.Count(lines.String(), "\n") != 2 {
		t.Error("not one line per step")
	}
}
