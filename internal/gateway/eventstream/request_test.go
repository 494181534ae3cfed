package eventstream

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/api/validate"
)

func TestRead(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		want       Request
		wrong      []string // where, by the last member of loc
	}{
		{"no body", "", Request{}, nil},
		{"empty object", "{}", Request{}, nil},
		{"nulls", `{"event_types":null,"filters":null}`, Request{}, []string{"event_types", "filters"}},
		{"M26 unknown types are left out", `{"event_types":["data_update","x","Error"]}`, Request{Types: []string{"data_update"}}, nil},
		{"M26 only unknown Types: nothing passes but the gateway's own", `{"event_types":["x"]}`, Request{Types: []string{}}, nil},
		{"empty list filters nothing", `{"event_types":[]}`, Request{}, nil},
		{"filters", `{"filters":{"object_type":"issue","limit":2}}`, Request{ObjectType: "issue", Limit: 2}, nil},
		{"nulls in filters", `{"filters":{"object_type":null,"limit":null}}`, Request{}, nil},
		{"M26 wrong types, all at once", `{"event_types":"x","filters":{"object_type":1,"limit":"1"}}`, Request{}, []string{"event_types", "object_type", "limit"}},
		{"M26 filters of an array", `{"filters":[1]}`, Request{}, []string{"filters"}},
		{"M26 filters of a string", `{"filters":"x"}`, Request{}, []string{"filters"}},
		{"M26 limits out of range", `{"filters":{"limit":0}}`, Request{}, []string{"limit"}},
		{"B05 limit beyond int64", `{"filters":{"limit":9223372036854775808}}`, Request{}, []string{"limit"}},
		{"B05 limit with a fraction", `{"filters":{"limit":1.5}}`, Request{}, []string{"limit"}},
		{"a word too long", `{"filters":{"object_type":"` + strings.Repeat("a", maxWord+1) + `"}}`, Request{}, []string{"object_type"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", strings.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			got, err := Read(r, 64<<10)
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
			if tc.wrong == nil && cmp.Diff(&tc.want, got) != "" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAcceptsEvents(t *testing.T) {
	for accept, want := range map[string]bool{
		"text/event-stream": true, "TEXT/Event-Stream;q=0.9": true, "application/json, text/event-stream": true, "*/*": true, "text/*": true,
		"application/json": false, "text/event-streams": false, "": false, "text/html, application/xhtml+xml": false,
	} {
		if got := Accepted(http.Header{"Accept": {accept}}); got != want {
			t.Errorf("Accept: %s: %v", accept, got)
		}
	}
	if !Accepted(http.Header{}) {
		t.Error("without Accept a stream is fine")
	}
}
