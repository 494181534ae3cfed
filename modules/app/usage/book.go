package usage

import (
	"log/slog"
	"sync/atomic"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/llm/metering"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/storage"
)

// Book is the part of Usage that outlives configurations.
type Book struct {
	meter *metering.Meter
	// told is the configuration that hears of alerts, and logs: the one that started last.
	told atomic.Pointer[Usage]
}

// Open opens the book of a store. dir is the directory for entries that are not stored yet; it is made when it is
// missing. The store's OnChange bumps epochs.
func Open(store storage.Store, epochs *cache.Epochs, dir string) (*Book, error) {
	b := new(Book)
	var err error
	if b.meter, err = metering.New(metering.Options{Store: store, Dir: dir, Epochs: epochs, Alert: b.alert, Log: b.log}); err != nil {
		return nil, err
	}
	metrics.WatchUsage(b.meter)
	return b, nil
}

// Close stores the entries that are not stored yet, also those that an earlier process has left in the directory.
func (b *Book) Close() {
	b.meter.Close()
	metrics.ForgetUsage(b.meter)
}

func (b *Book) log() *slog.Logger {
	if u := b.told.Load(); u != nil {
		return u.log
	}
	return slog.New(slog.DiscardHandler)
}

func (b *Book) alert(a metering.Alert) {
	if u := b.told.Load(); u != nil {
		u.alert(a)
	}
}
