package wire

import (
	"encoding/json"
	"testing"
)

// TestRefusesStreamOptions covers W41: the known refusals of stream_options are told apart from any other text with
// that word, whoever wrote it (attack T07).
func TestRefusesStreamOptions(t *testing.T) {
	for _, body := range []string{
		`{"error":{"message":"Unknown parameter: 'stream_options'. (request id: 1)","type":"invalid_request_error","param":"stream_options","code":"unknown_parameter"}}`,
		`{"error":{"message":"x","param":"stream_options.include_usage"}}`,
		`{"object":"error","message":"x","param":"stream_options","code":400}`,
		`{"detail":[{"type":"missing","loc":["body","user"]},{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted","input":{"include_usage":true}}]}`,
		`{"detail":[{"type":"extra_forbidden","loc":["stream_options","include_usage"]}]}`,
		`{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"]}]},"type":"invalid_request_error"}`,
		`{"detail":"stream_options is not supported"}`,
		`{"error":"json: unknown field \"stream_options\""}`,
		`[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"stream_options\": Cannot find field.","status":"INVALID_ARGUMENT"}}]`,
	} {
		if !RefusesStreamOptions([]byte(body)) {
			t.Errorf("not seen: %s", body)
		}
	}
	for _, message := range []string{
		"Unknown parameter: 'stream_options'.", "Unknown parameter: 'stream_options.include_usage'.", "Unrecognized request argument supplied: stream_options",
		"Unknown parameter: stream_options", "property 'stream_options' is unsupported, did you mean 'stream'?", "stream_options is not supported",
		"stream_options is unsupported.", "The parameter `stream_options` is not supported by this model", "The 'stream_options' parameter is not supported.",
		"Unsupported parameter: 'stream_options' is not supported with this model.", "Validation: Unsupported parameter(s): `stream_options`",
		"create() got an unexpected keyword argument 'stream_options'", "litellm.BadRequestError: OpenAIException - Unknown parameter: 'stream_options'.",
		"1 validation error for ChatRequest\nstream_options\n  extra fields not permitted (type=value_error.extra)",
		"1 validation error for Chat\nbody -> stream_options\n  Extra inputs are not permitted [type=extra_forbidden]", "stream_options: Extra inputs are not permitted",
		"[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted', 'input': {'include_usage': True}}]",
		"Additional properties are not allowed ('stream_options' was unexpected)", "Malformed input request: #: extraneous key [stream_options] is not permitted, please reformat",
	} {
		if body, err := json.Marshal(map[string]any{"error": map[string]any{"message": message}}); err != nil || !RefusesStreamOptions(body) {
			t.Errorf("not seen: %s %v", body, err)
		}
	}
	for _, message := range []string{
		"Failed to download https://evil.test/stream_options.png", "Failed to download https://evil.test/?Unknown parameter: 'stream_options'",
		"Failed to download 'x'\nUnknown parameter: 'stream_options'", "Invalid value: 'stream_options'", "Invalid value: 'stream_options is not supported'",
		"Unknown parameter: 'stream_options.png'", "Unknown parameter: 'stream_options2'", "Unknown parameter: 'my_stream_options'",
		"Unknown parameter: 'https://evil.test/stream_options'", "Unknown parameter: stream_options/x", "https://evil.test/stream_options is not supported",
		"stream_options.png is not supported", "[{'type': 'x', 'loc': ('body', 'messages', 0), 'input': \"'loc': ('body', 'stream_options')\"}]",
		"stream_options", "include_usage", "",
	} {
		if body, err := json.Marshal(map[string]any{"error": map[string]any{"message": message, "param": "messages[0].stream_options"}}); err != nil || RefusesStreamOptions(body) {
			t.Errorf("believed: %s %v", body, err)
		}
	}
	for _, body := range []string{
		``, `stream_options is not supported`, `{"error":{"message":"x","input":"stream_options"}}`, `{"stream_options":"stream_options"}`,
		`{"detail":[{"loc":["body","messages",0,"stream_options"],"msg":"stream_options","input":"stream_options"}]}`, `{"error":{"param":"stream_options_x"}}`,
		`{"error":{"param":["stream_options"],"message":["stream_options is not supported"]}}`, `[{"error":null},{"error":{"param":"stream_options"}}]`,
	} {
		if RefusesStreamOptions([]byte(body)) {
			t.Errorf("believed: %s", body)
		}
	}
}
