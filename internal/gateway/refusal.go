package gateway

import "net/http"

// Form describes how a client reads a refusal that requests of several protocols get.
type Form struct {
	rpc bool
	id  []byte
}

// Plain is the form of all clients but those of MCP: a service error.
var Plain = Form{}

// RPC returns the form of MCP: an error of JSON-RPC, with the service error in its data. id is the request's, as it was
// written. It is nil for a batch, and for a request that was not read yet.
func RPC(id []byte) Form { return Form{rpc: true, id: id} }

// refuse answers in the form. The status is that of the service error.
func (f Form) refuse(w http.ResponseWriter, code int, name ErrorName, message string) {
	if !f.rpc {
		WriteError(w, name, message)
		return
	}
	name.setRetryAfter(w)
	writeRPC(w, f.id, name.status(), code, message, name)
}
