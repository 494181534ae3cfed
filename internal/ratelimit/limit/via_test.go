package limit

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/storage"
)

// TestVia checks that a call through a smart model counts for its alias and for the answering one, each once.
func TestVia(t *testing.T) {
	alias := func(value string) Scoped {
		return Scoped{Scope: storage.Scope{Type: storage.ScopeModelAlias, Value: value}, Traffic: storage.TrafficLLM}
	}
	x := NewIndex([]Scoped{alias("smart"), alias("large"), alias("small"), alias("")})
	for _, tc := range []struct {
		of   Subject
		want []Hit
	}{
		{Subject{Traffic: storage.TrafficLLM, Alias: "large", Via: "smart"}, []Hit{{0, ""}, {1, ""}, {3, "large"}, {3, "smart"}}},
		{Subject{Traffic: storage.TrafficLLM, Alias: "large", Via: "large"}, []Hit{{1, ""}, {3, "large"}}},
		{Subject{Traffic: storage.TrafficLLM, Alias: "large"}, []Hit{{1, ""}, {3, "large"}}},
	} {
		if diff := cmp.Diff(tc.want, x.Match(&tc.of)); diff != "" {
			t.Errorf("%+v: %s", tc.of, diff)
		}
	}
}
