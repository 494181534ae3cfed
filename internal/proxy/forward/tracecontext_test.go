package forward

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTraceContext checks that the gateway's place in a trace takes the place of the client's, whatever that is and
// whichever headers pass, and that without one the client's passes.
func TestTraceContext(t *testing.T) {
	theirs := http.Header{"Traceparent": {"not one"}, "Tracestate": {"a=1", "b=2"}}
	for _, tc := range []struct {
		name          string
		parent, state string
		header        http.Header
		rules         *Rules
		want          http.Header
	}{
		{"the client's", "", "", theirs, nil, theirs},
		{"the gateway's", "00-ours", "c=3", theirs, nil, http.Header{"Traceparent": {"00-ours"}, "Tracestate": {"c=3"}}},
		{"no state of the client's without its parent", "00-ours", "", theirs, nil, http.Header{"Traceparent": {"00-ours"}}},
		{"twice, which would be refused", "00-ours", "", http.Header{"Traceparent": {"1", "2"}}, nil, http.Header{"Traceparent": {"00-ours"}}},
		{"to a provider of models, which gets nothing of the client's", "00-ours", "c=3", theirs, &Rules{}, http.Header{"Traceparent": {"00-ours"}, "Tracestate": {"c=3"}}},
		{"to a provider of models, untraced", "", "", theirs, &Rules{}, http.Header{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var o outgoing
			r := &Request{Method: http.MethodGet, URL: &url.URL{Scheme: "https", Host: "upstream.example"}, Header: tc.header, Rules: tc.rules, TraceParent: tc.parent, TraceState: tc.state}
			if err := o.prepare(r); err != nil {
				t.Fatal(err)
			}
			got := http.Header{}
			for _, f := range o.request.Fields {
				if f.Name == "Traceparent" || f.Name == "Tracestate" {
					got.Add(f.Name, f.Value)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		})
	}
}
