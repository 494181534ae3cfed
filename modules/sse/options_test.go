package sse

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/gateway/eventstream"
	"github.com/durward-gateway/durward/internal/proxy/sse"
)

// event reads the one event of a text.
func event(t *testing.T, text string) *sse.Event {
	t.Helper()
	e, err := sse.NewReader(strings.NewReader(text), 0).Next()
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return e
}

func TestPasses(t *testing.T) {
	none, updates := options{new(eventstream.Request)}, options{&eventstream.Request{Types: []string{eventstream.EventDataUpdate}}}
	issues := options{&eventstream.Request{ObjectType: "issue"}}
	for _, tc := range []struct {
		name string
		o    options
		text string
		want bool
	}{
		{"no filter, a name of the upstream's own", none, "event: price\ndata: 1\n\n", true},
		{"no filter, no name", none, "data: 1\n\n", true},
		{"filtered, a name of the upstream's own", updates, "event: price\ndata: 1\n\n", false},
		{"filtered, no name", updates, "data: 1\n\n", false},
		{"filtered, asked for", updates, "event: data_update\ndata: {}\n\n", true},
		{"filtered, an error of the upstream's", updates, "event: error\ndata: {}\n\n", false},
		{"filtered, status_change not asked for", updates, "event: status_change\ndata: {}\n\n", false},
		{"nothing asked for that exists", options{&eventstream.Request{Types: []string{}}}, "event: data_update\ndata: {}\n\n", false},
		{"object type fits", issues, `event: data_update` + "\n" + `data: {"type":"issue"}` + "\n\n", true},
		{"object type differs", issues, `event: data_update` + "\n" + `data: {"type":"pull"}` + "\n\n", false},
		{"object type differs in case", issues, `event: data_update` + "\n" + `data: {"type":"Issue"}` + "\n\n", false},
		{"M04 type twice: what two readers differ on does not fit", issues, `event: data_update` + "\n" + `data: {"type":"issue","type":"pull"}` + "\n\n", false},
		{"type of a number", issues, `event: data_update` + "\n" + `data: {"type":1}` + "\n\n", false},
		{"data that is no object", issues, "event: data_update\ndata: issue\n\n", false},
		{"object type concerns updates only", issues, "event: price\ndata: {}\n\n", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.o.passes(event(t, tc.text)); got != tc.want {
				t.Errorf("passes: %v", got)
			}
		})
	}
}

func TestFrame(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"JSON goes as it came", "event: a\nid: 1\nretry: 5\ndata: {\"x\":\ndata: 1}\n\n", "event: a\nid: 1\nretry: 5\ndata: {\"x\":\ndata: 1}\n\n"},
		{"the gateway's own name for a beginning", "event: connected\nid: 1\ndata: {\"x\":\ndata: 1}\n\n", "id: 1\nevent: upstream_connected\ndata: {\"x\":\ndata: 1}\n\n"},
		{"the gateway's own name for a failure", "event: error\ndata: gone\n\n", "event: upstream_error\ndata: \"gone\"\n\n"},
		{"text becomes a JSON string", "event: a\ndata: hello\n\n", "event: a\ndata: \"hello\"\n\n"},
		{"lines stay apart", "data: a\ndata: b\n\n", "data: \"a\\nb\"\n\n"},
		{"the id stays", "id: 7\ndata: hello\n\n", "id: 7\ndata: \"hello\"\n\n"},
		{"an id that resets the cursor stays", "id:\ndata: hello\n\n", "id: \ndata: \"hello\"\n\n"},
		{"empty data", "data:\n\n", "data: \"\"\n\n"},
		{"M19 NUL", "data: a\x00b\n\n", "data: \"a\\u0000b\"\n\n"},
		{"M19 bytes that are not UTF-8, in JSON", "data: \"\xff\"\n\n", "data: \"\\\"\\ufffd\\\"\"\n\n"},
		{"H08 what looks like another field", "data: event: x\n\n", "data: \"event: x\"\n\n"},
		{"H08 a carriage return cannot end the event", "data: a\rdata: b\r\r", "data: \"a\\nb\"\n\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := event(t, tc.text)
			got, err := frame(e, rename(e))
			if err != nil || string(got) != tc.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	if _, err := frame(event(t, "event: a\x00b\ndata: text\n\n"), false); err == nil {
		t.Error("a name with NUL was framed")
	}
}
