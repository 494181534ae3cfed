package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
)

func TestErrorBody(t *testing.T) {
	for _, test := range []struct {
		endpoint      limit.Endpoint
		status        int
		code, message string
		want          string
	}{
		{limit.ChatCompletions, 400, "", "No.", `{"error":{"message":"No.","type":"invalid_request_error","param":null,"code":null}}`},
		{limit.Responses, 401, CodeInvalidKey, "No.", `{"error":{"message":"No.","type":"authentication_error","param":null,"code":"invalid_api_key"}}`},
		{limit.Embeddings, 404, CodeModelNotFound, "\"<\n\xff", "{\"error\":{\"message\":\"\\\"<\\n\\ufffd\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":\"model_not_found\"}}"},
		{limit.ChatCompletions, 429, CodeRateLimit, "", `{"error":{"message":"","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}`},
		{limit.ChatCompletions, 429, CodeBudget, "", `{"error":{"message":"","type":"insufficient_quota","param":null,"code":"budget_exceeded"}}`},
		{limit.ChatCompletions, 502, CodeUpstream, "", `{"error":{"message":"","type":"server_error","param":null,"code":"upstream_error"}}`},
		{limit.Messages, 404, CodeModelNotFound, "No.", `{"type":"error","error":{"type":"not_found_error","message":"No."}}`},
	} {
		if got := string(ErrorBody(test.endpoint, test.status, test.code, test.message)); got != test.want {
			t.Errorf("%d: %s", test.status, got)
		}
	}
	for status, want := range map[int][2]string{
		400: {"invalid_request_error", "invalid_request_error"}, 401: {"authentication_error", "authentication_error"},
		403: {"permission_error", "permission_error"}, 404: {"invalid_request_error", "not_found_error"}, 413: {"invalid_request_error", "request_too_large"},
		429: {"rate_limit_error", "rate_limit_error"}, 500: {"server_error", "api_error"}, 502: {"server_error", "api_error"},
		503: {"server_error", "overloaded_error"}, 529: {"server_error", "overloaded_error"},
	} {
		for i, endpoint := range []limit.Endpoint{limit.ChatCompletions, limit.Messages} {
			var body struct{ Error struct{ Type string } }
			if err := json.Unmarshal(ErrorBody(endpoint, status, "", ""), &body); err != nil || body.Error.Type != want[i] {
				t.Errorf("%d of %d: %q, %v", status, endpoint, body.Error.Type, err)
			}
		}
	}
}

func TestModelLists(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 7, time.FixedZone("", 3600))
	models := []Model{{"fast", "acme", at}, {"large", "acme", time.Time{}}}
	for _, test := range []struct {
		list func([]Model) []byte
		of   []Model
		want string
	}{
		{ModelList, nil, `{"object":"list","data":[]}`},
		{ModelList, models, `{"object":"list","data":[{"id":"fast","object":"model","created":1770087906,"owned_by":"acme"},{"id":"large","object":"model","created":0,"owned_by":"acme"}]}`},
		{AnthropicModelList, nil, `{"data":[],"has_more":false,"first_id":null,"last_id":null}`},
		{AnthropicModelList, models, `{"data":[{"type":"model","id":"fast","display_name":"fast","created_at":"2026-02-03T03:05:06Z"},{"type":"model","id":"large","display_name":"large","created_at":"1970-01-01T00:00:00Z"}],"has_more":false,"first_id":"fast","last_id":"large"}`},
	} {
		if got := string(test.list(test.of)); got != test.want {
			t.Error(got)
		}
	}
	for _, m := range models { // a single entry equals the one in the list
		if got := string(ModelEntry(m)); !strings.Contains(string(ModelList(models)), got) {
			t.Error(got)
		}
		if got := string(AnthropicModelEntry(m)); !strings.Contains(string(AnthropicModelList(models)), got) {
			t.Error(got)
		}
	}
}
