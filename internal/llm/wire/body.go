package wire

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// options holds the stream_options of a chat completion.
type options struct {
	value   span // of stream_options; empty when there is none
	object  bool // false: null
	members bool // the object has members
	usage   span // the value of include_usage; empty when there is none
	wanted  bool // include_usage is true
	others  bool // it has members besides include_usage
	whole   span // the member with its comma; empty when there is none
}

// read reads stream_options, at which s stands.
func (o *options) read(s *strictjson.Scanner) (refused *RequestError) {
	o.value.from = s.Offset()
	switch s.Kind() {
	case strictjson.Null:
		s.Skip()
	case strictjson.Object:
		o.object = true
		var object strictjson.ObjectFrame
		for s.OpenObject(&object); !s.Failed() && s.NextMember(&object); {
			o.members = true
			name, start, kind := object.Name(), s.Offset(), s.Kind()
			usage := string(name) == "include_usage"
			o.others = o.others || !usage
			switch {
			case !usage && otherSpelling(name, []string{"include_usage"}), usage && kind != strictjson.Bool && kind != strictjson.Null:
				refused = invalidType("stream_options.include_usage must be true or false.")
			}
			value := s.Skip()
			if usage {
				o.usage = span{start, start + len(value)}
				o.wanted = string(value) == "true"
			}
		}
	default:
		refused = invalidType("stream_options must be an object.")
		s.Skip()
	}
	o.value.to = s.Offset()
	return refused
}

// Injects reports whether [Request.Body] asks the upstream for usage that the client did not ask for. [Stream] then
// removes it from the answer.
func (r *Request) Injects() bool {
	return r.Endpoint == limit.ChatCompletions && r.Stream && !r.options.wanted
}

// AsksForUsage reports whether the stream_options that [Request.Body] makes ask only for the usage. The client's answer
// is the same without them.
func (r *Request) AsksForUsage() bool {
	return r.Endpoint == limit.ChatCompletions && r.Stream && !r.options.others
}

// BodyWithout returns the Body for an upstream that does not know stream_options: without that member.
func (r *Request) BodyWithout(model string) []byte {
	cut := r.options.whole
	out := make([]byte, 0, len(r.body)+len(model))
	if r.model.from < cut.from || cut == (span{}) {
		out = r.appendModel(out, 0, model)
		return append(append(out, r.body[r.model.to:max(cut.from, r.model.to)]...), r.body[max(cut.to, r.model.to):]...)
	}
	out = append(out, r.body[:cut.from]...)
	out = r.appendModel(out, cut.to, model)
	return append(out, r.body[r.model.to:]...)
}

// appendModel appends the body from a position to the end of the value of model, with the new model in its place.
func (r *Request) appendModel(out []byte, from int, model string) []byte {
	if model == r.Alias {
		return append(out, r.body[from:r.model.to]...)
	}
	return appendString(append(out, r.body[from:r.model.from]...), model)
}

// Body returns the request for an upstream whose name for the model is model. It has the client's own bytes with
// another value for model and, when [Request.Injects], with stream_options.include_usage. When nothing changes it is
// the same slice that was read; it must not be written to.
func (r *Request) Body(model string) []byte {
	if model == r.Alias && !r.Injects() {
		return r.body
	}
	first := edit{at: r.model}
	if model == r.Alias {
		first.at.from = first.at.to // kept as the client wrote it
	} else {
		first.text = appendString(make([]byte, 0, len(model)+64), model)
	}
	var second edit
	if r.Injects() {
		o := &r.options
		switch {
		case o.value == span{}:
			first.text = append(first.text, `,"stream_options":{"include_usage":true}`...)
		case !o.object:
			second = edit{o.value, []byte(`{"include_usage":true}`)}
		case o.usage != span{}:
			second = edit{o.usage, []byte(`true`)}
		case o.members:
			second = edit{span{o.value.from + 1, o.value.from + 1}, []byte(`"include_usage":true,`)}
		default:
			second = edit{span{o.value.from + 1, o.value.from + 1}, []byte(`"include_usage":true`)}
		}
	}
	edits := [2]edit{first, second}
	if second.text != nil && second.at.from < first.at.from {
		edits = [2]edit{second, first}
	}
	out := make([]byte, 0, len(r.body)+len(first.text)+len(second.text))
	done := 0
	for _, e := range edits {
		if e.text == nil {
			continue
		}
		out = append(append(out, r.body[done:e.at.from]...), e.text...)
		done = e.at.to
	}
	return append(out, r.body[done:]...)
}

// edit replaces a part of the body.
type edit struct {
	at   span
	text []byte
}

// appendString appends s as a JSON string.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic("wire: a string is no JSON: " + err.Error())
			}
			return append(dst, quoted...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}
