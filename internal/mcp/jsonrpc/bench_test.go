package jsonrpc

import (
	"net/http"
	"testing"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// BenchmarkParse measures reading a body as the gateway does it, and the memory that it keeps.
func BenchmarkParse(b *testing.B) {
	text := []byte(`{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"create_issue","arguments":{"title":"Gateway drops the session header","team":"ENG","priority":2,"labels":["bug","edge"]}}}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(text, strictjson.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckHeaders(b *testing.B) {
	for name, test := range map[string]struct {
		header http.Header
		text   string
	}{
		"none": {http.Header{"Content-Type": {"application/json"}}, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"echo"}}`},
		"2026-07-28": {
			http.Header{HeaderProtocolVersion: {"2026-07-28"}, HeaderMethod: {"tools/call"}, HeaderName: {"echo"}},
			`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		},
	} {
		b.Run(name, func(b *testing.B) {
			body, err := Parse([]byte(test.text), strictjson.Limits{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := CheckHeaders(test.header, &body.Messages[0]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
