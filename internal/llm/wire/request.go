package wire

import (
	"bytes"
	"errors"
	"strings"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// Request is a request for a model that was read and is valid. It keeps the body, which must not change.
type Request struct {
	Endpoint limit.Endpoint
	Alias    string // the client's name for the model
	Stream   bool   // the client asks for an event stream
	Estimate limit.Estimate

	body    []byte
	model   span // value of model, with the quotation marks
	prompt  span // the value of messages or input; empty when there is none
	options options
}

// Forget releases the body, which may be large, once it was sent, because streams take long. The exported fields stay;
// Body and the texts of the user are gone.
func (r *Request) Forget() { r.body, r.model, r.prompt = nil, span{}, span{} }

// span is body[from:to].
type span struct{ from, to int }

func (s span) of(b []byte) []byte { return b[s.from:s.to] }

// RequestError says why a request is refused, in the terms of [ErrorBody].
type RequestError struct {
	Status  int    // 400, 404 or 413
	Code    string // one of the Code constants, or ""
	Message string // for the client; contains nothing of the request
	Err     error  // the reader's *strictjson.SyntaxError, or nil
}

// Error implements error.
func (e *RequestError) Error() string { return "reading a request for a model: " + e.Message }

// Unwrap returns the cause.
func (e *RequestError) Unwrap() error { return e.Err }

// Codes of errors in OpenAI's envelope.
const (
	CodeInvalidKey       = "invalid_api_key"
	CodeModelNotFound    = "model_not_found"
	CodeRateLimit        = "rate_limit_exceeded"
	CodeBudget           = "budget_exceeded"
	CodeUpstream         = "upstream_error"
	CodeOverloaded       = "server_is_overloaded" // one of OpenAI's own codes
	codeMissing          = "missing_required_parameter"
	codeInvalidType      = "invalid_type"
	codeUnknownParameter = "unknown_parameter"
	codeUnsupported      = "unsupported_parameter"
)

// NoSuchModel is the only answer for an alias that is unknown, disabled or not allowed for the caller.
const NoSuchModel = "The model does not exist or you do not have access to it. GET /models lists those that you can use."

// decided lists the members of a request that decide something or are counted. Readers that fold names, as
// encoding/json does, would take the last of "model" and "Model" (attack M04). So a request with another spelling of
// one of these is refused.
var decided = []string{
	"model", "stream", "stream_options", "messages", "system", "instructions", "tools", "input", "prompt",
	"max_tokens", "max_completion_tokens", "max_output_tokens", "n", "best_of",
	"background",
}

// Limited is the message for a caller that has reached a rate limit. It does not name the limit or the use of others
// (attack T08).
const Limited = "Rate limit exceeded. Retry-After says in how many seconds there is room again."

// ParseRequest reads a request strictly, in one pass. most is the greatest length in bytes, at least 1. The error is a
// *RequestError.
func ParseRequest(endpoint limit.Endpoint, body []byte, most int) (*Request, error) {
	s := strictjson.NewScanner(body, strictjson.Limits{MaxBytes: most})
	defer s.Release()
	r := &Request{Endpoint: endpoint, body: body}
	members := memberReader{s: s, r: r, estimate: limit.StartEstimate(endpoint)}
	var object strictjson.ObjectFrame
	end := 0 // end of the member before
	for s.OpenObject(&object); !s.Failed() && s.NextMember(&object); end = s.Offset() {
		members.read(object.Name(), end)
	}
	if err := s.End(); err != nil {
		return nil, malformed(err)
	}
	switch {
	case members.refused != nil:
		return nil, members.refused
	case r.model == span{}:
		return nil, &RequestError{Status: 400, Code: codeMissing, Message: "model is required."}
	case !isAlias(r.Alias):
		return nil, &RequestError{Status: 404, Code: CodeModelNotFound, Message: NoSuchModel}
	}
	r.Estimate = members.estimate.Estimate()
	if o := &r.options; o.whole.to > 0 && o.whole.from == 0 { // for the first member, the comma after it belongs to it
		o.whole.from = bytes.IndexByte(body, '{') + 1
		o.whole.to += bytes.IndexByte(body[o.whole.to:], ',') + 1
	}
	return r, nil
}

// memberReader reads a request's members into r. It reads on after a refusal, because a body that is no JSON is the more
// serious answer.
type memberReader struct {
	s        *strictjson.Scanner
	r        *Request
	estimate limit.Estimation
	refused  *RequestError // the first one
}

func (m *memberReader) refuse(e *RequestError) {
	if m.refused == nil {
		m.refused = e
	}
}

// read reads the value of the member name. The member before ends at end.
func (m *memberReader) read(name []byte, end int) {
	s, r := m.s, m.r
	switch string(name) {
	case "model":
		m.model()
	case "stream":
		m.stream()
	case "stream_options":
		if r.Endpoint != limit.ChatCompletions {
			s.Skip()
			return
		}
		if e := r.options.read(s); e != nil {
			m.refuse(e)
		}
		r.options.whole = span{end, s.Offset()}
	case "background":
		if e := background(r.Endpoint, s); e != nil {
			m.refuse(e)
		}
	default:
		m.other(name)
	}
}

func (m *memberReader) model() {
	s, start := m.s, m.s.Offset()
	if s.Kind() != strictjson.String {
		m.refuse(invalidType("model must be a string."))
		s.Skip()
		return
	}
	raw, escaped := s.String()
	m.r.model = span{start, start + len(raw)}
	m.r.Alias = unquote(raw, escaped)
}

func (m *memberReader) stream() {
	s := m.s
	switch s.Kind() {
	case strictjson.Bool:
		m.r.Stream = string(s.Skip()) == "true"
	case strictjson.Null:
		s.Skip()
	default:
		// Some servers accept 1 or "true" for true.
		m.refuse(invalidType("stream must be true or false."))
		s.Skip()
	}
}

// other reads a member that decides nothing here. It may count for the estimate.
func (m *memberReader) other(name []byte) {
	s, endpoint, start := m.s, m.r.Endpoint, m.s.Offset()
	if otherSpelling(name, decided) {
		m.refuse(&RequestError{Status: 400, Code: codeUnknownParameter, Message: "A member is spelled almost like one that is known: names are compared exactly."})
	}
	if !m.estimate.Member(name, s) {
		s.Skip()
		return
	}
	if string(name) == "messages" && (endpoint == limit.ChatCompletions || endpoint == limit.Messages) ||
		string(name) == "input" && (endpoint == limit.Responses || endpoint == limit.Embeddings) {
		m.r.prompt = span{start, s.Offset()}
	}
}

// background reads the member at which s stands, and refuses a response that is made after the answer. Nobody would
// learn its usage. Its caller could not fetch or stop it here, but could continue it in the next request (attack T07).
func background(endpoint limit.Endpoint, s *strictjson.Scanner) *RequestError {
	if kind, value := s.Kind(), s.Skip(); endpoint != limit.Responses || kind == strictjson.Null || string(value) == "false" {
		return nil
	}
	return &RequestError{Status: 400, Code: codeUnsupported, Message: "Responses in the background are not supported."}
}

func malformed(err error) *RequestError {
	var syntax *strictjson.SyntaxError
	if errors.As(err, &syntax) && syntax.Reason == strictjson.ReasonSize {
		return &RequestError{Status: 413, Message: "The request is too large.", Err: err}
	}
	return &RequestError{Status: 400, Message: "The body is not one JSON object: " + err.Error() + ".", Err: err}
}

func invalidType(message string) *RequestError {
	return &RequestError{Status: 400, Code: codeInvalidType, Message: message}
}

// otherSpelling reports whether name differs from all of names but equals one of them for a reader that folds letters.
func otherSpelling(name []byte, names []string) bool {
	plain := true
	for _, c := range name {
		if c >= 'A' && c <= 'Z' || c >= 0x80 {
			plain = false
			break
		}
	}
	if plain {
		return false
	}
	for _, n := range names {
		if len(name) <= 3*len(n) && bytes.EqualFold(name, []byte(n)) {
			return true
		}
	}
	return false
}

// isAlias checks the form of apikey.AliasPattern. The regular expression would cost more than the rest of a short
// request.
func isAlias(s string) bool {
	if len(s) == 0 || len(s) > 128 || strings.IndexByte("._:/@+-", s[0]) >= 0 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("._:/@+-", c) >= 0 {
			continue
		}
		return false
	}
	return true
}

// unquote returns the decoded text of a checked string.
func unquote(raw []byte, escaped bool) string {
	if len(raw) < 2 {
		return ""
	}
	raw = raw[1 : len(raw)-1]
	if escaped {
		raw = strictjson.AppendUnescaped(nil, raw)
	}
	return string(raw)
}
