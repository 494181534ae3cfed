package canonical_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/internal/strictjson/canonical"
)

func TestJSON(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"blanks", " { \"a\" :\t[ 1 , 2 ]\r\n} ", `{"a":[1,2]}`},
		{"order", `{"b":1,"a":{"d":1,"c":2}}`, `{"a":{"c":2,"d":1},"b":1}`},
		{"prefixes", `{"aa":1,"a":2,"":3}`, `{"":3,"a":2,"aa":1}`},
		// RFC 8785 section 3.2.3, but for the number of its values.
		{"UTF-16 order", `{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`,
			`{"\r":2,"1":4,"` + "\u0080" + `":6,"` + "\u00f6" + `":7,"` + "\u20ac" + `":1,"` + "\U0001f600" + `":5,"` + "\ufb33" + `":3}`},
		{"strings", `"\u0000\u001f\b\f\n\r\t\"\\\/\u0041\u007f\u20ac\ud83d\ude00<"`, `"\u0000\u001f\b\f\n\r\t\"\\/A` + "\u007f\u20ac\U0001f600" + `<"`},
		{"numbers stay as written", `[1,1.0,1e0,10E-1,-0,9007199254740993,9007199254740992]`, `[1,1.0,1e0,10E-1,-0,9007199254740993,9007199254740992]`},
		{"words", `[true,false,null]`, `[true,false,null]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := canonical.JSON([]byte(tc.text), strictjson.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if _, err := canonical.JSON([]byte(`{"a":1,"a":2}`), strictjson.Limits{}); err == nil {
		t.Error("a duplicate member has a canonical form")
	}
	if got := canonical.Append(nil, strictjson.Value{}); len(got) != 0 {
		t.Errorf("the zero value: %s", got)
	}
}

// value draws a JSON text of a random value.
func value(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		return rapid.Bool().Draw(t, "bool")
	case 1:
		return json.Number(rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,3})?`).Draw(t, "number"))
	case 2:
		return rapid.String().Draw(t, "string")
	case 3:
		return nil
	case 4:
		out := make([]any, rapid.IntRange(0, 4).Draw(t, "length"))
		for i := range out {
			out[i] = value(t, depth-1)
		}
		return out
	}
	out := make(map[string]any)
	for range rapid.IntRange(0, 5).Draw(t, "members") {
		out[rapid.String().Draw(t, "name")] = value(t, depth-1)
	}
	return out
}

// write writes a value in one of its many spellings.
func write(t *rapid.T, b *bytes.Buffer, v any) {
	blank := func() { b.WriteString(rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "blank")) }
	text := func(s string) {
		b.WriteByte('"')
		for _, r := range s {
			switch {
			case r >= 0x10000 || r > 0x20 && r != '"' && r != '\\' && !rapid.Bool().Draw(t, "escape"):
				b.WriteRune(r)
			default:
				b.WriteString(`\u`)
				const hex = "0123456789abcdefABCDEF"
				for shift := 12; shift >= 0; shift -= 4 {
					digit := int(r>>shift) & 0xf
					if digit >= 10 && rapid.Bool().Draw(t, "upper") {
						digit += 6
					}
					b.WriteByte(hex[digit])
				}
			}
		}
		b.WriteByte('"')
	}
	blank()
	switch v := v.(type) {
	case bool:
		b.WriteString(map[bool]string{true: "true", false: "false"}[v])
	case json.Number:
		b.WriteString(v.String())
	case string:
		text(v)
	case nil:
		b.WriteString("null")
	case []any:
		b.WriteByte('[')
		for i, element := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			write(t, b, element)
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		first := true
		for name, member := range v { // in any order
			if !first {
				b.WriteByte(',')
			}
			first = false
			blank()
			text(name)
			blank()
			b.WriteByte(':')
			write(t, b, member)
		}
		b.WriteByte('}')
	}
	blank()
}

// TestOneForm checks that all spellings of a value have one canonical form, which is a spelling of it, and other
// values have others.
func TestOneForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		form := func(v any) string {
			var b bytes.Buffer
			write(t, &b, v)
			got, err := canonical.JSON(b.Bytes(), strictjson.Limits{})
			if err != nil {
				t.Fatalf("%s: %v", b.Bytes(), err)
			}
			return string(got)
		}
		a, b := value(t, 3), value(t, 3)
		first, second := form(a), form(a)
		if first != second {
			t.Fatalf("two forms of one value:\n%s\n%s", first, second)
		}
		if same, other := cmp.Equal(a, b), form(b); same != (first == other) {
			t.Fatalf("equal %v, but\n%s\n%s", same, first, other)
		}
		var read any
		decoder := json.NewDecoder(strings.NewReader(first))
		decoder.UseNumber()
		if err := decoder.Decode(&read); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a, read); diff != "" {
			t.Fatalf("(-value +what its form says)\n%s", diff)
		}
	})
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"b":[1,2.50,{"c":"\u00e9"}],"a":null}`, `"\ud83d\ude00"`, `[]`, `{"a":1,"\u0061":2}`, "\xff", `-0.0e+1`, `{"` + "\ue000" + `":1,"` + "\U00010000" + `":2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		form, err := canonical.JSON(text, strictjson.Limits{})
		if err != nil {
			return
		}
		if !utf8.Valid(form) || len(form) > len(text) {
			t.Errorf("%q is longer than %q", form, text)
		}
		again, err := canonical.JSON(form, strictjson.Limits{})
		if err != nil || !bytes.Equal(form, again) {
			t.Errorf("%q becomes %q: %v", form, again, err)
		}
	})
}
