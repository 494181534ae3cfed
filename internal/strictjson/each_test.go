package strictjson

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEach also gives Each texts that no reader has accepted: it then returns parts of them and stays within them.
func TestEach(t *testing.T) {
	for text, want := range map[string][][2]string{
		`{}`:      nil,
		`{"a":1}`: {{"a", "1"}},
		" \t\r\n{ \t\r\n\"a\" \t\r\n: \t\r\n1 \t\r\n, \t\r\n\"b\" \t\r\n: \t\r\ntrue \t\r\n}": {{"a", "1"}, {"b", "true"}},
		`{"\u0061":1,"b\u0063":2,"d\n":3,"\\":4,"e\"":5}`:                                     {{"a", "1"}, {"bc", "2"}, {"d\n", "3"}, {`\`, "4"}, {`e"`, "5"}},
		`{"a":[1,{"b":"]"}],"c":{"d":[",}"]},"e":"\\\"}","f":"\\","g":"\\\\\"","h":"x\"\"y"}`: {{"a", `[1,{"b":"]"}]`}, {"c", `{"d":[",}"]}`}, {"e", `"\\\"}"`}, {"f", `"\\"`}, {"g", `"\\\\\""`}, {"h", `"x\"\"y"`}},
		`{"a":{},"b":[],"c":"","d":-1.5e+3,"e":null}`:                                         {{"a", "{}"}, {"b", "[]"}, {"c", `""`}, {"d", "-1.5e+3"}, {"e", "null"}},
		``: nil, ` `: nil, `x`: nil, `["a":1]`: nil, `"a":1`: nil, `{`: nil, `{ `: nil, `{x"a":1}`: nil, `{"`: nil, `{"a`: nil, `{"a"`: nil,
		`{"a" `: nil, `{"a"1}`: nil, `{":1`: nil, `{"\":1`: nil, `{,`: nil,
		`{"a":`: {{"a", ""}}, `{"a": `: {{"a", ""}}, `{"a":1`: {{"a", "1"}}, `{"a":1,`: {{"a", "1"}}, `{"a":1, `: {{"a", "1"}}, `{"a":1,b":2}`: {{"a", "1"}},
		`{"a":"b`: {{"a", `"b`}}, `{"a":"b\"`: {{"a", `"b\"`}}, `{"a":[1`: {{"a", "[1"}}, `{"a":[1}`: {{"a", "[1}"}}, `{"a":1}}`: {{"a", "1"}},
	} {
		var got [][2]string
		for name, value := range Each([]byte(text)) {
			got = append(got, [2]string{string(name), string(value)})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

// TestIterationsStop: who has found what they look for is given nothing more.
func TestIterationsStop(t *testing.T) {
	text := []byte(`{"a":1,"b":2,"c":3}`)
	v, err := Parse(text, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for name := range Each(text) {
		if got = append(got, string(name)); string(name) == "b" {
			break
		}
	}
	for name := range v.EachMember() {
		if got = append(got, string(name)); string(name) == "b" {
			break
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "a", "b"}, got); diff != "" {
		t.Error(diff)
	}
}
