package listfilter

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/durward-gateway/durward/internal/proxy/sse"
)

// shows reports whether a client that reads JSON as Go's encoding/json does (the last of two members wins, case is folded)
// finds a secret in a list of text.
func shows(text []byte) bool {
	var one struct {
		Result struct {
			Tools, Prompts    []struct{ Name string }
			Resources         []struct{ URI string }
			ResourceTemplates []struct{ URITemplate string }
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	for decoder.Decode(&one) == nil {
		for _, t := range append(one.Result.Tools, one.Result.Prompts...) {
			if strings.Contains(t.Name, "secret") {
				return true
			}
		}
		for _, t := range one.Result.Resources {
			if strings.Contains(t.URI, "secret") {
				return true
			}
		}
		for _, t := range one.Result.ResourceTemplates {
			if strings.Contains(t.URITemplate, "secret") {
				return true
			}
		}
	}
	return false
}

func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"secret"},{"name":"a"}],"cacheScope":"public"}}`,
		`[{"result":{"prompts":[{"name":"secret"}]}},{"result":{"resources":[{"uri":"secret"}]}}]`,
		`{"result":{"tools":[{"name":"secret"}],"tools":[]}}`, `{"Result":{"Tools":[{"Name":"secret"}]}}`,
		`{"result":{"resourceTemplates":[{"uriTemplate":"s\u0065cret"}]}} {"result":{"tools":[{"name":"secret"}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		filter := &Filter{View: visible}
		got, err := filter.Message(text)
		if err != nil {
			return
		}
		if shows(got) {
			t.Errorf("M11: %q became %q", text, got)
		}
		if json.Valid(text) && got != nil && !json.Valid(got) {
			t.Errorf("%q became %q, which is no JSON", text, got)
		}
		if again, err := filter.Message(got); err != nil || !bytes.Equal(again, got) {
			t.Errorf("%q became %q, and that %q, %v", text, got, again, err)
		}
	})
}

// FuzzReader checks that no framing and no chunking of a stream lets a secret through.
func FuzzReader(f *testing.F) {
	f.Add([]byte("id: 1\ndata: {\"result\":{\"tools\":[{\"name\":\"secret\"}]}}\n\n"))
	f.Add([]byte("data: {\"result\":\rdata: {\"tools\":[{\"name\":\"secret\"},{\"name\":\"a\"}]}}\r\r\n:x\n\ndata:x"))
	f.Add([]byte("\xef\xbb\xbfdata: {\"result\":{\"tools\":[{\"name\":\"secret\"}]}}"))
	f.Add([]byte("data: {\"result\":{\"tools\":[{\"name\":\"secret\"}]},\"result\":1}\nid: 4\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		const limit = 1 << 12
		got, err := io.ReadAll((&Filter{View: visible}).NewReader(bytes.NewReader(stream), limit))
		split, errSplit := io.ReadAll((&Filter{View: visible}).NewReader(iotest.OneByteReader(bytes.NewReader(stream)), limit))
		if (err == nil) != (errSplit == nil) || !sameEvents(got, split) {
			t.Errorf("%q: %q %v, in single bytes %q %v", stream, got, err, split, errSplit)
		}
		for events := sse.NewReader(bytes.NewReader(got), 2*limit); ; {
			event, err := events.Next()
			if err != nil {
				break
			}
			if shows(event.Data) {
				t.Errorf("M11: %q became %q", stream, got)
			}
		}
	})
}

// sameEvents compares what streams say: where a CRLF is torn, its LF may stand in one event or the next.
func sameEvents(a, b []byte) bool {
	ra, rb := sse.NewReader(bytes.NewReader(a), len(a)+1), sse.NewReader(bytes.NewReader(b), len(b)+1)
	next := func(r *sse.Reader) (string, bool) {
		for {
			e, err := r.Next()
			if err != nil {
				return "", false
			}
			if e.HasData || e.HasID {
				return e.ID + "\x00" + e.Name + "\x00" + string(e.Data), true
			}
		}
	}
	for {
		ea, oka := next(ra)
		eb, okb := next(rb)
		if ea != eb || oka != okb {
			return false
		}
		if !oka {
			return true
		}
	}
}
