package app

import (
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/ratelimit/admission"
	"github.com/durward-gateway/durward/internal/ratelimit/admission/admissiontest"
	"github.com/durward-gateway/durward/storage"
)

// TestDescriptionsAllocateNothing checks that describing a call to the admitter takes no memory.
func TestDescriptionsAllocateNothing(t *testing.T) {
	core := &Core{Admitter: admissiontest.New(t, new(cache.Epochs), admissiontest.Limits(nil), time.Now)}
	call := &Call{Core: core, Caller: &authn.Caller{OrganizationID: "acme"}, Server: &storage.Server{ID: "s1"}, notes: new(bearerNotes)}
	ctx := t.Context()
	look := func() {
		call.Limits = admission.State{}
		call.Limits.Count()
		if refused, err := core.Admitter.Look(ctx, call.Admission().Described()); refused != nil || err != nil {
			t.Fatal(refused, err)
		}
		core.Admitter.MeterText(ctx, call.Admission().Described(), nil)
	}
	look()
	if allocs := testing.AllocsPerRun(100, look); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
