package app

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/ratelimit/overload"
)

const (
	// textOverloaded is the message for a call that is refused because memory is short.
	textOverloaded = "The gateway is short of memory at the moment; try again later"
	// largeBody is the size in bytes above which a body is not taken while memory is short.
	largeBody = 64 << 10
)

// These are the bounds of memory_limit. The lower one catches a unit that was forgotten.
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

// newMeter makes the meter of a configuration. It measures the process, so it must not outlive the configuration.
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

// Crowded reports whether a call must be refused because memory is short. At the critical level this is any call. At
// the high level it is a call with a large body, or one that stays (lasting: streams, sessions). A large body is also
// refused when there is no room for it beside those that are being read. most is the limit for bodies, used for those
// of unknown length. Running streams and calls go on.
func (c *Call) Crowded(r *http.Request, lasting bool, most int64) bool {
	large := r.ContentLength < 0 || r.ContentLength > largeBody
	switch c.Core.Overload.Level() {
	case overload.Critical:
		return true
	case overload.High:
		return lasting || large
	}
	if !large || lasting || r.ContentLength > most { // a body above the limit is refused before it is read
		return false
	}
	size := r.ContentLength
	if size < 0 {
		size = most
	}
	done, ok := c.Core.Overload.Admit(2 * size) // while a buffer grows, the smaller one before it is in memory too
	if ok {
		context.AfterFunc(r.Context(), done)
	}
	return !ok
}

// Shed answers a call that must be refused because memory is short, and reports whether it did.
func (c *Call) Shed(w http.ResponseWriter, r *http.Request, lasting bool) bool {
	if !c.Crowded(r, lasting, c.Core.Sizes.MCP) {
		return false
	}
	forward.AnswerUnread(w, r, func() { WriteError(w, Unavailable, textOverloaded) })
	return true
}
