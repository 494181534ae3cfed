package approval

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// Members of the multi round-trip requests of revision 2026-07-28.
const (
	memberState     = "requestState"
	memberResponses = "inputResponses"
	memberResult    = "resultType"
	inputRequired   = "input_required"
)

// Names of the gateway's own questions among a result's inputRequests. Key asks for an approval.
// ConnectKey sends the user to connect an account.
const (
	Key        = "durward_approval"
	ConnectKey = "durward_connect"
)

// Retry holds the data that a call of revision 2026-07-28 brings from the round before.
type Retry struct {
	State    string // requestState
	HasState bool
	// Answer is the answer to the gateway's own question.
	Answer Answer
	// Others reports whether there are answers to questions that the gateway did not ask.
	Others bool
}

// Answer is a client's answer to a question of the gateway.
type Answer byte

// Answers to a question.
const (
	// Silence means that the question was not answered.
	Silence Answer = iota
	// Yes means accept. For a question that sends its user to the page it says only that the page was opened.
	Yes
	// No means decline or cancel.
	No
	// Unable means any other answer: the client did not ask its user.
	Unable
)

// ReadRetry reads a Retry from the params of a checked message.
func ReadRetry(params []byte) (Retry, error) {
	if params == nil {
		return Retry{}, nil
	}
	v, err := strictjson.Parse(params, partLimits(params))
	if err != nil {
		return Retry{}, err
	}
	var r Retry
	state, ok := v.Get(memberState)
	if ok {
		if state.Kind() != strictjson.String {
			return Retry{}, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: requestState must be a string"}
		}
		r.State, r.HasState = state.Str(), true
	}
	responses, answers := v.Get(memberResponses)
	r.Others = answers && responses.Kind() != strictjson.Object
	for _, m := range responses.Members() {
		r.Others = r.Others || m.Name != Key && m.Name != ConnectKey
	}
	if ours, said := responses.Get(Key); said {
		r.Answer = answerOf(ours)
	}
	return r, nil
}

// ReadAnswer reads the result of an elicitation. nil, from an error in place of a result, gives [Unable].
func ReadAnswer(result []byte) Answer {
	v, err := strictjson.Parse(result, partLimits(result))
	if err != nil {
		return Unable
	}
	return answerOf(v)
}

func answerOf(result strictjson.Value) Answer {
	action, _ := result.Get("action")
	switch action.Str() {
	case "accept":
		return Yes
	case "decline", "cancel":
		return No
	}
	return Unable
}

// partLimits returns limits for a part of a text that was checked already.
func partLimits(part []byte) strictjson.Limits {
	return strictjson.Limits{MaxBytes: len(part) + 1, MaxDepth: len(part) + 1, MaxMembers: len(part) + 1}
}

// Unwrap removes the gateway's members from a call's body. These are the answer to the gateway's question, when it
// asked one, and the state. The upstream's own state, if there is one, takes the place of the state. Everything else
// stays as the client wrote it.
func Unwrap(body []byte, st State) ([]byte, error) {
	return edit(body, "params", func(name string, value []byte) ([]byte, verdict, error) {
		switch {
		case name == memberState && st.HasUpstream:
			return quote(st.Upstream), replace, nil
		case name == memberState:
			return nil, drop, nil
		case name == memberResponses && st.Mode != ModeProof:
			left, err := without(value, Key)
			if err != nil || left == nil {
				return nil, drop, err
			}
			return left, replace, nil
		}
		return nil, keep, nil
	}, nil)
}

// Asks reports whether a message from the upstream answers the request with that id and asks for more input
// (input_required). It also returns the upstream's own state. id is JSON as it was written.
func Asks(message, id []byte) (state string, hasState, asks bool) {
	if !bytes.Contains(message, []byte(inputRequired)) && !bytes.Contains(message, []byte(`\u`)) {
		return "", false, false // most answers are large and ask for nothing
	}
	v, err := strictjson.Parse(message, strictjson.Limits{MaxBytes: len(message) + 1, MaxMembers: len(message) + 1})
	if err != nil {
		return "", false, false
	}
	answered, _ := v.Get("id")
	result, _ := v.Get("result")
	kind, _ := result.Get(memberResult)
	if kind.Str() != inputRequired || !jsonrpc.SameID(answered.Raw(), id) {
		return "", false, false
	}
	own, hasState := result.Get(memberState)
	return own.Str(), hasState, true
}

// Wrap puts the gateway's state into an answer that asks for input. It replaces the upstream's state, or is added where
// there is none.
func Wrap(message []byte, state string) ([]byte, error) {
	return edit(message, "result", func(name string, _ []byte) ([]byte, verdict, error) {
		if name == memberState {
			return quote(state), replace, nil
		}
		return nil, keep, nil
	}, &member{name: memberState, value: quote(state)})
}

// quote writes a JSON string without the escapes for HTML.
func quote(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // encoding a string cannot fail
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

type verdict int

const (
	keep verdict = iota
	drop
	replace
)

type member struct {
	name  string
	value []byte
}

// edit rewrites members of the object at message[name]. added is appended if no member has its name.
func edit(message []byte, name string, judge func(name string, value []byte) ([]byte, verdict, error), added *member) ([]byte, error) {
	out, err := rewrite(message, func(outer string, object []byte) ([]byte, verdict, error) {
		if outer != name {
			return nil, keep, nil
		}
		changed, err := rewrite(object, judge, added)
		return changed, replace, err
	}, nil)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// without returns an object without one member; nil when nothing is left.
func without(object []byte, name string) ([]byte, error) {
	left := 0
	out, err := rewrite(object, func(other string, _ []byte) ([]byte, verdict, error) {
		if other == name {
			return nil, drop, nil
		}
		left++
		return nil, keep, nil
	}, nil)
	if err != nil || left == 0 {
		return nil, err
	}
	return out, nil
}

var errNoObject = errors.New("not an object")

// rewrite writes an object anew with some members dropped, replaced or added. The other members keep their exact bytes.
func rewrite(object []byte, judge func(name string, value []byte) ([]byte, verdict, error), added *member) ([]byte, error) {
	s := strictjson.NewScanner(object, partLimits(object))
	defer s.Release()
	if s.Kind() != strictjson.Object {
		return nil, errNoObject
	}
	out := append(make([]byte, 0, len(object)+64), '{')
	sep := func() {
		if len(out) > 1 {
			out = append(out, ',')
		}
	}
	before := s.Offset() + 1
	var o strictjson.ObjectFrame
	for s.OpenObject(&o); s.NextMember(&o); {
		name := string(o.Name())
		value := s.Skip()
		if value == nil {
			break
		}
		end := s.Offset()
		text := object[before:end]
		before = end
		text = text[bytes.IndexByte(text, '"'):] // only a comma and blanks stand before a name
		if added != nil && added.name == name {
			added = nil
		}
		changed, what, err := judge(name, value)
		if err != nil {
			return nil, err
		}
		switch what {
		case keep:
			sep()
			out = append(out, text...)
		case replace:
			sep()
			out = append(out, text[:len(text)-len(value)]...)
			out = append(out, changed...)
		case drop:
		}
	}
	if err := s.End(); err != nil {
		return nil, err
	}
	if added != nil {
		sep()
		out = append(append(append(out, quote(added.name)...), ':'), added.value...)
	}
	return append(out, '}'), nil
}
