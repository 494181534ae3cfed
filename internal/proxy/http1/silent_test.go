package http1_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/durward-gateway/durward/internal/proxy/http1"
	"github.com/durward-gateway/durward/internal/seal/sealtest"
)

// TestSilent checks L01: a request does not show its credential.
func TestSilent(t *testing.T) {
	r := http1.Request{
		Method: "POST", URL: &url.URL{Scheme: "https", Host: "up.example", RawQuery: "key=" + sealtest.Canary},
		Fields: []http1.Field{{Name: "Authorization", Value: "Bearer " + sealtest.Canary}}, Body: []byte(sealtest.Canary),
	}
	for _, shown := range []string{fmt.Sprintf("%+v", r), fmt.Sprintf("%x", &r)} {
		if shown != "POST up.example" {
			t.Errorf("%q", shown)
		}
	}
	sealtest.SilentOutside(t, r, &r, http1.Request{})
}
