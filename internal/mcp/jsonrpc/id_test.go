package jsonrpc

import "testing"

func TestSameID(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{`"c1"`, `"\u00631"`, true},
		{`"a\/b"`, `"a/b"`, true},
		{`"\ud83d\ude00"`, `"😀"`, true},
		{`7`, `7`, true},
		{`-0`, `0`, true},
		{`7.0`, `7`, true},
		{`70e-1`, `7`, true},
		{`"7"`, `7`, false},
		{`"c1"`, `"C1"`, false},
		{`"c1"`, `"\\u00631"`, false},
		{`7.5`, `7`, false},
		{`9007199254740993.0`, `9007199254740992`, false},
		{`9223372036854775807`, `9223372036854775806`, false},
		{`1e400`, `2e400`, false},
		{`null`, `"null"`, false},
		{``, `""`, false},
	} {
		if got := SameID([]byte(tc.a), []byte(tc.b)); got != tc.same {
			t.Errorf("%s and %s: %v", tc.a, tc.b, got)
		}
	}
}
