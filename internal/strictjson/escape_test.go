package strictjson

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestEscapes puts every byte behind a backslash, and into each place of an escape of four hexadecimal digits. It checks that
// the same escapes are accepted as by encoding/json, with the same meaning.
func TestEscapes(t *testing.T) {
	for b := range 256 {
		for _, around := range [][2]string{{`\`, ""}, {`\u`, "0e9"}, {`\u0`, "e9"}, {`\u00`, "9"}, {`\u00e`, ""}, {`\ud83d\u`, "e00"}, {`\ud83d\ude0`, ""}} {
			text := []byte(`"x` + around[0] + string([]byte{byte(b)}) + around[1] + `y"`)
			v, err := Parse(text, Limits{})
			var want string
			wrong := json.Unmarshal(text, &want)
			if lone := bytes.ContainsRune([]byte(want), '\ufffd'); (err != nil) != (wrong != nil || lone) {
				t.Errorf("%q: %v, encoding/json says %v", text, err, wrong)
			} else if err == nil && v.Str() != want {
				t.Errorf("%q: %q, not %q", text, v.Str(), want)
			}
		}
	}
}
