package sse

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/ssewire"
	"github.com/durward-gateway/durward/internal/validate"
)

func TestReadOptions(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		want       options
		wrong      []string // where, by the last member of loc
	}{
		{"no body", "", options{}, nil},
		{"empty object", "{}", options{}, nil},
		{"nulls", `{"event_types":null,"filters":null}`, options{}, []string{"event_types"}},
		{"M26 unknown types are left out", `{"event_types":["data_update","x","Error"]}`, options{types: []string{"data_update"}}, nil},
		{"M26 only unknown types: nothing passes but the gateway's own", `{"event_types":["x"]}`, options{types: []string{}}, nil},
		{"empty list filters nothing", `{"event_types":[]}`, options{}, nil},
		{"filters", `{"filters":{"object_type":"issue","limit":2}}`, options{objectType: "issue", limit: 2}, nil},
		{"nulls in filters", `{"filters":{"object_type":null,"limit":null}}`, options{}, nil},
		{"M26 wrong types, all at once", `{"event_types":"x","filters":{"object_type":1,"limit":"1"}}`, options{}, []string{"event_types", "object_type", "limit"}},
		{"M26 filters of an array", `{"filters":[1]}`, options{}, []string{"filters"}},
		{"M26 filters of a string", `{"filters":"x"}`, options{}, []string{"filters"}},
		{"M26 limits out of range", `{"filters":{"limit":0}}`, options{}, []string{"limit"}},
		{"B05 limit beyond int64", `{"filters":{"limit":9223372036854775808}}`, options{}, []string{"limit"}},
		{"B05 limit with a fraction", `{"filters":{"limit":1.5}}`, options{}, []string{"limit"}},
		{"a word too long", `{"filters":{"object_type":"` + strings.Repeat("a", maxWord+1) + `"}}`, options{}, []string{"object_type"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", strings.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			got, err := readOptions(r, 64<<10)
			var problems validate.Problems
			if !errors.As(err, &problems) && err != nil {
				t.Fatal(err)
			}
			var wrong []string
			for _, problem := range problems {
				wrong = append(wrong, problem.Loc[len(problem.Loc)-1].(string))
			}
			if diff := cmp.Diff(tc.wrong, wrong); diff != "" {
				t.Error(diff)
			}
			if tc.wrong == nil && cmp.Diff(tc.want, got, cmp.AllowUnexported(options{})) != "" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// event reads the one event of a text.
func event(t *testing.T, text string) *ssewire.Event {
	t.Helper()
	e, err := ssewire.NewReader(strings.NewReader(text), 0).Next()
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return e
}

func TestPasses(t *testing.T) {
	none, updates := options{}, options{types: []string{eventDataUpdate}}
	issues := options{objectType: "issue"}
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
		{"filtered, an error all the same", updates, "event: error\ndata: {}\n\n", true},
		{"filtered, status_change not asked for", updates, "event: status_change\ndata: {}\n\n", false},
		{"nothing asked for that exists", options{types: []string{}}, "event: data_update\ndata: {}\n\n", false},
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
			got, err := frame(event(t, tc.text))
			if err != nil || string(got) != tc.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	if _, err := frame(event(t, "event: a\x00b\ndata: text\n\n")); err == nil {
		t.Error("a name with NUL was framed")
	}
}

func TestAcceptsEvents(t *testing.T) {
	for accept, want := range map[string]bool{
		"text/event-stream": true, "TEXT/Event-Stream;q=0.9": true, "application/json, text/event-stream": true, "*/*": true, "text/*": true,
		"application/json": false, "text/event-streams": false, "": false, "text/html, application/xhtml+xml": false,
	} {
		if got := acceptsEvents(http.Header{"Accept": {accept}}); got != want {
			t.Errorf("Accept: %s: %v", accept, got)
		}
	}
	if !acceptsEvents(http.Header{}) {
		t.Error("without Accept a stream is fine")
	}
}
