package jsonrpc

import (
	"bytes"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// MaxBatch is the largest number of messages in one batch (attack M03).
const MaxBatch = 100

// MetaProtocolVersion is the member of params._meta that carries a request's protocol version from 2026-07-28 on.
const MetaProtocolVersion = "io.modelcontextprotocol/protocolVersion"

// Kind tells requests, notifications and responses apart.
type Kind uint8

// Kinds of messages.
const (
	Request      Kind = iota + 1 // has a method and an id
	Notification                 // has a method and no id
	Response                     // has a result or an error
)

// Message holds one message. Its slices are views of the decoded body: they are valid as long as the body is neither
// changed nor reused. A caller that keeps one longer must clone it.
type Message struct {
	Raw    []byte // the message's text
	Kind   Kind
	AsTask bool   // params.task is there: the call asks to be run as a task (2025-11-25)
	ID     []byte // as it was written, for echoing; nil when absent
	Method string

	Params    []byte // params, an object; nil when absent or null
	Arguments []byte // params.arguments, of any kind; nil when absent
	Meta      []byte // params._meta, an object; nil when absent or null
	Name      string // params.name
	URI       string // params.uri
	TaskID    string // params.taskId
	// ProtocolVersion is params._meta["io.modelcontextprotocol/protocolVersion"].
	ProtocolVersion string

	Result  []byte // of a Response; nil when it is an error
	Failure []byte // the error member of a Response, an object; nil when it is a result
}

// Body holds the messages of one POST.
type Body struct {
	Messages []Message
	Batch    bool // the messages came as an array
}

// Parse reads a whole body. An error is an *Error: CodeParseError for text that is no JSON, CodeInvalidRequest for
// JSON that is no JSON-RPC message or is refused for duplicate members, depth or size, CodeInvalidParams for
// parameters of the wrong type among those on which a decision depends.
func Parse(b []byte, l strictjson.Limits) (Body, error) {
	body := Body{Messages: make([]Message, 0, 1)}
	err := body.Decode(b, l)
	return body, err
}

// Decode parses like Parse into body, whose memory it uses again: for a single message it allocates its texts alone, such
// as the method and the name.
func (body *Body) Decode(b []byte, l strictjson.Limits) error {
	clear(body.Messages)
	body.Messages, body.Batch = body.Messages[:0], false
	s := strictjson.NewScanner(b, l)
	defer s.Release()
	r := reader{s: s, text: b}
	if s.Kind() == strictjson.Array {
		body.Batch = true
		r.batch(body)
	} else {
		body.Messages = append(body.Messages, Message{})
		r.message(&body.Messages[0])
	}
	if err := s.End(); err != nil {
		body.Messages = body.Messages[:0]
		return syntaxError(err)
	}
	if r.problem == nil {
		return nil
	}
	if !body.Batch && len(body.Messages) == 1 {
		r.problem.ID = body.Messages[0].ID
	}
	body.Messages = body.Messages[:0]
	return r.problem
}

func syntaxError(err error) error {
	code, syntax := CodeParseError, (*strictjson.SyntaxError)(nil)
	if errors.As(err, &syntax) && syntax.WellFormed() {
		code = CodeInvalidRequest
	}
	return &Error{Code: code, Message: "Invalid JSON: " + err.Error(), Err: err}
}

// reader reads on to the end of the text after a problem, because the id may follow it and because bad JSON is the
// more serious answer.
type reader struct {
	s       *strictjson.Scanner
	text    []byte
	problem *Error // the first one
}

func (r *reader) refuse(code int, message string) {
	if r.problem == nil && !r.s.Failed() {
		r.problem = &Error{Code: code, Message: message}
	}
}

func (r *reader) batch(body *Body) {
	var a strictjson.ArrayFrame
	for r.s.OpenArray(&a); r.s.NextElement(&a); {
		if len(body.Messages) == MaxBatch {
			r.refuse(CodeInvalidRequest, "Invalid request: the batch is too long")
		}
		if r.problem != nil {
			r.s.Skip()
			continue
		}
		body.Messages = append(body.Messages, Message{})
		r.message(&body.Messages[len(body.Messages)-1])
	}
	if len(body.Messages) == 0 {
		r.refuse(CodeInvalidRequest, "Invalid request: the batch is empty")
	}
}

// message reads one message (JSON-RPC 2.0 sections 4 and 5). Members that it does not know are tolerated.
func (r *reader) message(m *Message) {
	s := r.s
	if k := s.Kind(); k != strictjson.Object {
		s.Skip()
		if k != strictjson.Invalid {
			r.refuse(CodeInvalidRequest, "Invalid request: a message must be an object")
		}
		return
	}
	start := s.Offset()
	version, nullID := r.members(m)
	m.Raw = r.text[start:s.Offset():s.Offset()]
	r.classify(m, version, nullID)
}

// members reads the members of a message. It reports whether the version is ours, and whether the id is null.
func (r *reader) members(m *Message) (version, nullID bool) {
	s := r.s
	var o strictjson.ObjectFrame
	for s.OpenObject(&o); s.NextMember(&o); {
		switch string(o.Name()) {
		case "jsonrpc":
			version = r.str("jsonrpc", CodeInvalidRequest) == "2.0"
		case "id":
			m.ID, nullID = r.id()
		case "method":
			m.Method = r.str("method", CodeInvalidRequest)
		case "params":
			r.params(m)
		case "result":
			m.Result = s.Skip()
		case "error":
			if s.Kind() != strictjson.Object {
				r.refuse(CodeInvalidRequest, "Invalid request: error must be an object")
			}
			m.Failure = s.Skip()
		default:
			if doubtful(o.Name(), "jsonrpc", "id", "method", "params", "result", "error") {
				r.refuse(CodeInvalidRequest, "Invalid request: a member's name is doubtful")
			}
			s.Skip()
		}
	}
	return version, nullID
}

// classify finds out of which kind a message is, and refuses one that is of none.
func (r *reader) classify(m *Message, version, nullID bool) {
	answers := m.Result != nil || m.Failure != nil
	switch {
	case !version:
		r.refuse(CodeInvalidRequest, `Invalid request: jsonrpc must be "2.0"`)
	case m.Method != "" && answers, m.Result != nil && m.Failure != nil:
		r.refuse(CodeInvalidRequest, "Invalid request: more than one of method, result and error")
	case m.Method != "" && nullID:
		r.refuse(CodeInvalidRequest, "Invalid request: id must not be null")
	case m.Method != "" && m.ID != nil:
		m.Kind = Request
	case m.Method != "":
		m.Kind = Notification
	case !answers:
		r.refuse(CodeInvalidRequest, "Invalid request: method is missing")
	case m.ID == nil && !(nullID && m.Failure != nil):
		r.refuse(CodeInvalidRequest, "Invalid request: a response needs the id of its request")
	default:
		m.Kind = Response
	}
}

// params reads the parameters on which policies are decided. Null counts as absent, as in the official servers.
func (r *reader) params(m *Message) {
	s := r.s
	switch s.Kind() {
	case strictjson.Object:
	case strictjson.Null:
		s.Skip()
		return
	default:
		r.refuse(CodeInvalidRequest, "Invalid request: params must be an object")
		s.Skip()
		return
	}
	start := s.Offset()
	var o strictjson.ObjectFrame
	for s.OpenObject(&o); s.NextMember(&o); {
		switch string(o.Name()) {
		case "name":
			m.Name = r.str("params.name", CodeInvalidParams)
		case "uri":
			m.URI = r.str("params.uri", CodeInvalidParams)
		case "taskId":
			m.TaskID = r.str("params.taskId", CodeInvalidParams)
		case "arguments":
			m.Arguments = s.Skip()
		case "task":
			m.AsTask = true
			s.Skip()
		case "_meta":
			r.meta(m)
		case "ref", "inputResponses", "requestState", "notifications": // read where a decision depends on them
			s.Skip()
		default:
			if doubtful(o.Name(), "name", "uri", "taskId", "arguments", "_meta", "ref", "inputResponses", "requestState", "notifications") {
				r.refuse(CodeInvalidRequest, "Invalid request: a member's name in params is doubtful")
			}
			s.Skip()
		}
	}
	m.Params = r.text[start:s.Offset():s.Offset()]
}

func (r *reader) meta(m *Message) {
	s := r.s
	switch s.Kind() {
	case strictjson.Object:
	case strictjson.Null:
		s.Skip()
		return
	default:
		r.refuse(CodeInvalidParams, "Invalid params: _meta must be an object")
		s.Skip()
		return
	}
	start := s.Offset()
	var o strictjson.ObjectFrame
	for s.OpenObject(&o); s.NextMember(&o); {
		if string(o.Name()) == MetaProtocolVersion {
			m.ProtocolVersion = r.str("the protocol version in _meta", CodeInvalidParams)
			continue
		}
		if doubtful(o.Name(), MetaProtocolVersion) {
			r.refuse(CodeInvalidRequest, "Invalid request: a member's name in _meta is doubtful")
		}
		s.Skip()
	}
	m.Meta = r.text[start:s.Offset():s.Offset()]
}

// id reads an id: a string or an integer. A fraction or an exponent is refused, because servers disagree on the form
// in which they return it. Null is reported separately.
func (r *reader) id() (id []byte, null bool) {
	switch r.s.Kind() {
	case strictjson.String:
		return r.s.Skip(), false
	case strictjson.Number:
		raw := r.s.Skip()
		if _, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
			return raw, false
		}
	case strictjson.Null:
		return nil, r.s.Skip() != nil
	default:
		r.s.Skip()
	}
	r.refuse(CodeInvalidRequest, "Invalid request: id must be a string or an integer")
	return nil, false
}

// str reads a string and decodes it.
func (r *reader) str(what string, code int) string {
	if r.s.Kind() != strictjson.String {
		r.s.Skip()
		if code == CodeInvalidParams {
			r.refuse(code, "Invalid params: "+what+" must be a string")
		} else {
			r.refuse(code, "Invalid request: "+what+" must be a string")
		}
		return ""
	}
	raw, escaped := r.s.String()
	switch {
	case len(raw) < 2:
		return ""
	case escaped:
		return string(strictjson.AppendUnescaped(make([]byte, 0, len(raw)), raw[1:len(raw)-1]))
	}
	return string(raw[1 : len(raw)-1])
}

// doubtful reports whether another reader could take the name for one of the known ones: it differs only in case, by
// the folding that Go's encoding/json uses (so "param\u017f" too), or it holds a control character, where a reader in C
// would stop.
func doubtful(name []byte, known ...string) bool {
	ascii := true
	for _, c := range name {
		if c < 0x20 || c == 0x7f {
			return true
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	for _, k := range known {
		if (!ascii || len(k) == len(name)) && bytes.EqualFold(name, []byte(k)) {
			return true
		}
	}
	return false
}

// Lookup returns the member of that name of an object, for decisions that depend on something deeper inside params.
// It returns an *Error when there is a member whose name differs only in case, or holds a control character.
func Lookup(object strictjson.Value, name string) (strictjson.Value, bool, error) {
	for _, m := range object.Members() {
		if m.Name != name && doubtful([]byte(m.Name), name) {
			return strictjson.Value{}, false, &Error{Code: CodeInvalidRequest, Message: "Invalid request: a member's name is doubtful"}
		}
	}
	v, ok := object.Get(name)
	return v, ok, nil
}
