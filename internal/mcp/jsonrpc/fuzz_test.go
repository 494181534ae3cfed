package jsonrpc

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// FuzzParse checks attack M05: an accepted text must mean the same to encoding/json, read with structs (which fold
// case and take the last of several members) and with maps (which do neither).
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		modernCall, `[{"jsonrpc":"2.0","id":1,"method":"a"}]`, `{"jsonrpc":"2.0","id":1,"METHOD":"a"}`, `{"jsonrpc":"2.0","\u006dethod":"a"}`,
		`{"jsonrpc":"2.0","id":1,"method":"a","param\u017f":{}}`, `{"jsonrpc":"2.0","id":null,"error":{}}`, `{"jsonrpc":"2.0","id":1.0,"method":"a"}`,
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"\ud83d\ude00","uri":"x","taskId":"y","_meta":null}}`,
	} {
		f.Add([]byte(s))
	}
	type params struct {
		Name   string `json:"name"`
		URI    string `json:"uri"`
		TaskID string `json:"taskId"`
		Meta   struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	}
	type envelope struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  params          `json:"params"`
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		body, err := Parse(text, strictjson.Limits{})
		if err != nil {
			var refused *Error
			if !errors.As(err, &refused) || len(body.Messages) != 0 {
				t.Fatalf("%v with %d messages", err, len(body.Messages))
			}
			if err := strictjson.Check(refused.Response(), strictjson.Limits{}); err != nil {
				t.Fatal(err)
			}
			return
		}
		var peers []envelope
		if body.Batch {
			err = json.Unmarshal(text, &peers)
		} else {
			peers = make([]envelope, 1)
			err = json.Unmarshal(text, &peers[0])
		}
		if err != nil || len(peers) != len(body.Messages) {
			t.Fatalf("encoding/json: %v, %d messages", err, len(peers))
		}
		for i, m := range body.Messages {
			p := peers[i]
			id := string(p.ID)
			if id == "null" {
				id = ""
			}
			got := [...]string{"2.0", string(m.ID), m.Method, m.Name, m.URI, m.TaskID, m.ProtocolVersion}
			want := [...]string{p.Version, id, p.Method, p.Params.Name, p.Params.URI, p.Params.TaskID, p.Params.Meta.Version}
			if got != want {
				t.Fatalf("got %q, encoding/json %q", got, want)
			}
			var members map[string]json.RawMessage
			if err := json.Unmarshal(m.Raw, &members); err != nil {
				t.Fatal(err)
			}
			var method string
			if raw, ok := members["method"]; ok && json.Unmarshal(raw, &method) != nil || method != m.Method {
				t.Fatalf("method %q, as a map %q", m.Method, method)
			}
			if m.Kind < Request || m.Kind > Response {
				t.Fatal("a message without a kind")
			}
			_ = m.Client()
		}
	})
}
