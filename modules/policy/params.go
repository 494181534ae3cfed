package policy

import (
	"errors"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// maxSubscribed is the number of resources that one subscription may name: each is judged, now and after every change.
const maxSubscribed = 1_000

// ref is the target of completion/complete.
type ref struct {
	prompt bool
	name   string // of the prompt, or the URI template
}

// params reads the params of a message, which jsonrpc has checked already.
func params(m *jsonrpc.Message) strictjson.Value {
	v, _ := strictjson.Parse(m.Params, strictjson.Limits{MaxBytes: len(m.Params) + 1})
	return v
}

// member returns a member of an object by its exact name; a member that some readers could take for it is refused.
func member(object strictjson.Value, name string) (strictjson.Value, *verdict) {
	v, _, err := jsonrpc.Lookup(object, name)
	if refused := (*jsonrpc.Error)(nil); errors.As(err, &refused) {
		return v, &verdict{code: refused.Code, text: refused.Message, service: gateway.BadRequest}
	}
	return v, nil
}

func invalidParams(text string) *verdict {
	return &verdict{code: jsonrpc.CodeInvalidParams, text: "Invalid params: " + text, service: gateway.BadRequest}
}

// reference reads params.ref.
func reference(m *jsonrpc.Message) (ref, *verdict) {
	object, bad := member(params(m), "ref")
	if bad != nil {
		return ref{}, bad
	}
	kind, bad := member(object, "type")
	if bad != nil {
		return ref{}, bad
	}
	named := map[string]string{"ref/prompt": "name", "ref/resource": "uri"}[kind.Str()]
	if named == "" {
		return ref{}, invalidParams("ref must be a ref/prompt or a ref/resource")
	}
	name, bad := member(object, named)
	if bad != nil {
		return ref{}, bad
	}
	if name.Kind() != strictjson.String {
		return ref{}, invalidParams("ref." + named + " must be a string")
	}
	return ref{prompt: named == "name", name: name.Str()}, nil
}

// subscribed reads params.notifications.resourceSubscriptions; nil when there are none.
func subscribed(m *jsonrpc.Message) ([]string, *verdict) {
	notifications, bad := member(params(m), "notifications")
	if bad != nil {
		return nil, bad
	}
	list, bad := member(notifications, "resourceSubscriptions")
	if bad != nil {
		return nil, bad
	}
	switch list.Kind() {
	case strictjson.Array:
	case strictjson.Invalid, strictjson.Null:
		return nil, nil
	default:
		return nil, invalidParams("resourceSubscriptions must be an array")
	}
	if list.Len() > maxSubscribed {
		return nil, invalidParams("resourceSubscriptions has too many entries")
	}
	uris := make([]string, 0, list.Len())
	for _, uri := range list.Elems() {
		if uri.Kind() != strictjson.String {
			return nil, invalidParams("resourceSubscriptions must hold strings")
		}
		uris = append(uris, uri.Str())
	}
	return uris, nil
}
