package gatewayapi

import (
	"testing"
	"time"

	"github.com/durward-gateway/durward/modules/app/routes"
)

// TestDescribed checks that every route is described by what it reads, before it does anything.
func TestDescribed(t *testing.T) {
	operations, err := (&Handler{now: time.Now}).api().Describe()
	if err != nil || len(operations) == 0 {
		t.Errorf("%d operations are described: %v", len(operations), err)
	}
	if _, err := routes.Document("https://gate.acme.dev", "v1"); err != nil {
		t.Error(err)
	}
}
