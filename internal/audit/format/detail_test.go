package format

import (
	"math"
	"testing"
)

// TestDetail checks that details are written as encoding/json writes them.
func TestDetail(t *testing.T) {
	for name, detail := range map[string]map[string]any{
		"a call to a model": {"model_alias": "chat", "provider_id": "0192f0c1-5bd2-7000-8000-0000000000aa", "provider": "Ünser \"bester\"", "model": "gpt<4>&"},
		"numbers":           {"input_tokens": int64(math.MaxInt64), "output_tokens": int64(math.MinInt64), "n": -7, "estimated": true, "not": false},
		"what JSON escapes": {"": "", "a\"b": "line\nend\u2028 \x00\x7f\xff \\ </script>", "ä": "\t"},
		"other things":      {"nothing": nil, "list": []any{"x", 1, nil}, "texts": []string{"<"}, "of": map[string]any{"b": 1.5, "a": map[string]int{"y": 1, "x": 2}}, "f": 1e21},
		"many":              {"j": 1, "i": 2, "h": 3, "g": 4, "f": 5, "e": 6, "d": 7, "c": 8, "b": 9, "a": 10},
	} {
		t.Run(name, func(t *testing.T) {
			want := string(appendJSON([]byte("{"), '2', detail))
			if got := string(appendDetail([]byte("{"), '2', detail)); got != want {
				t.Errorf("%s\nwant\n%s", got, want)
			}
		})
	}
	if got := string(appendDetail([]byte("{"), '2', map[string]any{"a": 1, "b": math.NaN()})); got != "{" {
		t.Errorf("what cannot be written left %s", got)
	}
}

func BenchmarkDetail(b *testing.B) {
	detail := map[string]any{"model_alias": "bench-chat", "provider_id": "bench", "provider": "bench", "model": "gpt-4o-mini", "api_key_id": "0192f0c1-5bd2-7000-8000-0000000000aa"}
	var text []byte
	b.ReportAllocs()
	for b.Loop() {
		text = appendDetail(text[:0], '2', detail)
	}
}
