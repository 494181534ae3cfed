package health

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestAsk checks that only 200 is healthy, and that a gateway that hangs or is away is not.
func TestAsk(t *testing.T) {
	released := make(chan struct{})
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz":
		case "/readyz":
			http.Error(w, `{"status":"stopping"}`, http.StatusServiceUnavailable)
		case "/moved":
			http.Redirect(w, r, "/readyz", http.StatusFound)
		default:
			<-released
		}
	}))
	defer gateway.Close()
	defer close(released)
	away := httptest.NewServer(nil)
	away.Close()
	for address, want := range map[string]string{
		gateway.URL + "/healthz": "",
		gateway.URL + "/readyz":  `answers 503 Service Unavailable: {"status":"stopping"}`,
		gateway.URL + "/moved":   "answers 503",
		gateway.URL + "/hangs":   "deadline exceeded",
		away.URL + "/healthz":    "does not answer",
		"http://[":               "parse",
	} {
		patience := time.Minute
		if strings.HasSuffix(address, "/hangs") {
			patience = 10 * time.Millisecond
		}
		switch err := ask(t.Context(), address, patience); {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}
