package listfilter

import (
	"io"

	"github.com/durward-gateway/durward/internal/ssewire"
)

// NewReader returns an event stream whose events hold filtered messages: src, whose events have at most limit bytes. Events
// that nothing is taken out of keep their bytes.
func (f *Filter) NewReader(src io.Reader, limit int) *ssewire.Rewriter {
	return ssewire.NewRewriter(src, limit, f.Event)
}

// Event returns the data of an event as its reader gets it, and whether that is other data.
func (f *Filter) Event(data []byte) ([]byte, bool) {
	filtered, err := f.Message(data)
	if err != nil {
		return f.Refusal, true
	}
	return filtered, len(filtered) != len(data) || &filtered[0] != &data[0]
}
