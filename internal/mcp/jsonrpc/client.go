package jsonrpc

import "github.com/durward-gateway/durward/internal/strictjson"

// MetaClientCapabilities is the member of params._meta that carries a client's capabilities from 2026-07-28 on.
const MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"

// Client holds a client's statements about itself. It is a claim: good for choosing how to ask, never for deciding
// permissions.
type Client struct {
	ProtocolVersion string
	ElicitForm      bool // it can show a form
	ElicitURL       bool // it can open a page
}

// Client reads the message's statements about its client: the params of initialize, or the _meta of 2026-07-28. Other
// messages, and members of wrong types, give a zero value.
func (m *Message) Client() Client {
	if m.Method == "initialize" {
		params := reparse(m.Params)
		version, _ := params.Get("protocolVersion")
		capabilities, _ := params.Get("capabilities")
		return clientOf(version.Str(), capabilities)
	}
	capabilities, _ := reparse(m.Meta).Get(MetaClientCapabilities)
	return clientOf(m.ProtocolVersion, capabilities)
}

// reparse returns the tree of a part of a checked body. It cannot fail: the part is valid, and the body's limits
// held.
func reparse(part []byte) strictjson.Value {
	v, _ := strictjson.Parse(part, strictjson.Limits{MaxBytes: len(part) + 1, MaxDepth: len(part) + 1, MaxMembers: len(part) + 1})
	return v
}

// clientOf reads capabilities.elicitation. An object without url means forms, the only kind in 2025-06-18.
func clientOf(version string, capabilities strictjson.Value) Client {
	c := Client{ProtocolVersion: version}
	elicitation, _ := capabilities.Get("elicitation")
	if elicitation.Kind() != strictjson.Object {
		return c
	}
	form, _ := elicitation.Get("form")
	url, _ := elicitation.Get("url")
	c.ElicitURL = url.Kind() == strictjson.Object
	c.ElicitForm = form.Kind() == strictjson.Object || !c.ElicitURL
	return c
}
