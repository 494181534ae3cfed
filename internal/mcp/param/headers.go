package param

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// Tool describes the tool of a call.
type Tool struct {
	Known  bool // its definition was listed
	Params []Param
}

// Field is a header for the server.
type Field struct{ Name, Value string }

// Headers compares the mirrored arguments of a call with its body and returns the headers for the server, written
// anew: no other spelling passes. An error is a *jsonrpc.Error, as the protocol demands of readers of the body: a
// header differs from the body, is given twice, or is missing. A header that mirrors nothing is dropped. For a tool
// that has not been listed yet, headers pass that equal a value of the arguments: they say nothing that the body does
// not say, and the client has listed the tool.
func Headers(tool Tool, m *jsonrpc.Message, sent http.Header) ([]Field, error) {
	said, err := read(m, sent)
	if err != nil || len(tool.Params) == 0 && (tool.Known || len(said) == 0) {
		return nil, err
	}
	arguments, err := strictjson.Parse(m.Arguments, strictjson.Limits{
		MaxBytes: len(m.Arguments) + 1, MaxDepth: len(m.Arguments) + 1, MaxMembers: len(m.Arguments) + 1,
	})
	if m.Arguments != nil && err != nil {
		return nil, err // not reached: they were read as a part of the message
	}
	if tool.Known {
		return mirrored(tool.Params, m, said, arguments)
	}
	return echoed(said, arguments), nil
}

// read decodes the client's headers, by name. Empty ones are left out.
func read(m *jsonrpc.Message, sent http.Header) (said map[string]string, err error) {
	for name, values := range sent {
		if !strings.HasPrefix(name, Prefix) {
			continue
		}
		value, ok := jsonrpc.DecodeHeader(values)
		if !ok {
			return nil, jsonrpc.HeaderMismatch(m, "the "+name+" header is given more than once, or is encoded wrongly")
		}
		if said == nil {
			said = make(map[string]string)
		}
		if value != "" {
			said[name] = value
		}
	}
	return said, nil
}

// echoed returns the headers that equal a value of the arguments.
func echoed(said map[string]string, arguments strictjson.Value) (out []Field) {
	wanted := make(map[string]bool, len(said)) // true: it was found
	for _, value := range said {
		wanted[value] = false
		if n, ok := integer(value); ok {
			wanted[strconv.FormatInt(n, 10)] = false
		}
	}
	look(arguments, wanted)
	for _, name := range slices.Sorted(maps.Keys(said)) {
		value := said[name]
		if n, number := integer(value); number && !wanted[value] {
			value = strconv.FormatInt(n, 10) // as for a known tool: readers differ in the numbers that they accept
		}
		if wanted[value] {
			out = append(out, Field{name, jsonrpc.EncodeHeader(value)})
		}
	}
	return out
}

// look notes which of the wanted texts are values within v.
func look(v strictjson.Value, wanted map[string]bool) {
	for _, m := range v.Members() {
		look(m.Value, wanted)
	}
	for _, e := range v.Elems() {
		look(e, wanted)
	}
	if own, ok := text(v); ok {
		if _, is := wanted[own]; is {
			wanted[own] = true
		}
	}
}

func mirrored(params []Param, m *jsonrpc.Message, said map[string]string, arguments strictjson.Value) ([]Field, error) {
	out := make([]Field, 0, len(params))
	for _, p := range params {
		header, given := said[p.Header]
		value := at(arguments, p.Path)
		own, sayable := text(value)
		switch {
		case given && !says(header, value):
			return nil, jsonrpc.HeaderMismatch(m, "the "+p.Header+" header does not match its argument")
		case !given && sayable && own != "":
			return nil, jsonrpc.HeaderMismatch(m, "the "+p.Header+" header is missing")
		case given:
			out = append(out, Field{p.Header, jsonrpc.EncodeHeader(own)})
		}
	}
	return out, nil
}
