// Package admissiontest makes admitters for tests.
package admissiontest

import (
	"context"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/ratelimit/admission"
	"github.com/durward-gateway/durward/internal/ratelimit/window"
	"github.com/durward-gateway/durward/storage"
)

// Limits is a store with the same limits for every organization.
type Limits []storage.RateLimit

// EnabledRateLimits implements admission.Store.
func (l Limits) EnabledRateLimits(context.Context, string) ([]storage.RateLimit, error) {
	return l, nil
}

// New makes an admitter that counts alone, in counters of its own that are closed when the test ends. Its cached limits
// end with epochs.
func New(t testing.TB, epochs *cache.Epochs, store admission.Store, now func() time.Time) *admission.Admitter {
	t.Helper()
	book, err := admission.NewBook(epochs, store, window.New(now), func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(book.Close)
	return admission.New(admission.Options{Book: book})
}
