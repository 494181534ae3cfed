package wire

import "github.com/durward-gateway/durward/internal/strictjson"

// unsupportedCounting is the message of Bedrock, with status 400, for models whose tokens it cannot count.
const unsupportedCounting = "The provided model doesn't support counting tokens."

// RefusesCounting reports whether the body of a refusal says that its sender cannot count tokens for the model. The
// message must say only that, because other refusals repeat user input.
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
