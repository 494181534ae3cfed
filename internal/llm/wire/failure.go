package wire

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
)

// Failure is an upstream's error in an answer whose status is 200.
type Failure struct {
	// Name is the error's code or type, at most 64 printable characters. It is "" when it has neither.
	Name string
	// Status is the HTTP status that fits the error: 400 to 599. It is 500 when not known.
	Status int
	// Own reports whether the error is known to be the server's fault. An unknown error may be about user input.
	Own bool
}

// statusOf maps the names that providers give to errors, as plainWord writes them, to the statuses that stand for them.
var statusOf = func() map[string]int {
	all := make(map[string]int)
	for status, words := range map[int]string{
		500: "server_error internal_error internal_server_error internal api_error",
		502: "bad_gateway bad_gateway_error",
		503: "server_is_overloaded engine_overloaded engine_overloaded_error slow_down service_unavailable service_unavailable_error unavailable",
		504: "timeout timeout_error request_timeout gateway_timeout deadline_exceeded",
		529: "overloaded_error overloaded",
		429: "rate_limit_error rate_limit_exceeded too_many_requests resource_exhausted",
		401: "authentication_error invalid_api_key unauthenticated",
		402: "billing_error insufficient_quota billing_hard_limit_reached",
		403: "permission_error permission_denied",
		404: "not_found_error model_not_found",
		413: "request_too_large",
		400: "context_length_exceeded string_above_max_length unsupported_value unsupported_parameter unknown_parameter missing_required_parameter " +
			"bad_request bad_request_error invalid_parameter invalid_argument failed_precondition " +
			"image_too_large image_too_small image_parse_error image_file_too_large image_file_not_found unsupported_image_media_type " +
			"empty_image_file failed_to_download_image",
	} {
		for _, word := range strings.Fields(words) {
			all[plainWord(word)] = status
		}
	}
	return all
}()

// moderated lists parts of the names, as plainWord writes them, that providers give to refusals of user input.
var moderated = []string{"contentfilter", "contentpolicy", "policyviolation", "sensitivecontent", "prohibitedcontent", "moderation", "datainspection", "safety", "usererror"}

// plainWord writes a word in the form in which words are compared: server_error and ServerError are the same.
func plainWord(word string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(word))
}

// named returns the status for a code or type, 0 when it is not known. OpenRouter and others write the status itself.
func named(word string) int {
	if n, err := strconv.Atoi(word); err == nil {
		if n >= 400 && n <= 599 {
			return n
		}
		return 0
	}
	plain := plainWord(word)
	if status := statusOf[plain]; status != 0 {
		return status
	}
	for _, part := range moderated {
		if strings.Contains(plain, part) {
			return 400
		}
	}
	if strings.HasPrefix(strings.ToLower(word), "invalid_") {
		return 400
	}
	return 0
}

// failure reads an error, at which c stands: an object, or a text that may be a code. null means no error.
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
			f.Status, f.Own = status, status >= 500
			break
		}
	}
	return f, true
}

// word reads a text or a number.
func word(c *cursor) string {
	if c.next() == '"' {
		return printable(c.str())
	}
	if text := c.skip(); len(text) > 0 && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') {
		return printable(text)
	}
	return ""
}

// AnswerFailure reports whether a JSON answer is an error in place of an answer: it has an error, has no output of a
// model, and does not report any usage.
func AnswerFailure(endpoint limit.Endpoint, body []byte) (f Failure, failed bool) {
	if !bytes.Contains(body, []byte(`"error"`)) {
		return Failure{}, false
	}
	c := cursor{b: body}
	if endpoint == limit.ChatCompletions { // its choices fail one by one at OpenRouter
		s := Stream{endpoint: endpoint}
		s.chat(&c)
		return s.failure, s.failed && !s.Delivers()
	}
	for name := range c.members {
		switch string(name) {
		case "error":
			f, failed = failure(&c)
		case "output", "content", "data":
			if value := c.skip(); len(value) > 0 && value[0] == '[' && len(bytes.TrimSpace(value[1:])) > 1 {
				return Failure{}, false
			}
		default:
			c.skip()
		}
	}
	return f, failed && !AnswerUsage(endpoint, body).Known
}
