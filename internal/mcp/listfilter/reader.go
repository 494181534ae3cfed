package listfilter

import (
	"io"

	"github.com/durward-gateway/durward/internal/proxy/sse"
)

// NewReader returns an event stream whose events hold filtered messages. Its source is src, whose events have at most
// limit bytes. Unchanged events keep their bytes.
func (f *Filter) NewReader(src io.Reader, limit int) *sse.Rewriter {
	return sse.NewRewriter(src, limit, f.Event)
}

// Event returns the data of an event as its reader gets it, and whether the data was changed.
func (f *Filter) Event(data []byte) ([]byte, bool) {
	filtered, err := f.Message(data)
	switch {
	case err == nil:
		return filtered, len(filtered) != len(data) || &filtered[0] != &data[0]
	case f.Refusal == nil:
		return nil, true
	default:
		return f.Refusal(), true
	}
}
