package app

import (
	"context"
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

// Crowded reports whether a call is to be refused for want of memory: any call at the critical level; at the high one those
// that bring a large body or, as lasting says, stay (streams, sessions); and a large body for which there is no room beside
// those that are under way. most is the bound of bodies, for those of unknown length. Streams and calls that run go on.
func (c *Call) Crowded(r *http.Request, lasting bool, most int64) bool {
	large := r.ContentLength < 0 || r.ContentLength > largeBody
	switch c.Core.Overload.Level() {
	case overload.Critical:
		return true
	case overload.High:
		return lasting || large
	}
	if !large || lasting || r.ContentLength > most { // the last one is refused before it is read
		return false
	}
	size := r.ContentLength
	if size < 0 {
		size = most
	}
	done, ok := c.Core.Overload.Admit(2 * size) // while it grows, what it has grown out of is there too
	if ok {
		context.AfterFunc(r.Context(), done)
	}
	return !ok
}

// Shed answers a call that is to be refused for want of memory, and reports whether it was.
func (c *Call) Shed(w http.ResponseWriter, r *http.Request, lasting bool) bool {
	if !c.Crowded(r, lasting, c.Core.Sizes.MCP) {
		return false
	}
	forward.AnswerUnread(w, r, func() { WriteError(w, Unavailable, textOverloaded) })
	return true
}
