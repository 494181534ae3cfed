package mcp

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/ratelimit/admission/admissiontest"
	"github.com/durward-gateway/durward/modules/app"
)

const publicURL = "https://gate.example"

// TestAnswersNobodyAskedFor checks that no upstream gets an answer to a question that it did not ask, also where no policy
// looks at calls. Anybody can make an id that looks like that of a question of the gateway.
func TestAnswersNobodyAskedFor(t *testing.T) {
	own := sha256.Sum256([]byte(publicURL))
	for name, tc := range map[string]struct{ id, version string }{
		"of the server":                 {"1", "2025-11-25"},
		"of the gateway":                {fmt.Sprintf(`"gw-%x-0"`, own[:6]), "2025-11-25"},
		"in a revision without answers": {"1", "2026-07-28"},
		"of the gateway, there":         {fmt.Sprintf(`"gw-%x-0"`, own[:6]), "2026-07-28"},
	} {
		t.Run(name, func(t *testing.T) {
			h, c := limited(admissiontest.New(t, new(cache.Epochs), admissiontest.Limits(nil), time.Now), func(*http.Request) (*http.Response, error) {
				t.Error("the upstream gets it")
				return &http.Response{StatusCode: http.StatusAccepted, Body: http.NoBody}, nil
			})
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp/demo", strings.NewReader(`{"jsonrpc":"2.0","id":`+tc.id+`,"result":{}}`))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Mcp-Protocol-Version", tc.version)
			w := httptest.NewRecorder()
			if err := h.ServeHTTP(w, app.WithCall(r, c), nil); err != nil || w.Code != http.StatusAccepted {
				t.Errorf("%d %s, %v", w.Code, w.Body, err)
			}
		})
	}
}
