package wire

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
)

// StatusOverloaded is Anthropic's status for an overloaded server.
const StatusOverloaded = 529

// ErrorBody returns an error in the envelope of the endpoint's API. code is for OpenAI's envelope, "" means none;
// Anthropic's has no codes. message is for the client: one sentence without causes.
func ErrorBody(endpoint limit.Endpoint, status int, code, message string) []byte {
	if endpoint == limit.Messages {
		return encode(anthropicError{Type: "error", Error: anthropicDetail{anthropicType(status), message}})
	}
	return encode(openaiError{openaiDetail{message, openaiType(status, code), nil, optional(code)}})
}

// EndpointAt returns the endpoint whose envelope the refusal of a request has that no endpoint has taken. path is the
// request's below the runtime's base.
func EndpointAt(path string) limit.Endpoint {
	if path == "messages" {
		return limit.Messages
	}
	return limit.ChatCompletions
}

// streamError returns an error as an event, for a stream that breaks off after an event's end.
func streamError(endpoint limit.Endpoint, status int, code, message string, sequence int64) []byte {
	switch endpoint {
	case limit.Messages:
		return event("error", ErrorBody(endpoint, status, code, message))
	case limit.Responses:
		return event("error", encode(responsesError{"error", optional(code), message, nil, sequence}))
	default:
		return event("", ErrorBody(endpoint, status, code, message))
	}
}

func event(name string, data []byte) []byte {
	var b bytes.Buffer
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	b.WriteString("data: ")
	b.Write(data)
	b.WriteString("\n\n")
	return b.Bytes()
}

type openaiError struct {
	Error openaiDetail `json:"error"`
}

type openaiDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// responsesError is the error event of the Responses API, which has its members at the top level.
type responsesError struct {
	Type     string  `json:"type"`
	Code     *string `json:"code"`
	Message  string  `json:"message"`
	Param    *string `json:"param"`
	Sequence int64   `json:"sequence_number"`
}

type anthropicError struct {
	Type  string          `json:"type"`
	Error anthropicDetail `json:"error"`
}

type anthropicDetail struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func openaiType(status int, code string) string {
	switch {
	case code == CodeBudget:
		return "insufficient_quota"
	case status == 401:
		return "authentication_error"
	case status == 403:
		return "permission_error"
	case status == 429:
		return "rate_limit_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

func anthropicType(status int) string {
	switch status {
	case 401:
		return "authentication_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 503, StatusOverloaded:
		return "overloaded_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

// encode writes v as JSON. v may hold only strings and numbers, so that nothing needs to be escaped again.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("wire: encoding: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// parseNumber reads a number that consists of digits only, and returns 0 for anything else.
func parseNumber(text []byte) int64 {
	if len(text) > 18 {
		return 0
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
