package audit

import (
	"errors"
	"strings"
	"testing"
)

// TestSegmentNumber checks that a segment has one name.
func TestSegmentNumber(t *testing.T) {
	for name, want := range map[string]int{"00000001": 1, "99999999": 99999999, "100000000": 100000000, "00000000": 0, "1": 0, "000000001": 0, "-0000001": 0, "store": 0, "": 0, "+0000001": 0} {
		if got, ok := segmentNumber(name); ok != (want > 0) || ok && got != want {
			t.Errorf("%q is segment %d, %v", name, got, ok)
		}
	}
}

// TestTrimZeros checks that zeros at the end are removed, also whole pages of them, and no other zeros.
func TestTrimZeros(t *testing.T) {
	for _, before := range []int{0, 1, pageSize - 1, pageSize, pageSize + 1} {
		for _, zeros := range []int{0, 1, pageSize - 1, pageSize, pageSize + 1, 3 * pageSize} {
			text := make([]byte, before+zeros)
			for i := range before {
				text[i] = 'x'
			}
			if got := len(trimZeros(text)); got != before {
				t.Errorf("of %d bytes and %d zeros %d are left", before, zeros, got)
			}
		}
	}
}

// TestParseHeader checks that a header has one spelling and a known format, and that the records of a segment have its
// form.
func TestParseHeader(t *testing.T) {
	const header = `{"format":7,"node":"n","segment":"00000001","time":"2026-01-02T03:04:05Z","checkpoint":0}`
	for text, want := range map[string]bool{
		header:                                  true,
		strings.Replace(header, "7", "1", 1):    true,
		strings.Replace(header, "7", "0", 1):    false,
		strings.Replace(header, "7", "8", 1):    false,
		strings.Replace(header, "7,", "7, ", 1): false,
		`{"format":"7"}`:                        false,
		`{"checkpoint":{},"signature":""}`:      false,
		"":                                      false,
	} {
		if _, err := new(parser).parse([]byte(text)); (err == nil) != want || err != nil && !errors.Is(err, errLine) {
			t.Errorf("%s: %v", text, err)
		}
	}
	lines := map[bool][]byte{true: jsonLine(acme, 1, new([32]byte), nil, []byte("{}")), false: recordLine(acme, 1, new([32]byte), nil, []byte("{}"))}
	for format, former := range map[string]bool{"7": false, "6": true, "1": true} {
		for json, line := range lines {
			var p parser
			if _, err := p.parse([]byte(strings.Replace(header, "7", format, 1))); err != nil {
				t.Fatal(err)
			}
			if _, err := p.parse(line[:len(line)-1]); (err == nil) != (json == former) || err != nil && !errors.Is(err, errLine) {
				t.Errorf("format %s has %q: %v", format, line, err)
			}
		}
	}
}
