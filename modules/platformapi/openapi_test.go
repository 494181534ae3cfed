package platformapi

import (
	"bytes"
	"testing"

	"github.com/durward-gateway/durward/modules/app/routes"
)

// TestDescribed checks that every route is described by what it reads, before it does anything.
func TestDescribed(t *testing.T) {
	d, err := routes.Document("https://gate.example.com", "v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.JSON(); err != nil {
		t.Error(err)
	}
}

// TestDescribedOnce checks that the description is made once for an address: everybody may ask for it.
func TestDescribedOnce(t *testing.T) {
	first, err := describe("https://gate.example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := describe("https://gate.example.com", nil); err != nil || again != first {
		t.Errorf("it is made anew: %v", err)
	}
	other, err := describe("https://other.example.com", nil)
	if err != nil || other == first || !bytes.Contains(other.text, []byte("https://other.example.com")) {
		t.Errorf("another address has the same description: %v", err)
	}
}
