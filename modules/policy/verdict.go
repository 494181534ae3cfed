package policy

import (
	"net/http"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/internal/gateway/tracing"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/modules/app"
)

// textNobody is the text for a machine, about whose call a person would have to be asked.
const textNobody = "Denied by policy: this call needs a person's approval, and behind this token (client credentials) there is nobody to ask. Nothing was executed."

// verdict is the decision on a message. The zero value lets it pass.
type verdict struct {
	ask      bool            // a human must confirm the call first
	decision engine.Decision // of a call that asks

	// These describe a refusal: a JSON-RPC error with that code, or, without one, a tool's error.
	code    int
	text    string
	service gateway.ErrorName // the service error in the error's data; "": data holds it
	data    any
}

func (v *verdict) refused() bool { return v.text != "" }

// word returns the decision in one word, as in traces.
func (v *verdict) word() string {
	switch {
	case v.refused():
		return engine.Deny.String()
	case v.ask:
		return engine.Ask.String()
	}
	return engine.Allow.String()
}

// traced ends the step of a decision in a trace, with the rule that decided last. Lists and the like need no rule.
func traced(call *app.Call, step tracing.Step, word string) {
	if len(call.Judged) == 0 {
		step.Decided(word, "", 0, "")
		return
	}
	said := &call.Judged[len(call.Judged)-1].Decision
	step.Decided(word, said.PolicyID, said.Revision, said.Rule)
}

func unknownMethod() verdict {
	return verdict{code: jsonrpc.CodeMethodNotFound, text: "Method not found", service: gateway.NotFound}
}

// unknown returns the answer for an object that does not exist or is hidden from the caller, with the text of the
// official servers: the caller cannot tell the two apart (M10).
func (q *request) unknown(kind engine.Kind, name string) verdict {
	switch kind {
	case engine.ToolsCall:
		return verdict{code: jsonrpc.CodeInvalidParams, text: "Unknown tool: " + name}
	case engine.PromptsGet:
		return verdict{code: jsonrpc.CodeInvalidParams, text: "Unknown prompt: " + name}
	}
	code := jsonrpc.CodeResourceNotFound
	if q.Modern() {
		code = jsonrpc.CodeInvalidParams
	}
	return verdict{code: code, text: "Resource not found", data: map[string]string{"uri": name}}
}

// body returns the refusal of a message in JSON-RPC.
func (v *verdict) body(m *jsonrpc.Message, modern bool) []byte {
	if v.code == 0 {
		return jsonrpc.ToolError(m.ID, v.text, modern)
	}
	if v.service != "" {
		return gateway.RPCError(m.ID, v.code, v.text, v.service)
	}
	return jsonrpc.ErrorResponse(m.ID, v.code, v.text, v.data)
}

// write answers the refusal of a single message.
func (v *verdict) write(w http.ResponseWriter, in *inbound.Request, m *jsonrpc.Message) {
	modern := in.Modern()
	status := http.StatusOK
	switch {
	case m.Kind != jsonrpc.Request:
		status = http.StatusBadRequest // there is no id to answer to
	case modern && v.code == jsonrpc.CodeMethodNotFound:
		status = http.StatusNotFound // before that revision a 404 ends the session
	}
	in.Reply(w, status, v.body(m, modern))
}
