package forward

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/durward-gateway/durward/internal/proxy/http1"
	"github.com/durward-gateway/durward/internal/seal/sealtest"
)

// TestSilent covers L01: neither the client's request nor the outgoing one shows a credential.
func TestSilent(t *testing.T) {
	r := &Request{
		Method: http.MethodPost, URL: &url.URL{Host: "up.example"}, Header: http.Header{"Authorization": {sealtest.Canary}}, Body: []byte(sealtest.Canary),
		SessionID: sealtest.Canary,
	}
	out := &outgoing{request: http1.Request{Method: "POST", URL: r.URL}}
	out.fields[0] = http1.Field{Name: "Authorization", Value: sealtest.Canary}
	out.request.Fields = out.fields[:1]
	sealtest.SilentOutside(t, r, out)
}
