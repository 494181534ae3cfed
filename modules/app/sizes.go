package app

import (
	"fmt"

	"github.com/dustin/go-humanize"
)

// Sizes are upper bounds in bytes. A zero member takes its default.
type Sizes struct {
	// A request body of the platform API. Default: 1 MiB.
	API int64 `json:"api,omitempty"`
	// A `meta` object. Default: 64 KiB.
	Meta int64 `json:"meta,omitempty"`
	// A request body on /mcp. Default: 4 MiB.
	MCP int64 `json:"mcp,omitempty"`
	// A request body on /sse. Default: 64 KiB.
	SSE int64 `json:"sse,omitempty"`
	// One event of an upstream's stream on /sse; on /mcp an event may be sixteen times as large. Default: 1 MiB.
	Event int64 `json:"event,omitempty"`
}

// mcpEventFactor keeps the proportion of the two defaults (1 MiB on /sse, 16 MiB on /mcp) when an operator changes one word.
const mcpEventFactor = 16

// MCPEvent is the bound of one event on /mcp.
func (s Sizes) MCPEvent() int64 { return s.Event * mcpEventFactor }

// Set sets the bound that word names, from a size such as `4MiB`.
func (s *Sizes) Set(word, size string) error {
	n, err := humanize.ParseBytes(size)
	if err != nil || n == 0 || n > 1<<30 {
		return fmt.Errorf("%s: %q is not a size between 1B and 1GiB", word, size)
	}
	target := map[string]*int64{"api": &s.API, "meta": &s.Meta, "mcp": &s.MCP, "sse": &s.SSE, "event": &s.Event}[word]
	if target == nil {
		return fmt.Errorf("unrecognized size %q; known are api, meta, mcp, sse, event", word)
	}
	*target = int64(n)
	return nil
}

func (s *Sizes) withDefaults() Sizes {
	var out Sizes
	if s != nil {
		out = *s
	}
	for _, bound := range []struct {
		value    *int64
		standard int64
	}{
		{&out.API, 1 << 20}, {&out.Meta, 64 << 10}, {&out.MCP, 4 << 20}, {&out.SSE, 64 << 10}, {&out.Event, 1 << 20},
	} {
		if *bound.value == 0 {
			*bound.value = bound.standard
		}
	}
	return out
}
