package llmwire

import "github.com/durward-gateway/durward/internal/strictjson"

// unsupportedCounting is what Bedrock says, with status 400, of the models that it counts no tokens for.
const unsupportedCounting = "The provided model doesn't support counting tokens."

// RefusesCounting reports whether the body of a refusal says that its sender counts no tokens for the model. The message has to
// say that alone, as other refusals repeat what users send.
func RefusesCounting(body []byte) bool {
	answer, err := strictjson.Parse(body, strictjson.Limits{MaxBytes: len(body) + 1})
	if err != nil {
		return false
	}
	told, _ := answer.Get("error") // gateways before Bedrock put its message there
	for _, object := range []strictjson.Value{answer, told} {
		if message, _ := object.Get("message"); message.Is(unsupportedCounting) {
			return true
		}
	}
	return false
}
