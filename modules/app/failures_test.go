package app

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/durward-gateway/durward/internal/audit"
	"github.com/durward-gateway/durward/internal/ops/storehealth"
	"github.com/durward-gateway/durward/storage"
)

// TestWhoRefuses checks that a request that the journal of the audit log refuses is answered like one that the store
// refuses, and is not told as one: whoever is woken has to look at the node's disk.
func TestWhoRefuses(t *testing.T) {
	logged, logs := observer.New(zap.InfoLevel)
	var told []string
	watch := storehealth.New(func(context.Context) error { return nil }, func(t storehealth.Told) { told = append(told, t.Err.Error()) }, time.Now)
	core := &Core{resources: &resources{watch: watch}}
	full := fmt.Errorf("%w: no space left on device", audit.ErrUnavailable)
	core.LogFailure(zap.New(logged), "recording a call", fmt.Errorf("recording a call: %w", errors.Join(storage.ErrUnavailable, full)))
	if len(told) != 0 || logs.FilterMessage("recording a call").Len() != 1 {
		t.Errorf("the store is told to refuse %q, logged: %v", told, logs.All())
	}
	core.LogFailure(zap.New(logged), "reading models", &storage.UnavailableError{Reason: "the database cannot be reached"})
	if diff := cmp.Diff([]string{"store unavailable: the database cannot be reached"}, told); diff != "" || logs.Len() != 1 {
		t.Errorf("%s, logged: %v", diff, logs.All())
	}
}
