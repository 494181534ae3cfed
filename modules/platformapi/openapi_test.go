package platformapi

import (
	"testing"

	"github.com/durward-gateway/durward/modules/app/routes"
)

// TestDescribed checks that every route is described by what it reads, before it does anything.
func TestDescribed(t *testing.T) {
	d, err := routes.Document("https://gate.example.com", "v1")
	if err != nil {
		t.Fatal(err)
	}
	text, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", text)
}
