package jsonrpc

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/strictjson"
)

const modernCall = `{"jsonrpc":"2.0","id":"a1","method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"},` +
	`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}}}}}}`

func TestParse(t *testing.T) {
	type want struct {
		Kind                                     Kind
		ID, Method, Name, URI, TaskID, Version   string
		Params, Arguments, Meta, Result, Failure string
	}
	tests := []struct {
		name, text string
		want       []want
		batch      bool
	}{
		{"request", modernCall, []want{{Kind: Request, ID: `"a1"`, Method: "tools/call", Name: "echo", Version: "2026-07-28",
			Params: modernCall[len(`{"jsonrpc":"2.0","id":"a1","method":"tools/call","params":`) : len(modernCall)-1], Arguments: `{"text":"hi"}`,
			Meta: `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}}}}`}}, false},
		{"M04 escaped names and values are decoded", `{"jsonrpc":"2\u002e0","i\u0064":1,"\u006dethod":"tools\/c\u0061ll","par\u0061ms":{"n\u0061me":"\u0065cho"}}`,
			[]want{{Kind: Request, ID: "1", Method: "tools/call", Name: "echo", Params: `{"n\u0061me":"\u0065cho"}`}}, false},
		{"notification", ` {"method":"notifications/initialized","jsonrpc":"2.0"} `, []want{{Kind: Notification, Method: "notifications/initialized"}}, false},
		{"null params are none", `{"jsonrpc":"2.0","id":-5,"method":"ping","params":null}`, []want{{Kind: Request, ID: "-5", Method: "ping"}}, false},
		{"null _meta is none", `{"jsonrpc":"2.0","id":0,"method":"ping","params":{"_meta":null}}`, []want{{Kind: Request, ID: "0", Method: "ping", Params: `{"_meta":null}`}}, false},
		{"uri and task", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"uri":"file:///é","taskId":"t","arguments":[1]}}`,
			[]want{{Kind: Request, ID: "1", Method: "x", URI: "file:///é", TaskID: "t", Arguments: "[1]", Params: `{"uri":"file:///é","taskId":"t","arguments":[1]}`}}, false},
		{"unknown members", `{"jsonrpc":"2.0","id":1,"method":"x","trace":{"Method":1},"params":{"cursor":"c","arguments":{"Name":1,"name":2}}}`,
			[]want{{Kind: Request, ID: "1", Method: "x", Params: `{"cursor":"c","arguments":{"Name":1,"name":2}}`, Arguments: `{"Name":1,"name":2}`}}, false},
		{"members that are read elsewhere", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"ref":{"name":"p"},"inputResponses":{},"requestState":"s","notifications":{}}}`,
			[]want{{Kind: Request, ID: "1", Method: "x", Params: `{"ref":{"name":"p"},"inputResponses":{},"requestState":"s","notifications":{}}`}}, false},
		{"result", `{"jsonrpc":"2.0","id":"gw-1","result":{"action":"accept"}}`, []want{{Kind: Response, ID: `"gw-1"`, Result: `{"action":"accept"}`}}, false},
		{"null result", `{"jsonrpc":"2.0","id":1,"result":null}`, []want{{Kind: Response, ID: "1", Result: "null"}}, false},
		{"error", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`, []want{{Kind: Response, ID: "1", Failure: `{"code":1,"message":"m"}`}}, false},
		{"error to null", `{"jsonrpc":"2.0","id":null,"error":{"code":1}}`, []want{{Kind: Response, Failure: `{"code":1}`}}, false},
		{"M03 batch", `[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"b"}]`,
			[]want{{Kind: Request, ID: "1", Method: "a"}, {Kind: Notification, Method: "b"}}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body, err := Parse([]byte(tt.text), strictjson.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			var got []want
			for _, m := range body.Messages {
				got = append(got, want{m.Kind, string(m.ID), m.Method, m.Name, m.URI, m.TaskID, m.ProtocolVersion,
					string(m.Params), string(m.Arguments), string(m.Meta), string(m.Result), string(m.Failure)})
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || body.Batch != tt.batch {
				t.Errorf("batch %v, -want +got:\n%s", body.Batch, diff)
			}
			if !tt.batch && string(body.Messages[0].Raw) != strings.TrimSpace(tt.text) {
				t.Errorf("raw: %s", body.Messages[0].Raw)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct {
		name, text string
		code       int
		id         string
	}{
		{"empty", ``, CodeParseError, ""},
		{"no JSON", `{"jsonrpc":"2.0","id":1,"method":"x"`, CodeParseError, ""},
		{"trailing data", `{"jsonrpc":"2.0","id":1,"method":"x"}}`, CodeParseError, ""},
		{"byte order mark", "\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":1,"method":"x"}`, CodeParseError, ""},
		{"bad UTF-8", `{"jsonrpc":"2.0","id":1,"method":"x` + "\xff" + `"}`, CodeParseError, ""},
		{"M04 lone surrogate", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\ud800"}}`, CodeParseError, ""},
		{"M04 duplicate method", `{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"tools/list"}`, CodeInvalidRequest, ""},
		{"M04 duplicate method, escaped", `{"jsonrpc":"2.0","id":1,"method":"tools/call","\u006dethod":"tools/list"}`, CodeInvalidRequest, ""},
		{"M04 duplicate params", `{"jsonrpc":"2.0","id":1,"method":"x","params":{},"params":{}}`, CodeInvalidRequest, ""},
		{"M04 duplicate name", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"name":"a","name":"b"}}`, CodeInvalidRequest, ""},
		{"M04 duplicate arguments", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"arguments":{},"arguments":{}}}`, CodeInvalidRequest, ""},
		{"M04 duplicate inside arguments", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"arguments":{"a":1,"a":2}}}`, CodeInvalidRequest, ""},
		{"M04 Method", `{"jsonrpc":"2.0","id":1,"method":"tools/list","Method":"tools/call"}`, CodeInvalidRequest, "1"},
		{"M04 METHOD before the id", `{"METHOD":"tools/call","jsonrpc":"2.0","method":"tools/list","id":"z"}`, CodeInvalidRequest, `"z"`},
		{"M04 METHOD alone", `{"jsonrpc":"2.0","id":1,"METHOD":"tools/call"}`, CodeInvalidRequest, "1"},
		{"M04 METHOD written with escapes", `{"jsonrpc":"2.0","id":1,"method":"tools/list","\u004DETHOD":"tools/call"}`, CodeInvalidRequest, "1"},
		{"M04 param with a long s", `{"jsonrpc":"2.0","id":1,"method":"x","param\u017f":{"name":"a"}}`, CodeInvalidRequest, "1"},
		{"M04 argument with a long s", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"argumentſ":{}}}`, CodeInvalidRequest, "1"},
		{"M04 tasKId with a Kelvin sign", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"tas\u212aId":"t"}}`, CodeInvalidRequest, "1"},
		{"M04 Name", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","Name":"b"}}`, CodeInvalidRequest, "1"},
		{"M04 URI", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a","URI":"b"}}`, CodeInvalidRequest, "1"},
		{"M04 _Meta", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"_Meta":{}}}`, CodeInvalidRequest, "1"},
		{"M04 name with NUL", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name\u0000":"b"}}`, CodeInvalidRequest, "1"},
		{"M04 method with NUL", `{"jsonrpc":"2.0","id":1,"method":"a","method\u0000":"b"}`, CodeInvalidRequest, "1"},
		{"M04 protocol version in other case", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"io.modelcontextprotocol/ProtocolVersion":"1"}}}`, CodeInvalidRequest, "1"},
		{"scalar", `5`, CodeInvalidRequest, ""},
		{"null", `null`, CodeInvalidRequest, ""},
		{"no jsonrpc", `{"id":1,"method":"x"}`, CodeInvalidRequest, "1"},
		{"jsonrpc 1.0", `{"jsonrpc":"1.0","id":1,"method":"x"}`, CodeInvalidRequest, "1"},
		{"jsonrpc as a number", `{"jsonrpc":2.0,"id":1,"method":"x"}`, CodeInvalidRequest, "1"},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"x"}`, CodeInvalidRequest, ""},
		{"fraction as id", `{"jsonrpc":"2.0","id":1.5,"method":"x"}`, CodeInvalidRequest, ""},
		{"1.0 as id", `{"jsonrpc":"2.0","id":1.0,"method":"x"}`, CodeInvalidRequest, ""},
		{"exponent as id", `{"jsonrpc":"2.0","id":1e2,"method":"x"}`, CodeInvalidRequest, ""},
		{"B05 id beyond 63 bits", `{"jsonrpc":"2.0","id":9223372036854775808,"method":"x"}`, CodeInvalidRequest, ""},
		{"object as id", `{"jsonrpc":"2.0","id":{},"method":"x"}`, CodeInvalidRequest, ""},
		{"true as id", `{"jsonrpc":"2.0","id":true,"method":"x"}`, CodeInvalidRequest, ""},
		{"method as a number", `{"jsonrpc":"2.0","id":1,"method":5}`, CodeInvalidRequest, "1"},
		{"empty method", `{"jsonrpc":"2.0","id":1,"method":""}`, CodeInvalidRequest, "1"},
		{"nothing to do", `{"jsonrpc":"2.0","id":1}`, CodeInvalidRequest, "1"},
		{"method and result", `{"jsonrpc":"2.0","id":1,"method":"x","result":{}}`, CodeInvalidRequest, "1"},
		{"result and error", `{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, CodeInvalidRequest, "1"},
		{"result without id", `{"jsonrpc":"2.0","result":{}}`, CodeInvalidRequest, ""},
		{"result to null", `{"jsonrpc":"2.0","id":null,"result":{}}`, CodeInvalidRequest, ""},
		{"error as text", `{"jsonrpc":"2.0","id":1,"error":"x"}`, CodeInvalidRequest, "1"},
		{"params as array", `{"jsonrpc":"2.0","id":1,"method":"x","params":["a"]}`, CodeInvalidRequest, "1"},
		{"params as text", `{"jsonrpc":"2.0","id":1,"method":"x","params":"a"}`, CodeInvalidRequest, "1"},
		{"name as array", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["a"]}}`, CodeInvalidParams, "1"},
		{"null name", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":null}}`, CodeInvalidParams, "1"},
		{"uri as object", `{"jsonrpc":"2.0","method":"x","params":{"uri":{}},"id":1}`, CodeInvalidParams, "1"},
		{"task as number", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"taskId":5}}`, CodeInvalidParams, "1"},
		{"_meta as array", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":[]}}`, CodeInvalidParams, "1"},
		{"version as number", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":20260728}}}`, CodeInvalidParams, "1"},
		{"bad JSON outranks a bad request", `{"jsonrpc":"1.0","id":1,"method":"x"`, CodeParseError, ""},
		{"M03 empty batch", `[]`, CodeInvalidRequest, ""},
		{"M03 nested batch", `[[{"jsonrpc":"2.0","id":1,"method":"x"}]]`, CodeInvalidRequest, ""},
		{"M03 scalar in batch", `[1]`, CodeInvalidRequest, ""},
		{"M03 one bad among good", `[{"jsonrpc":"2.0","id":1,"method":"x"},{"jsonrpc":"2.0","id":2,"method":"x","Method":"y"}]`, CodeInvalidRequest, ""},
		{"M03 batch of one bad", `[{"jsonrpc":"1.0","id":1,"method":"x"}]`, CodeInvalidRequest, ""},
		{"M03 batch of 101", "[" + strings.Repeat(`{"jsonrpc":"2.0","method":"x"},`, 100) + `{"jsonrpc":"2.0","method":"x"}]`, CodeInvalidRequest, ""},
		{"M03 batch of 10,000", "[" + strings.Repeat(`{"jsonrpc":"2.0","method":"x"},`, 9_999) + `{"jsonrpc":"2.0","method":"x"}]`, CodeInvalidRequest, ""},
		{"B01 depth 65", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"arguments":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}}`, CodeInvalidRequest, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body, err := Parse([]byte(tt.text), strictjson.Limits{})
			var refused *Error
			if !errors.As(err, &refused) {
				t.Fatalf("got %v, want an Error", err)
			}
			if refused.Code != tt.code || string(refused.ID) != tt.id {
				t.Errorf("got %d %q (%v), want %d %q", refused.Code, refused.ID, err, tt.code, tt.id)
			}
			if len(body.Messages) != 0 {
				t.Error("a refused body has messages")
			}
			if err := strictjson.Check(refused.Response(), strictjson.Limits{}); err != nil {
				t.Errorf("response %s: %v", refused.Response(), err)
			}
		})
	}
}

func TestBatchOfTheLargestSize(t *testing.T) {
	body, err := Parse([]byte("["+strings.Repeat(`{"jsonrpc":"2.0","method":"x"},`, MaxBatch-1)+`{"jsonrpc":"2.0","method":"x"}]`), strictjson.Limits{})
	if err != nil || len(body.Messages) != MaxBatch || !body.Batch {
		t.Errorf("%d messages, %v", len(body.Messages), err)
	}
}

func TestErrorResponse(t *testing.T) {
	tests := []struct {
		id   string
		data any
		want string
	}{
		{"7", nil, `{"jsonrpc":"2.0","id":7,"error":{"code":-31429,"message":"a <\"b\">"}}`},
		{`"x"`, map[string]any{"error": "RateLimitExceeded"}, `{"jsonrpc":"2.0","id":"x","error":{"code":-31429,"message":"a <\"b\">","data":{"error":"RateLimitExceeded"}}}`},
		{"", func() {}, `{"jsonrpc":"2.0","id":null,"error":{"code":-31429,"message":"a <\"b\">"}}`},
	}
	for _, tt := range tests {
		var id []byte
		if tt.id != "" {
			id = []byte(tt.id)
		}
		if got := string(ErrorResponse(id, CodeRateLimited, `a <"b">`, tt.data)); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

func TestClient(t *testing.T) {
	initialize := func(capabilities string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `}}`
	}
	tests := []struct {
		name, text string
		want       Client
	}{
		{"no elicitation", initialize(`{}`), Client{ProtocolVersion: "2025-11-25"}},
		{"empty means form", initialize(`{"elicitation":{}}`), Client{"2025-11-25", true, false}},
		{"form", initialize(`{"elicitation":{"form":{}}}`), Client{"2025-11-25", true, false}},
		{"url", initialize(`{"elicitation":{"url":{}}}`), Client{"2025-11-25", false, true}},
		{"both", initialize(`{"elicitation":{"url":{},"form":{}}}`), Client{"2025-11-25", true, true}},
		{"null", initialize(`{"elicitation":null}`), Client{ProtocolVersion: "2025-11-25"}},
		{"modern", modernCall, Client{"2026-07-28", false, true}},
		{"no params", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`, Client{}},
		{"no _meta", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"protocolVersion":"x"}}`, Client{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body, err := Parse([]byte(tt.text), strictjson.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, body.Messages[0].Client()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLookup(t *testing.T) {
	v, err := strictjson.Parse([]byte(`{"ref":1,"Name":2,"x":3}`), strictjson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got, ok, err := Lookup(v, "ref"); err != nil || !ok || got.Num() != "1" {
		t.Errorf("ref: %v %v", ok, err)
	}
	if _, ok, err := Lookup(v, "uri"); err != nil || ok {
		t.Errorf("uri: %v %v", ok, err)
	}
	var refused *Error
	if _, _, err := Lookup(v, "name"); !errors.As(err, &refused) || refused.Code != CodeInvalidRequest {
		t.Errorf("M04 name beside Name: %v", err)
	}
}

func sample(size int) []byte {
	const head, tail = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"`, `"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	return []byte(head + strings.Repeat("The quick brown fox. ", size/21+1)[:size-len(head)-len(tail)] + tail)
}

// TestDecodeAllocatesTextsAlone checks that the size of a message does not matter: its version, method, name and protocol
// version are copied.
func TestDecodeAllocatesTextsAlone(t *testing.T) {
	var body Body
	text := sample(2048)
	for range 3 { // fill the pools
		if err := body.Decode(text, strictjson.Limits{}); err != nil {
			t.Fatal(err)
		}
	}
	allocs := testing.AllocsPerRun(100, func() { _ = body.Decode(text, strictjson.Limits{}) })
	if allocs > 4 && !raceEnabled {
		t.Errorf("%v allocations", allocs)
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, size := range map[string]int{"187B": 187, "2KB": 2048, "10KB": 10240} {
		text := sample(size)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			var body Body
			for b.Loop() {
				if err := body.Decode(text, strictjson.Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestAsTask checks that a call that asks to be run as a task says so in params, nowhere else.
func TestAsTask(t *testing.T) {
	for params, want := range map[string]bool{
		`{"name":"a","task":{"ttl":1}}`:                true,
		`{"name":"a","t\u0061sk":{}}`:                  true,
		`{"name":"a","arguments":{"task":{"ttl":1}}}`:  false,
		`{"name":"task","arguments":{"a":"\"task\""}}`: false,
	} {
		body, err := Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`), strictjson.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", params, err)
		}
		if got := body.Messages[0].AsTask; got != want {
			t.Errorf("%s: %t", params, got)
		}
	}
}
