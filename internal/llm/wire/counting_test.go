package wire

import "testing"

// TestRefusesCounting covers W44: a model without token counting is told apart from a wrong request.
func TestRefusesCounting(t *testing.T) {
	for body, want := range map[string]bool{
		`{"message":"The provided model doesn't support counting tokens."}`:                                                         true,
		`{"type":"error","error":{"type":"invalid_request_error","message":"The provided model doesn't support counting tokens."}}`: true,
		`{"message":"messages.0: The provided model doesn't support counting tokens."}`:                                             false,
		`{"message":["The provided model doesn't support counting tokens."]}`:                                                       false,
		`{"error":"The provided model doesn't support counting tokens."}`:                                                           false,
		`{"message":"The provided model identifier is invalid."}`:                                                                   false,
		`"The provided model doesn't support counting tokens."`:                                                                     false,
		`[]`: false, `{`: false, ``: false,
	} {
		if got := RefusesCounting([]byte(body)); got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}
