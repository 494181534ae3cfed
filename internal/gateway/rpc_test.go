package gateway_test

import (
	"net/http/httptest"
	"testing"

	"github.com/durward-gateway/durward/internal/gateway"
)

func TestErrorsOfJSONRPC(t *testing.T) {
	for id, written := range map[string]string{"": "null", `"a<b"`: `"a<b"`, "7": "7"} {
		var raw []byte
		if id != "" {
			raw = []byte(id)
		}
		w := httptest.NewRecorder()
		gateway.WriteBody(w, 200, gateway.RPCError(raw, -32603, "It <failed>", gateway.Unavailable))
		wantAnswer(t, id, w, 200, `{"jsonrpc":"2.0","id":`+written+`,"error":{"code":-32603,"message":"It <failed>","data":{"error":"Unavailable","message":"It <failed>"}}}`)
		if got := w.Header().Get("Retry-After"); got != "" {
			t.Errorf("Retry-After %q of an answer that is a success for HTTP", got)
		}
	}
}
