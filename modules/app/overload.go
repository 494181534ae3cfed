package app

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/durward-gateway/durward/internal/ratelimit/overload"
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
