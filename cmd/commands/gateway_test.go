package commands

import "testing"

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
