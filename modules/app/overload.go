package app

import (
	"fmt"
	"net/http"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/durward-gateway/durward/internal/forward"
	"github.com/durward-gateway/durward/internal/overload"
)

const (
	// textOverloaded is what a call is told that is refused for want of memory.
	textOverloaded = "The gateway is short of memory at the moment; try again later"
	// largeBody is the size in bytes above which a body is not taken while memory is short.
	largeBody = 64 << 10
)

// Bounds of memory_limit. The lower one catches a unit that was forgotten.
const (
	minMemoryLimit = 1 << 20
	maxMemoryLimit = 1 << 50
)

// SetMemoryLimit sets the limit from a size such as `2GiB`.
func (a *App) SetMemoryLimit(size string) error {
	n, err := humanize.ParseBytes(size)
	if err != nil || n < minMemoryLimit || n > maxMemoryLimit {
		return fmt.Errorf("memory_limit: %q is not a size between 1MiB and 1PiB", size)
	}
	a.MemoryLimit = int64(n)
	return nil
}

func (a *App) checkMemoryLimit() error {
	if n := a.MemoryLimit; n != 0 && (n < minMemoryLimit || n > maxMemoryLimit) {
		return fmt.Errorf("memory_limit is %d, which is not between %d and %d bytes", n, minMemoryLimit, int64(maxMemoryLimit))
	}
	return nil
}

// newMeter makes the meter of a configuration. What it samples is the process, so nothing of it must outlive one.
func (a *App) newMeter() *overload.Meter {
	memory := overload.Process(a.MemoryLimit)
	return overload.New(memory, time.Now, func(_, to overload.Level, used int64) {
		figures := []any{"used", humanize.IBytes(uint64(max(0, used))), "limit", humanize.IBytes(uint64(memory.Limit))}
		switch to {
		case overload.Critical:
			a.slogger.Warn("refusing every new call: memory is short", figures...)
		case overload.High:
			a.slogger.Warn("refusing new streams, new sessions and large bodies: memory is getting short", figures...)
		default:
			a.slogger.Info("memory is not short any more", figures...)
		}
	})
}

// Shed refuses a call for want of memory, and reports whether it did: any call at the critical level; at the high one
// those that bring a large body or, as lasting says, stay (streams, sessions). Streams and calls that run go on.
func (c *Call) Shed(w http.ResponseWriter, r *http.Request, lasting bool) bool {
	switch c.Core.Overload.Level() {
	case overload.Critical:
	case overload.High:
		if !lasting && r.ContentLength >= 0 && r.ContentLength <= largeBody {
			return false
		}
	default:
		return false
	}
	forward.AnswerUnread(w, r, func() { WriteError(w, Unavailable, textOverloaded) })
	return true
}
