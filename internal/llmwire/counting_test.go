package llmwire

import "testing"

// TestRefusesCounting: W44, a model that tokens cannot be counted for is told from a request that is wrong.
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
