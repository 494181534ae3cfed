package settings

import (
	"fmt"

	"github.com/dustin/go-humanize"
)

// Sizes holds upper bounds in bytes, of 1 GiB at the most. A zero member takes its default.
type Sizes struct {
	// The largest request body of the platform API. Default: 1048576 (1 MiB).
	API int64 `json:"api,omitempty"`
	// The largest `meta` object. Default: 65536 (64 KiB).
	Meta int64 `json:"meta,omitempty"`
	// The largest request body on `/mcp`. Default: 4194304 (4 MiB).
	MCP int64 `json:"mcp,omitempty"`
	// The largest request body on `/sse`. Default: 65536 (64 KiB).
	SSE int64 `json:"sse,omitempty"`
	// The largest request for a model. Default: 16777216 (16 MiB).
	LLM int64 `json:"llm,omitempty"`
	// The largest event of an upstream's stream on `/sse`; on `/mcp` an event may be sixteen times as large. Default: 1048576
	// (1 MiB).
	Event int64 `json:"event,omitempty"`
}

// mcpEventFactor keeps the proportion of the two defaults (1 MiB on /sse, 16 MiB on /mcp) when an operator changes one word.
const mcpEventFactor = 16

// MCPEvent returns the bound of one event on /mcp.
func (s Sizes) MCPEvent() int64 { return s.Event * mcpEventFactor }

// maxSize is the largest bound: everything within a bound is held in memory.
const maxSize = 1 << 30

// bound is one of the sizes and its word.
type bound struct {
	word     string
	value    *int64
	standard int64
}

func (s *Sizes) bounds() []bound {
	return []bound{
		{"api", &s.API, 1 << 20}, {"meta", &s.Meta, 64 << 10}, {"mcp", &s.MCP, 4 << 20}, {"sse", &s.SSE, 64 << 10}, {"llm", &s.LLM, 16 << 20}, {"event", &s.Event, 1 << 20},
	}
}

// Set sets the bound that word names, from a size such as `4MiB`.
func (s *Sizes) Set(word, size string) error {
	for _, b := range s.bounds() {
		if b.word != word {
			continue
		}
		if *b.value != 0 {
			return fmt.Errorf("%s may be given once", word)
		}
		n, err := humanize.ParseBytes(size)
		if err != nil || n == 0 || n > maxSize {
			return fmt.Errorf("%s: %q is not a size between 1B and 1GiB", word, size)
		}
		*b.value = int64(n)
		return nil
	}
	return fmt.Errorf("unrecognized size %q; known are api, meta, mcp, sse, llm, event", word)
}

// Check refuses bounds that Set would refuse. s may be nil.
func (s *Sizes) Check() error {
	if s == nil {
		return nil
	}
	for _, b := range s.bounds() {
		if *b.value < 0 || *b.value > maxSize {
			return fmt.Errorf("sizes: %s is %d, which is not between 1 and %d bytes", b.word, *b.value, maxSize)
		}
	}
	return nil
}

// WithDefaults returns the bounds that are in force. s may be nil.
func (s *Sizes) WithDefaults() Sizes {
	var out Sizes
	if s != nil {
		out = *s
	}
	for _, b := range out.bounds() {
		if *b.value == 0 {
			*b.value = b.standard
		}
	}
	return out
}
