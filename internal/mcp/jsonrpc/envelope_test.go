package jsonrpc

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestReadEnvelope(t *testing.T) {
	for text, want := range map[string]Envelope{
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                                            {ID: []byte("1"), Result: true},
		` {"result":{"a":"\ud800"},"id":"x"} `:                                            {ID: []byte(`"x"`), Result: true},
		"{\"id\":1,\"result\":\"\xff\"}":                                                  {ID: []byte("1"), Result: true},
		`{"id":1,"result":{"a":1,"a":2}}`:                                                 {ID: []byte("1"), Result: true},
		`{"id":1,"result":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`: {ID: []byte("1"), Result: true},
		`{"id":1,"result":null}`:                                                          {ID: []byte("1"), Result: true},
		`{"id":1,"result":null,"error":{"code":1}}`:                                       {ID: []byte("1"), Failure: true},
		`{"id":null,"error":{"code":1}}`:                                                  {Failure: true},
		`{"id":-3,"method":"p\u0069ng","params":null}`:                                    {ID: []byte("-3"), Method: "ping"},
		`{"method":"notifications/x"}`:                                                    {Method: "notifications/x"},
	} {
		got, ok := ReadEnvelope([]byte(text))
		if !ok || string(got.ID) != string(want.ID) || got.Method != want.Method || got.Result != want.Result || got.Failure != want.Failure {
			t.Errorf("%.60s: %+v, %v", text, got, ok)
		}
	}
	for _, text := range []string{
		``, `{}`, `[]`, `"x"`, `{"id":1}`, `{"id":1,"result":{}} x`, `{"id":1,"result":{}`, `{"id":1,"id":2,"result":{}}`, `{"id":1,"result":{},"result":{}}`,
		`{"id":1,"Result":{},"result":{}}`, `{"id":1,"result":{},"error":{}}`, `{"id":1,"method":"x","result":{}}`, `{"id":{},"result":{}}`, `{"id":true,"method":"x"}`,
		`{"result":{}}`, `{"id":1,"error":"no"}`, `{"id":1,"method":3}`, `{"id":1,"method":""}`, "{\"id\":1,\"result\":{},\"\\u0000id\":2}",
		`{"id":1,"result":{"a":"\ud800"},"result":{}}`, `{"id":1,"result":{"a":01}}`, "\xef\xbb\xbf" + `{"id":1,"result":{}}`, "{\x00\"\x00",
	} {
		if got, ok := ReadEnvelope([]byte(text)); ok {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestLooseID(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		same bool
	}{{`1`, `"1"`, true}, {`"1"`, `1.0`, true}, {`"a"`, `"\u0061"`, true}, {`1`, `2`, false}, {`"1"`, `"01"`, false}, {`""`, `0`, false}, {``, `0`, false}} {
		if got := LooseID([]byte(tc.a), []byte(tc.b)); got != tc.same {
			t.Errorf("%s and %s: %v", tc.a, tc.b, got)
		}
	}
}

// FuzzReadEnvelope checks that a text taken for a response or a request is the same to encoding/json, which folds
// case and takes the last of several members.
func FuzzReadEnvelope(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"a":"\ud800"}}`))
	f.Add([]byte(`{"id":"\u0061","method":"x","params":{},"param\u017f":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, ok := ReadEnvelope(text)
		if !ok {
			return
		}
		var peer struct {
			ID            json.RawMessage
			Method        *string
			Result, Error json.RawMessage
		}
		if err := json.Unmarshal(text, &peer); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if id := string(peer.ID); id != "null" && id != string(got.ID) || got.Result && peer.Result == nil || got.Failure && peer.Error == nil {
			t.Fatalf("%q: %+v, %+v", text, got, peer)
		}
		if peer.Method != nil && got.Method == "" || got.Method != "" && peer.Method == nil {
			t.Fatalf("%q: %+v, %+v", text, got, peer)
		}
	})
}

func BenchmarkReadEnvelope(b *testing.B) {
	text := []byte(`{"jsonrpc":"2.0","id":17,"result":{"content":[{"type":"text","text":"` + strings.Repeat("a result of a tool ", 50) + `"}],"isError":false}}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := ReadEnvelope(text); !ok {
			b.Fatal("not read")
		}
	}
}
