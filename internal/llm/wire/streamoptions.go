package wire

import (
	"regexp"
	"strings"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// RefusesStreamOptions reports whether the body of a refusal says that its sender does not know stream_options. It
// believes only members that name the parameter, and messages that begin in a known way. Refusals repeat user input,
// such as the address of an image: a user who could write such a message there would make everybody's calls go
// unmetered (attack T07).
func RefusesStreamOptions(body []byte) bool {
	answer, err := strictjson.Parse(body, strictjson.Limits{MaxBytes: len(body) + 1})
	if err != nil {
		return false
	}
	if all := answer.Elems(); len(all) == 1 { // Google's
		answer = all[0]
	}
	if namesStreamOptions(answer) {
		return true
	}
	told, _ := answer.Get("error")
	return namesStreamOptions(told)
}

// namesStreamOptions reports whether an error, as a text or an object, is about stream_options.
func namesStreamOptions(told strictjson.Value) bool {
	switch told.Kind() {
	case strictjson.String:
		return unknownStreamOptions.MatchString(told.Str())
	case strictjson.Object:
	default:
		return false
	}
	if param, _ := told.Get("param"); isStreamOptions(param) {
		return true
	}
	message, _ := told.Get("message")
	if inner, err := strictjson.Parse([]byte(message.Str()), strictjson.Limits{MaxBytes: len(message.Str()) + 1}); err == nil {
		message = inner // Azure AI Foundry sends a text that holds the answer of the server behind it
	}
	for _, in := range []strictjson.Value{told, message} { // Mistral puts it in the message
		detail, _ := in.Get("detail")
		if detail.Kind() == strictjson.String && namesStreamOptions(detail) {
			return true
		}
		for _, one := range detail.Elems() {
			loc, _ := one.Get("loc")
			if path := loc.Elems(); len(path) > 0 && (isStreamOptions(path[0]) || len(path) > 1 && path[0].Is("body") && isStreamOptions(path[1])) {
				return true
			}
		}
	}
	return message.Kind() == strictjson.String && namesStreamOptions(message)
}

// isStreamOptions reports whether a value is the name of stream_options, or of a member of them.
func isStreamOptions(name strictjson.Value) bool {
	if name.Kind() != strictjson.String {
		return false
	}
	text := name.Str()
	return text == "stream_options" || strings.HasPrefix(text, "stream_options.")
}

// unknownStreamOptions matches the beginnings of messages with which servers refuse stream_options. It matches
// beginnings only, because messages repeat user input after that.
var unknownStreamOptions = func() *regexp.Regexp {
	const name = "[\"'`\\[]?stream_options(?:\\.include_usage)?(?:[\"'`\\],;:)\\s]+|\\.?\\s|\\.?$)"
	forms := []string{
		// Unknown parameter: 'stream_options'; Unrecognized request argument supplied: stream_options; unknown field "stream_options"
		`(?:unknown|unsupported|unrecognized|unexpected)(?: (?:request|body|query|input|keyword))?` +
			` (?:parameter|argument|field|property|name|key|option)(?:s|\(s\))?(?: supplied)?:? ` + name,
		// stream_options is not supported; property 'stream_options' is unsupported
		`(?:(?:the|this) )?(?:(?:request|body|input) )?(?:(?:parameter|argument|field|property|option):? )?` + name +
			`(?:(?:parameter|argument|field|property|option) )?is (?:not (?:supported|allowed|permitted|recognized)|unsupported|unknown|unrecognized)\b`,
		// stream_options: Extra inputs are not permitted; 1 validation error for Request\nbody -> stream_options\n  extra fields not permitted
		`(?:[0-9]+ validation errors? for [\w.\[\]]+\s+)?(?:body(?: -> |\.))?` + name + `extra (?:fields|inputs are) not permitted`,
		// vLLM sends a list of Python
		`(?:[0-9]+ validation errors?:\s+)?\[?\{'type': '[\w.]+', 'loc': \('body', 'stream_options'[,)]`,
		`additional properties are not allowed \('stream_options' was unexpected\)`,
		`malformed input request: #: extraneous key \[stream_options\] is not permitted`, // Amazon's
	}
	// The words before them are the provider's own: names of its exceptions, and of the parser of the request.
	const before = `(?:[\w.]+(?:error|exception)(?:: | - ))*(?:invalid json payload received\. |json: |validation: |[\w.]+\(\) got an )?`
	return regexp.MustCompile(`(?i)^` + before + `(?:` + strings.Join(forms, "|") + `)`)
}()
