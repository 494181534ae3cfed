package format

import "testing"

// TestTagNames checks that each field of the table is told by its name, and every other one by its number.
func TestTagNames(t *testing.T) {
	for of, want := range map[tag]string{0: "field 0", tagOrganization: "organization", tagMark: "mark", tagMark + 1: "field 8", 255: "field 255"} {
		if got := of.String(); got != want {
			t.Errorf("%d is called %q, want %q", byte(of), got, want)
		}
	}
}

// TestExpandOthers checks that JSON which is no short form is refused, however short it is.
func TestExpandOthers(t *testing.T) {
	for _, text := range []string{`1`, `""`, `"i"`, `{}`, `[]`, `{"":1}`, `{"ii":1}`, `xi":1}`, `0`} {
		if long, err := expand([]byte(text)); err == nil {
			t.Errorf("%s is expanded to %s", text, long)
		}
	}
}
