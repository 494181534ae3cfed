package format

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// TestText checks that a text is written as encoding/json writes it, with a character that needs an escape at any
// position.
func TestText(t *testing.T) {
	for _, odd := range []string{"", "a", " ", "\x7f", "\"", "\\", "\x1f", "\x00", "\n", "ä", "\xff", "\u2028", "<&>", "!", "#", "[", "]"} {
		for before := range 10 {
			for after := range 10 {
				text := strings.Repeat("x", before) + odd + strings.Repeat("y", after)
				if got, want := string(appendText(nil, text)), string(Marshal(text)); got != want {
					t.Errorf("%q is written %s, want %s", text, got, want)
				}
			}
		}
	}
}

// TestNothingImplied checks that an entry that completes no call is written without a call.
func TestNothingImplied(t *testing.T) {
	e := storage.AuditEntry{At: time.Unix(0, 17), Kind: storage.AuditCall, Event: "decision"}
	if got, want := string(AppendEntry(nil, &e)), `{"i":"","t":17}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestValueSize checks the end of a value that is followed by others.
func TestValueSize(t *testing.T) {
	for _, value := range []string{`1`, `""`, `"a"`, `"a,b}"`, `"\""`, `"\\"`, `"\\\","`, `{}`, `[]`, `[1,2]`, `{"a":{"b":[1,"]"]},"c":1}`, `[[],[[]]]`, `null`, `-1.5e3`} {
		for _, behind := range []string{"", ",1", "]", "}", `,"x":[1]}`} {
			if got := valueSize([]byte(value + behind)); got != len(value) {
				t.Errorf("%s in front of %s ends at %d", value, behind, got)
			}
		}
	}
}

// TestElements checks that a list is split into its elements, if there is room for them.
func TestElements(t *testing.T) {
	for list, want := range map[string][]string{
		`[]`: {}, `[1]`: {"1"}, `[1,2,3]`: {"1", "2", "3"}, `["a,b",[1,2],{"c":3}]`: {`"a,b"`, `[1,2]`, `{"c":3}`}, `[1,2,3,4]`: nil, `{}`: nil, `1`: nil, `"]"`: nil, `[`: nil, `]`: nil, ``: nil,
		`{"a":[1]`: nil, `[1]}`: nil,
	} {
		var room [3][]byte
		n, ok := elements([]byte(list), room[:])
		if ok != (want != nil) {
			t.Errorf("%s is a list: %v", list, ok)
			continue
		}
		if ok && (n != len(want) || fmt.Sprintf("%s", room[:n]) != fmt.Sprintf("%s", want)) {
			t.Errorf("%s is cut into %s", list, room[:n])
		}
	}
}

// TestShortNanos checks that the time of a short entry is found, and no time in other texts.
func TestShortNanos(t *testing.T) {
	const brief, whole = `{"i":"AAAAAAAAAA","t":`, `{"i":"0190ffff-0000-7000-8000-000000000001","t":`
	for text, want := range map[string]int64{
		brief + `17}`: 17, whole + `17}`: 17, brief + `17,"o":"x"}`: 17, whole + `1795332000123456789,"o":1}`: 1795332000123456789, brief + `0}`: 0,
		strings.Replace(brief, "i", "I", 1) + `17`: 17, strings.Replace(brief, "i", "I", 1) + `1795332000123456789`: 1795332000123456789,
		// For these texts the number may be anything. They are no short form.
		brief: -1, whole: -1, brief + `}`: -1, brief + `,`: -1, brief + `-1}`: -1, brief + `1x}`: -1, brief + `17]`: -1, brief + `12345678901234567890`: -1,
		`{"i":"x","t":17}`: -1, `{"j":"AAAAAAAAAA","t":17}`: -1, strings.Replace(whole, "t", "u", 1) + `17}`: -1, `{"i":"AAAAAAAAAA","u":17}`: -1, "": -1, shortStart: -1, brief[:len(brief)-1]: -1, whole[:len(whole)-1]: -1,
		`{"i":"AAAAAAAAAA-AAAAAAAAAAAAAAAAAAAAAAAAA","t":17}`: 17,
	} {
		nanos, ok := shortNanos([]byte(text))
		if ok != (want >= 0) || ok && nanos != want {
			t.Errorf("%s is of %d, %v", text, nanos, ok)
		}
	}
}

// TestExpand checks that short forms, and no other texts, have a long form.
func TestExpand(t *testing.T) {
	const id = "0190ffff-0000-7000-8000-000000000001"
	for text, want := range map[string]string{
		`{"i":"` + id + `","t":17}`:                                        `{"id":"` + id + `","time":"1970-01-01T00:00:00.000000017Z","kind":"call","event":"decision"}`,
		`{"i":"` + id + `","t":17,"k":"admin"}`:                            `{"id":"` + id + `","time":"1970-01-01T00:00:00.000000017Z","kind":"admin","event":"decision"}`,
		`{"i":"` + id + `","t":17,"v":"x"}`:                                `{"id":"` + id + `","time":"1970-01-01T00:00:00.000000017Z","event":"x","kind":"call"}`,
		`{"i":"` + id + `","t":17,"c":""}`:                                 `{"id":"0190ffff-0000-8000-8000-000000000001","time":"1970-01-01T00:00:00.000000017Z","call":"` + id + `","kind":"call","event":"outcome"}`,
		`{"i":"` + id + `","t":17,"c":"other"}`:                            `{"id":"` + id + `","time":"1970-01-01T00:00:00.000000017Z","call":"other","kind":"call","event":"outcome"}`,
		`{"i":"` + strings.Replace(id, "-7", "-4", 1) + `","t":17,"c":""}`: `{"id":"` + strings.Replace(id, "-7", "-4", 1) + `","time":"1970-01-01T00:00:00.000000017Z","call":"` + strings.Replace(id, "-7", "-4", 1) + `","kind":"call","event":"outcome"}`,
		`{"i":"0190ffff-0000-7","t":17,"c":""}`:                            `{"id":"0190ffff-0000-7","time":"1970-01-01T00:00:00.000000017Z","call":"0190ffff-0000-7","kind":"call","event":"outcome"}`,
		`{"I":"` + id + `","t":17,"0":{"u":"a"}}`:                          `{"id":"` + id + `","time":"1970-01-01T00:00:00.000000017Z","user_id":"a","kind":"call","event":"decision"}`,
		`{"I":"` + id + `","t":17,"0":{}}`:                                 `{"id":"` + id + `","time":"1970-01-01T00:00:00.000000017Z","kind":"call","event":"decision"}`,
		`{"i":"` + id + `","t":"17"}`:                                      "",
		`{"i":"` + id + `","t":1.5}`:                                       "",
		`{"i":"` + id + `","t":17,"?":1}`:                                  "",
		`{"i":"` + id + `","t":17,"` + "\x80" + `":1}`:                     "",
		`{"i":"` + id + `","t":17,"":1}`:                                   "",
		`{"i":"` + id + `","t":17,"é":1}`:                                  "",
		`{"i":"` + id + `","t":17,"u::":1}`:                                "",
		`{"i":"` + id + `","t":17,"o" :1}`:                                 "",
		`{"i":"` + id + `","t":17,"uu":1}`:                                 "",
		`{"i":"` + id + `","t" :17}`:                                       "",
		`{"i":"` + id + `","t":17,"B":1}`:                                  "",
		`{"i":"` + id + `","t":17`:                                         "",
		`{"I":"` + id + `","t":17,"0":5}`:                                  "",
		`{}`:                                                               "",
	} {
		long, err := expand([]byte(text))
		if string(long) != want || (err == nil) != (want != "") || err == nil && !json.Valid(long) {
			t.Errorf("%s becomes\n%s, %v, want\n%s", text, long, err, want)
		}
	}
}

// TestUnquoted checks that unquoted returns the inside of JSON strings, and nil for other values.
func TestUnquoted(t *testing.T) {
	for value, want := range map[string]string{`"a"`: "a", `""`: "", `"`: "-", `a"`: "-", `"a`: "-", ``: "-", `1`: "-", `[""]`: "-"} {
		got := unquoted([]byte(value))
		if (got == nil) != (want == "-") || got != nil && string(got) != want {
			t.Errorf("%s: %q", value, got)
		}
	}
}
