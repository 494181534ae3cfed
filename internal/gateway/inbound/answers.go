package inbound

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
)

// answers replaces the ids in a client's answers by the ids under which its server asked. An answer that nobody asked
// for is noted: it carries the user's credential, and the server could take it for anything. So is every answer of
// 2026-07-28, which has none. Questions of the gateway's own are checked by the code that asks them.
func (in reading) answers(w http.ResponseWriter) bool {
	body, err := in.answersAsAsked()
	if err == nil && body != nil {
		err = in.ReplaceBody(body)
	}
	if err != nil {
		gateway.RefuseAnswers(w)
	}
	return err == nil
}

// answersAsAsked returns the body with the server's ids; nil when it stays unchanged.
func (in reading) answersAsAsked() ([]byte, error) {
	if in.Modern() {
		in.Unasked = slices.ContainsFunc(in.Message.Messages, func(m jsonrpc.Message) bool { return m.Kind == jsonrpc.Response })
		return nil, nil
	}
	var elements [][]byte
	for i := range in.Message.Messages {
		m := &in.Message.Messages[i]
		if m.Kind != jsonrpc.Response {
			continue
		}
		own, asked := in.reader.options.Questions.Unmark(m.ID, in.Session.Upstream, in.parties.Binding())
		if !asked {
			if in.reader.options.Asked(m.ID) {
				in.ForGateway = true
				continue
			}
			in.Unasked = true
			return nil, nil
		}
		if in.reader.options.Questions.Again([]byte(jsonrpc.IDValue(m.ID))) {
			in.Repeated++
		}
		if elements == nil {
			var err error
			if elements, err = in.elements(); err != nil {
				return nil, err
			}
		}
		text, ok := jsonrpc.Replace(elements[i], func([]byte) []byte { return own }, "id")
		if !ok {
			return nil, errors.New("an answer has no id") // not reached: it was read
		}
		elements[i] = text
	}
	switch {
	case elements == nil:
		return nil, nil
	case in.Message.Batch:
		return append(append([]byte{'['}, bytes.Join(elements, []byte{','})...), ']'), nil
	}
	return elements[0], nil
}

// elements returns the texts of the body's messages.
func (in reading) elements() ([][]byte, error) {
	if !in.Message.Batch {
		return [][]byte{in.Body}, nil
	}
	var all []json.RawMessage
	if err := json.Unmarshal(in.Body, &all); err != nil {
		return nil, fmt.Errorf("reading a batch: %w", err)
	}
	texts := make([][]byte, len(all))
	for i := range all {
		texts[i] = all[i]
	}
	return texts, nil
}
