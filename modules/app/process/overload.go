package process

import (
	"log/slog"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/durward-gateway/durward/internal/ratelimit/overload"
)

// NewMeter makes the meter of a configuration with that memory_limit. It measures the process, so it must not outlive
// the configuration.
func NewMeter(memoryLimit int64, log *slog.Logger) *overload.Meter {
	memory := overload.Process(memoryLimit)
	return overload.New(memory, time.Now, func(_, to overload.Level, used int64) {
		figures := []any{"used", humanize.IBytes(uint64(max(0, used))), "limit", humanize.IBytes(uint64(memory.Limit))}
		switch to {
		case overload.Critical:
			log.Warn("refusing every new call: memory is short", figures...)
		case overload.High:
			log.Warn("refusing new streams, new sessions and large bodies: memory is getting short", figures...)
		default:
			log.Info("memory is not short any more", figures...)
		}
	})
}
