package jsonrpc

import (
	"encoding/json"
	"errors"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// Envelope holds the members that tell the kind of a server's message. The contents are not checked: readers of JSON
// may disagree on a text in a tool's result (half a surrogate pair, a byte that is no UTF-8), and that is no reason
// to lose the answer.
type Envelope struct {
	ID              []byte // as it was written, a string or a number; nil when absent or null
	Method          string
	Result, Failure bool // the message is a response of that kind
}

// Kind returns the kind of the message, 0 when it is no message.
func (e *Envelope) Kind() Kind {
	switch {
	case e.Method != "" && (e.Result || e.Failure), e.Result && e.Failure:
	case e.Method != "" && e.ID != nil:
		return Request
	case e.Method != "":
		return Notification
	case e.Failure, e.Result && e.ID != nil:
		return Response
	}
	return 0
}

// ReadEnvelope reads the members of one message that tell its kind. It returns false for a text that is no JSON
// object, and for one that two readers would take for two messages. Members that are null count as absent, as with
// many servers, except for a null result without an error.
func ReadEnvelope(text []byte) (Envelope, bool) {
	r := envelopeReader{}
	s := strictjson.NewScanner(text, strictjson.Limits{MaxBytes: len(text) + 1, MaxDepth: 1 << 10, MaxMembers: len(text) + 1})
	defer s.Release()
	if s.Kind() != strictjson.Object {
		return Envelope{}, false
	}
	var o strictjson.ObjectFrame
	for s.OpenObject(&o); s.NextMember(&o); {
		r.member(o.Name(), s.Skip())
	}
	err := s.End()
	if err == nil {
		return r.end()
	}
	if !contentsAlone(err) || !json.Valid(text) {
		return Envelope{}, false
	}
	r = envelopeReader{}
	for name, value := range strictjson.Each(text) {
		r.member(name, value)
	}
	return r.end()
}

// Resembles reports whether some reader could take a JSON text that ReadEnvelope refuses for a message with an
// effect: one with a method or a result, however these are written, or an array that may hold one.
func Resembles(text []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return true
	}
	for name := range members {
		if name == "method" || name == "result" || doubtful([]byte(name), "method", "result") {
			return true
		}
	}
	return false
}

// contentsAlone reports whether a text may be JSON to every reader although the strict one refuses it.
func contentsAlone(err error) bool {
	syntax := (*strictjson.SyntaxError)(nil)
	if !errors.As(err, &syntax) {
		return false
	}
	return syntax.WellFormed() || syntax.Reason == strictjson.ReasonSurrogate || syntax.Reason == strictjson.ReasonUTF8
}

// envelopeReader collects the members of a message.
type envelopeReader struct {
	envelope Envelope
	seen     uint8 // which members of members
	null     bool  // the result is null
	odd      bool
}

var envelopeMembers = [...]string{"jsonrpc", "id", "method", "params", "result", "error"}

func (r *envelopeReader) member(name, value []byte) {
	if len(value) == 0 {
		return // the text is not read any further
	}
	for i, known := range envelopeMembers {
		if string(name) != known {
			continue
		}
		r.odd = r.odd || r.seen&(1<<i) != 0
		r.seen |= 1 << i
		r.known(known, value)
		return
	}
	r.odd = r.odd || doubtful(name, envelopeMembers[:]...)
}

func (r *envelopeReader) known(name string, value []byte) {
	null := value[0] == 'n'
	switch name {
	case "id":
		switch c := value[0]; {
		case c == '"', c == '-', c >= '0' && c <= '9':
			r.envelope.ID = value
		case !null:
			r.odd = true
		}
	case "method":
		switch {
		case value[0] == '"' && len(value) > 2:
			r.envelope.Method = string(strictjson.AppendUnescaped(nil, value[1:len(value)-1]))
		case !null:
			r.odd = true
		}
	case "result":
		r.envelope.Result, r.null = !null, null
	case "error":
		r.envelope.Failure = value[0] == '{'
		r.odd = r.odd || value[0] != '{' && !null
	}
}

func (r *envelopeReader) end() (Envelope, bool) {
	e := r.envelope
	if r.null && !e.Failure && e.Method == "" {
		e.Result = true
	}
	return e, !r.odd && e.Kind() != 0
}

// LooseID reports whether some reader would match an answer's id with that of a request: servers write numbers as
// strings and strings of digits as numbers, and the official clients accept both.
func LooseID(a, b []byte) bool {
	if SameID(a, b) {
		return true
	}
	text := func(id []byte) string {
		value := IDValue(id)
		if len(id) > 0 && id[0] == '"' && len(value) > 0 {
			return value[1:] // without the mark of a string
		}
		return value
	}
	return text(a) == text(b)
}
