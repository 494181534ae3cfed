package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSizes(t *testing.T) {
	var standard *Sizes
	if diff := cmp.Diff(Sizes{API: 1 << 20, Meta: 64 << 10, MCP: 4 << 20, SSE: 64 << 10, LLM: 16 << 20, Event: 1 << 20}, standard.WithDefaults()); diff != "" {
		t.Errorf("defaults (-want +got)\n%s", diff)
	}
	if got := standard.WithDefaults().MCPEvent(); got != 16<<20 {
		t.Errorf("an event on /mcp may have %d bytes", got)
	}
	var s Sizes
	for _, test := range []struct{ word, size, refused string }{
		{"api", "2MiB", ""},
		{"meta", "1", ""},
		{"mcp", "1GiB", ""},
		{"event", "4MB", ""},
		{"event", "4MB", "event may be given once"},
		{"llm", "1MiB", ""},
		{"llm", "much", "llm may be given once"},
		{"stream", "1MiB", "unrecognized size"},
		{"sse", "0", "is not a size"},
		{"sse", "", "is not a size"},
		{"sse", "-1", "is not a size"},
		{"sse", "1025MiB", "is not a size"},
		{"sse", "1e30", "is not a size"},
		{"sse", "{env.SIZE}", "is not a size"},
	} {
		err := s.Set(test.word, test.size)
		if (err == nil) != (test.refused == "") || (err != nil && !strings.Contains(err.Error(), test.refused)) {
			t.Errorf("%s %s: %v", test.word, test.size, err)
		}
	}
	if diff := cmp.Diff(Sizes{API: 2 << 20, Meta: 1, MCP: 1 << 30, LLM: 1 << 20, Event: 4_000_000}, s); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, wrong := range []Sizes{{MCP: -1}, {Event: 1<<30 + 1}, {API: -1 << 62}} {
		if wrong.Check() == nil {
			t.Errorf("%+v was taken from JSON", wrong)
		}
	}
}
