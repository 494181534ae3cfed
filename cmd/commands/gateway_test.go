package commands

import (
	"bytes"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/cmd/commands/terminal"
	"github.com/durward-gateway/durward/cmd/commands/tour"
)

func TestParseGateway(t *testing.T) {
	for _, test := range []struct{ text, want string }{ // want "": refused
		{"http://127.0.0.1:8080", "http://127.0.0.1:8080"},
		{"http://127.0.0.1:8080/", "http://127.0.0.1:8080"},
		{"http://[::1]:8080", "http://[::1]:8080"},
		{"https://gate.example.com", "https://gate.example.com"},
		{"127.0.0.1:8080", ""},
		{"http://", ""},
		{"http://:8080", ""},
		{"ftp://127.0.0.1", ""},
		{"http://user:password@127.0.0.1:8080", ""},
		{"http://127.0.0.1:8080/mcp/demo", ""},
		{"http://127.0.0.1:8080?a=b", ""},
		{"", ""},
	} {
		got, err := parseGateway(test.text)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%q: got %q, %v, want %q", test.text, got, err, test.want)
		}
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
