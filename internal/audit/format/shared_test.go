package format

import "testing"

// TestSplitShared checks which texts have a shared part: another hash is made of them.
func TestSplitShared(t *testing.T) {
	for text, want := range map[string]string{
		`{"I":"x","t":1,"0":{"u":"a"}}`:       `{"u":"a"}`,
		`{"I":"x","t":1,"0":{}}`:              `{}`,
		`{"I":"x","j":{"0":{"0":{}}},"0":{}}`: `{}`,
		`{"i":"x","t":1,"0":{"u":"a"}}`:       "",
		`{"I":"x","t":1,"0":{"u":"a"}`:        "",
		`{"I":"x","t":1,"0":{"u":"a"}} `:      "",
		`{"I":"x","t":1,"0":17}}`:             "",
		`{"I":"x","t":1,"2":{"u":"a"}}`:       "",
		`,"0":{}}`:                            "",
		"":                                    "",
	} {
		own, part := SplitShared([]byte(text))
		if string(part) != want || (part == nil) != (want == "") {
			t.Errorf("%s has the shared part %s", text, part)
		}
		if part == nil && string(own) != text || part != nil && string(AppendShared(own, part)) != text {
			t.Errorf("%s has the own part %s", text, own)
		}
	}
}
