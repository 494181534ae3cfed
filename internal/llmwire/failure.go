package llmwire

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/durward-gateway/durward/internal/limit"
)

// Failure is an error that an upstream tells of in an answer whose status is 200.
type Failure struct {
	// Name is its code or its type, at most 64 printable characters, "" when it has neither.
	Name string
	// Status is the HTTP status with which it would have come before the answer: 400 to 599.
	Status int
}

// statusOf is the statuses that stand for what providers call errors.
var statusOf = map[string]int{
	"overloaded_error": 529, "overloaded": 529, "server_is_overloaded": 503, "engine_overloaded": 503, "slow_down": 503, "service_unavailable_error": 503,
	"unavailable": 503, "rate_limit_error": 429, "rate_limit_exceeded": 429, "too_many_requests": 429, "resource_exhausted": 429,
	"authentication_error": 401, "invalid_api_key": 401, "unauthenticated": 401, "billing_error": 402, "insufficient_quota": 402,
	"billing_hard_limit_reached": 402, "permission_error": 403, "permission_denied": 403, "not_found_error": 404, "model_not_found": 404,
	"request_too_large": 413, "context_length_exceeded": 400, "content_filter": 400, "content_policy_violation": 400,
	"string_above_max_length": 400, "unsupported_value": 400, "unsupported_parameter": 400, "unknown_parameter": 400, "missing_required_parameter": 400,
}

// named is the status that a code or type stands for, 0 when nobody knows: OpenRouter and others write the status itself.
func named(word string) int {
	if n, err := strconv.Atoi(word); err == nil {
		if n >= 400 && n <= 599 {
			return n
		}
		return 0
	}
	word = strings.ToLower(word)
	if status := statusOf[word]; status != 0 {
		return status
	}
	if strings.HasPrefix(word, "invalid_") {
		return 400
	}
	return 0
}

// failure reads an error, at which c stands: an object, or a text that may be a code. null is none.
func failure(c *cursor) (f Failure, told bool) {
	var words [2]string // the code is more exact than the type
	switch c.next() {
	case '{':
		for name := range c.members {
			switch string(name) {
			case "code":
				words[0] = word(c)
			case "type":
				words[1] = word(c)
			default:
				c.skip()
			}
		}
	case '"':
		words[0] = printable(c.text())
	case 'n': // null
		c.skip()
		return Failure{}, false
	default:
		c.skip()
	}
	f.Status = 500
	for _, w := range words {
		if f.Name == "" {
			f.Name = w
		}
		if status := named(w); status != 0 {
			f.Status = status
			break
		}
	}
	return f, true
}

// word is a text or a number.
func word(c *cursor) string {
	if c.next() == '"' {
		return printable(c.str())
	}
	if text := c.skip(); len(text) > 0 && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') {
		return printable(text)
	}
	return ""
}

// AnswerFailure reads from a JSON answer whether it is an error in place of an answer: it has one, and nothing that a model
// made, nor does it say that anything was used.
func AnswerFailure(endpoint limit.Endpoint, body []byte) (f Failure, failed bool) {
	if !bytes.Contains(body, []byte(`"error"`)) {
		return Failure{}, false
	}
	c := cursor{b: body}
	for name := range c.members {
		switch string(name) {
		case "error":
			f, failed = failure(&c)
		case "choices", "output", "content", "data":
			if value := c.skip(); len(value) > 0 && value[0] == '[' && len(bytes.TrimSpace(value[1:])) > 1 {
				return Failure{}, false
			}
		default:
			c.skip()
		}
	}
	return f, failed && !AnswerUsage(endpoint, body).Known
}
