package strictjson

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRefused(t *testing.T) {
	tests := []struct {
		name, text, reason string
		offset             int
	}{
		{"B10 empty", "", ReasonEnd, 0},
		{"B10 blanks only", " \n", ReasonEnd, 2},
		{"continuation alone", "\x80", ReasonUTF8, 0},
		{"B10 trailing data", `{} x`, ReasonTrailing, 3},
		{"B10 two values", `{}{}`, ReasonTrailing, 2},
		{"B10 trailing NUL", "{}\x00", ReasonTrailing, 2},
		{"B10 leading garbage", `)]}'{}`, ReasonUnexpected, 0},
		{"B10 byte order mark", "\xef\xbb\xbf{}", ReasonBOM, 0},
		{"B10 byte order mark alone", "\xef\xbb\xbf", ReasonBOM, 0},
		{"two bytes of a byte order mark", "\xef\xbb1", ReasonUTF8, 0},
		{"the ends of a byte order mark", "\xef1\xbf", ReasonUTF8, 0},
		{"the rest of a byte order mark", "!\xbb\xbf", ReasonUnexpected, 0},
		{"B10 byte order mark inside", "[\xef\xbb\xbf1]", ReasonUTF8, 1},
		{"UTF-16", "{\x00}\x00", reasonNameExpected, 1},
		{"no-break space as blank", "[\u00a01]", ReasonUTF8, 1},
		{"vertical tab as blank", "[\v1]", ReasonUnexpected, 1},
		{"comment", `[1/**/]`, reasonCommaArray, 2},
		{"M04 duplicate", `{"method":"a","method":"b"}`, ReasonDuplicate, 14},
		{"M04 duplicate written with an escape", `{"name":1,"na\u006de":2}`, ReasonDuplicate, 10},
		{"M04 duplicate of an escaped one", `{"na\u006de":1,"name":2}`, ReasonDuplicate, 15},
		{"M04 duplicate of two escaped ones", `{"n\u0061me":1,"na\u006de":2}`, ReasonDuplicate, 15},
		{"M04 duplicate of the empty name", `{"":1,"":2}`, ReasonDuplicate, 6},
		{"M04 duplicate deep inside", `{"a":[{"b":{"c":1,"d":{"x":1},"c":2}}]}`, ReasonDuplicate, 30},
		{"M04 duplicate after an inner object of the same names", `{"a":{"a":{"a":1}},"b":1,"a":2}`, ReasonDuplicate, 25},
		{"lone high surrogate", `"\ud800"`, ReasonSurrogate, 1},
		{"lone high surrogate and text", `"\ud800abcdef"`, ReasonSurrogate, 1},
		{"lone low surrogate", `"\udc00"`, ReasonSurrogate, 1},
		{"surrogates in the wrong order", `"\udc00\ud800"`, ReasonSurrogate, 1},
		{"two high surrogates", `"\ud800\ud800"`, ReasonSurrogate, 1},
		{"surrogate in UTF-8", "\"\xed\xa0\x80\"", ReasonUTF8, 1},
		{"overlong slash", "\"\xc0\xaf\"", ReasonUTF8, 1},
		{"beyond U+10FFFF", "\"\xf4\x90\x80\x80\"", ReasonUTF8, 1},
		{"cut rune", "\"\xe2\x82\"", ReasonUTF8, 1},
		{"continuation alone far inside", `"abcdefghijklm` + "\x80" + `nop"`, ReasonUTF8, 14},
		{"escape x", `"\x41"`, ReasonEscape, 1},
		{"escape capital U", `"\U0041"`, ReasonEscape, 1},
		{"short \\u", `"\u004"`, ReasonEscape, 1},
		{"backslash at the end", `"\`, ReasonEscape, 1},
		{"open string after an escape", `"\n`, ReasonEnd, 3},
		{"open string after a rune", "\"é", ReasonEnd, 3},
		{"open string after two surrogates", `"\ud83d\ude00`, ReasonEnd, 13},
		{"high surrogate at the end", `"\ud83d`, ReasonSurrogate, 1},
		{"high surrogate before another escape", `"\ud83d\nde00"`, ReasonSurrogate, 1},
		{"high surrogate before what looks like an escape", `"\ud83dxude00"`, ReasonSurrogate, 1},
		{"high surrogate before a short escape", `"\ud83d\ude0"`, ReasonSurrogate, 1},
		{"line feed in string", "\"a\nb\"", ReasonControl, 2},
		{"NUL in string", "\"abcdefghij\x00\"", ReasonControl, 11},
		{"open string", `"abcdefghijklmnop`, ReasonEnd, 17},
		{"open object", `{"a":1`, ReasonEnd, 6},
		{"object open after a name", `{"a"`, ReasonEnd, 4},
		{"object open after a comma", `{"a":1,`, ReasonEnd, 7},
		{"open array", `[1`, ReasonEnd, 2},
		{"comma at the end of an array", `[1,]`, ReasonUnexpected, 3},
		{"comma at the end of an object", `{"a":1,}`, reasonNameExpected, 7},
		{"comma alone", `[,]`, ReasonUnexpected, 1},
		{"no comma", `[1 2]`, reasonCommaArray, 3},
		{"no comma in object", `{"a":1 "b":2}`, reasonCommaObject, 7},
		{"no colon", `{"a" 1}`, reasonColonExpected, 5},
		{"no value", `{"a":}`, ReasonUnexpected, 5},
		{"bare name", `{a:1}`, reasonNameExpected, 1},
		{"single quotes", `{'a':1}`, reasonNameExpected, 1},
		{"wrong bracket", `[1}`, reasonCommaArray, 2},
		{"literal", `tru`, ReasonUnexpected, 0},
		{"literal in capitals", `[NULL]`, ReasonUnexpected, 1},
		{"B05 NaN", `NaN`, ReasonUnexpected, 0},
		{"B05 Infinity", `-Infinity`, ReasonNumber, 1},
		{"literal misspelt", `[nulx]`, ReasonUnexpected, 1},
		{"B05 leading zero", `01`, ReasonNumber, 1},
		{"B05 two zeros", `00`, ReasonNumber, 1},
		{"B05 zero and nine", `09`, ReasonNumber, 1},
		{"B05 plus", `+1`, ReasonUnexpected, 0},
		{"B05 point first", `.5`, ReasonUnexpected, 0},
		{"B05 point last", `1.`, ReasonNumber, 2},
		{"B05 two points", `1.2.3`, ReasonNumber, 3},
		{"B05 no exponent", `1e`, ReasonNumber, 2},
		{"B05 sign of no exponent", `1e+`, ReasonNumber, 3},
		{"B05 minus and a blank", `[- ]`, ReasonNumber, 2},
		{"B05 minus alone", `-`, ReasonEnd, 1},
		{"B05 hex", `0x10`, ReasonTrailing, 1},
		{"B05 a million digits", strings.Repeat("9", 1_000_000), ReasonNumberLength, 0},
		{"B01 depth 65", strings.Repeat("[", 65) + strings.Repeat("]", 65), ReasonDepth, 64},
		{"B01 depth 10,001", strings.Repeat(`{"a":`, 10_001), ReasonDepth, 64 * 5},
		{"B01 depth 1,000,000", strings.Repeat("[", 1_000_000), ReasonDepth, 64},
		{"too many members", manyMembers(DefaultMaxMembers + 1), ReasonMembers, -1},
		{"too large", strings.Repeat(" ", DefaultMaxBytes) + "1", ReasonSize, DefaultMaxBytes},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := Check([]byte(tt.text), Limits{})
			var syntax *SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("got %v, want a SyntaxError", err)
			}
			if syntax.Reason != tt.reason || tt.offset >= 0 && syntax.Offset != tt.offset {
				t.Errorf("got %v, want %s at byte %d", err, tt.reason, tt.offset)
			}
			if _, perr := Parse([]byte(tt.text), Limits{}); !cmp.Equal(perr, err) {
				t.Errorf("Parse says %v, Check %v", perr, err)
			}
		})
	}
}

func TestAccepted(t *testing.T) {
	for _, text := range []string{
		`null`, ` true `, "\t\r\nfalse\n", `""`, `{}`, `[]`, `[ ]`, `{ }`, `-0`, `0`, `1e5`, `1e400`, `1E-7`, `-1.50e+10`, `9223372036854775808`,
		"\"\ufffd\"", `"\ud83d\ude00"`, `"😀 é \/ \b\f\n\r\t\"\\ \u0000"`, "\"\u007f\u2028\"",
		`{"a":{"a":[{"a":1},{"a":2}]},"A":3,"\u0061b":4}`,
		`{ "a" : 1 , "b" : [ 1 , 2 ] }`,
		`{"abc":1,"axc":2,"\u0061yc":3}`,
		strings.Repeat("9", MaxNumberLength),
		strings.Repeat("[", 64) + strings.Repeat("]", 64),
		manyMembers(DefaultMaxMembers),
	} {
		if err := Check([]byte(text), Limits{}); err != nil {
			t.Errorf("%.60s: %v", text, err)
		}
		if _, err := Parse([]byte(text), Limits{}); err != nil {
			t.Errorf("parsing %.60s: %v", text, err)
		}
	}
}

func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		text   string
		limits Limits
		reason string
	}{
		{`[[1]]`, Limits{MaxDepth: 2}, ""},
		{`[[[1]]]`, Limits{MaxDepth: 2}, ReasonDepth},
		{`{"a":1,"b":2}`, Limits{MaxMembers: 2}, ""},
		{`{"a":1,"b":2,"c":3}`, Limits{MaxMembers: 2}, ReasonMembers},
		{`[{"a":1},{"b":2}]`, Limits{MaxMembers: 1}, ""},
		{`12345`, Limits{MaxBytes: 5}, ""},
		{`123456`, Limits{MaxBytes: 5}, ReasonSize},
	} {
		err := Check([]byte(tt.text), tt.limits)
		var syntax *SyntaxError
		if got := errors.As(err, &syntax); got != (tt.reason != "") || got && (syntax.Reason != tt.reason || !syntax.WellFormed()) {
			t.Errorf("%s with %+v: %v, want %q", tt.text, tt.limits, err, tt.reason)
		}
	}
	if got := (Limits{MaxBytes: math.MaxInt}).withDefaults().MaxBytes; got != maxText {
		t.Errorf("offsets up to %d do not fit", got)
	}
}

// TestLiteralCut: what lies behind a text in memory is no part of it.
func TestLiteralCut(t *testing.T) {
	for _, word := range []string{"null", "true", "false"} {
		for n := 1; n < len(word); n++ {
			var syntax *SyntaxError
			if err := Check([]byte(word)[:n], Limits{}); !errors.As(err, &syntax) || *syntax != (SyntaxError{0, ReasonUnexpected}) {
				t.Errorf("%s: %v", word[:n], err)
			}
		}
	}
}

// TestDuplicatesInLargeObjects crosses the border between comparing and hashing, with inner objects that use the same
// tables while the outer one is open.
func TestDuplicatesInLargeObjects(t *testing.T) {
	for _, n := range []int{hashFrom - 1, hashFrom, hashFrom + 1, 4 * hashFrom, 500} {
		for _, again := range []int{0, 1, n / 2, n - 1} {
			inner := manyMembers(40)
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, `"k%d":%s,`, i, inner)
			}
			good := "{" + b.String() + `"last":1}`
			if err := Check([]byte(good), Limits{}); err != nil {
				t.Fatalf("%d members: %v", n, err)
			}
			for _, name := range []string{fmt.Sprintf(`"k%d"`, again), fmt.Sprintf(`"\u006b%d"`, again)} {
				bad := "{" + b.String() + name + ":1}"
				var syntax *SyntaxError
				if err := Check([]byte(bad), Limits{}); !errors.As(err, &syntax) || syntax.Reason != ReasonDuplicate || syntax.Offset != len(bad)-len(name)-3 {
					t.Errorf("%d members, %s again: %v", n, name, err)
				}
			}
		}
	}
}

func TestValues(t *testing.T) {
	text := ` {"a":[1,-2.50,"x\ud83d\ude00\n",true,false,null,{"n\u0061me":{}}],"b":"plain"}`
	v, err := Parse([]byte(text), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if v.Kind() != Object || v.Len() != 2 || v.Offset() != 1 || string(v.Raw()) != text[1:] {
		t.Errorf("root: %v, %d members, offset %d, %s", v.Kind(), v.Len(), v.Offset(), v.Raw())
	}
	a, _ := v.Get("a")
	if a.Len() != 7 {
		t.Errorf("%d elements", a.Len())
	}
	var kinds []Kind
	for _, e := range a.Elems() {
		kinds = append(kinds, e.Kind())
	}
	if diff := cmp.Diff([]Kind{Number, Number, String, Bool, Bool, Null, Object}, kinds); diff != "" {
		t.Error(diff)
	}
	e := a.Elems()
	if e[1].Num() != "-2.50" || e[2].Str() != "x😀\n" || !e[3].Bool() || e[4].Bool() || e[2].Offset() != strings.Index(text, `"x`) {
		t.Errorf("elements: %q %q %v %v at %d", e[1].Num(), e[2].Str(), e[3].Bool(), e[4].Bool(), e[2].Offset())
	}
	if inner, ok := e[6].Get("name"); !ok || inner.Kind() != Object || inner.Len() != 0 {
		t.Error("a member with an escaped name is not found")
	}
	if _, ok := e[6].Get("other"); ok {
		t.Error("a member with an escaped name is found under another name")
	}
	if m := e[6].Members(); len(m) != 1 || m[0].Name != "name" {
		t.Errorf("members: %v", m)
	}
	if _, ok := v.Get("B"); ok {
		t.Error("B02 names are folded")
	}
	b, _ := v.Get("b")
	if b.Str() != "plain" || b.Num() != "" || b.Elems() != nil || b.Members() != nil {
		t.Error("a string has values of other kinds")
	}
	if !b.Is("plain") || b.Is("plai") || !e[2].Is("x😀\n") || e[2].Is(`x\ud83d\ude00\n`) || e[3].Is("true") || v.Is("") {
		t.Error("a string is not what it stands for")
	}
	for _, other := range []Value{a, b, e[0]} {
		for name := range other.EachMember() {
			t.Errorf("%s has a member %q", other.Raw(), name)
		}
	}
	for _, s := range []Value{b, e[2], e[0]} {
		if string(s.View()) != s.Str() {
			t.Errorf("a view of %q is %q", s.Str(), s.View())
		}
	}
	if rest := v.AppendWithout([]byte("x"), func(name []byte) bool { return string(name) == "a" }); string(rest) != `x{"b":"plain"}` {
		t.Errorf("without a: %s", rest)
	}
	c := e[6].Clone()
	if inner, ok := c.Get("name"); !ok || inner.Kind() != Object || string(c.Raw()) != `{"n\u0061me":{}}` || c.Offset() != 0 {
		t.Errorf("clone: %s", c.Raw())
	}
	var zero Value
	if _, ok := zero.Get("a"); ok || zero.Kind() != Invalid || zero.Raw() != nil || zero.Str() != "" || zero.Bool() || zero.Is("") || zero.Clone() != zero {
		t.Error("the zero Value is not empty")
	}
}

func TestScannerPicksMembers(t *testing.T) {
	text := `{"skip":[1,{"x":2}],"id":7,"list":["a","\u0062"]}`
	s := NewScanner([]byte(text), Limits{})
	defer s.Release()
	var o ObjectFrame
	var got []string
	for s.OpenObject(&o); s.NextMember(&o); {
		switch string(o.Name()) {
		case "id":
			got = append(got, fmt.Sprint(s.Offset(), " ", string(s.Skip())))
		case "list":
			var a ArrayFrame
			for s.OpenArray(&a); s.NextElement(&a); {
				raw, escaped := s.String()
				got = append(got, fmt.Sprint(string(raw), " ", escaped))
			}
		default:
			s.Skip()
		}
	}
	if err := s.End(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"25 7", `"a" false`, `"\u0062" true`}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCheckDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("allocations are not countable under the race detector")
	}
	for name, text := range samples() {
		if n := testing.AllocsPerRun(100, func() {
			if Check(text, Limits{}) != nil {
				t.Fatal("refused")
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"k%d":%d`, i, i)
	}
	b.WriteByte('}')
	return b.String()
}

// samples are tools/call messages of the sizes that the performance targets name.
func samples() map[string][]byte {
	call := func(arguments string) []byte {
		return []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` + arguments +
			`"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
	}
	base := len(call(""))
	fill := func(n int) string { return strings.Repeat("The quick brown fox. ", n/21+1)[:n] }
	var rows strings.Builder
	for i := 0; rows.Len() < 10_000; i++ {
		fmt.Fprintf(&rows, `{"id":%d,"name":"row %d","ok":true,"tags":["a","b"],"score":%d.5},`, i, i, i)
	}
	return map[string][]byte{
		"187B":  call(fill(187 - base)),
		"2KB":   call(fill(2048 - base)),
		"10KB":  call(fill(10240 - base)),
		"dense": []byte("[" + strings.TrimSuffix(rows.String(), ",") + "]"),
		"wide":  []byte(manyMembers(1000)),
	}
}

func BenchmarkCheck(b *testing.B) {
	for name, text := range samples() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if err := Check(text, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCheckMembers(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 200_000} {
		text := []byte(manyMembers(n))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if err := Check(text, Limits{MaxMembers: n}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for name, text := range samples() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(text, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Long strings are read in larger steps: whatever must be looked at is found wherever it stands.
func TestLongStrings(t *testing.T) {
	const length = 150
	for at := range length {
		for _, tc := range []struct{ text, reason string }{
			{`"`, ReasonTrailing}, {"\x1f", ReasonControl}, {"\x00", ReasonControl}, {"\xff", ReasonUTF8}, {"\x80", ReasonUTF8}, {`\x`, ReasonEscape},
			{`\"`, ""}, {"é", ""}, {"\x7f", ""}, {"!", ""}, {"#", ""}, {"[", ""}, {"]", ""},
		} {
			text := `"` + strings.Repeat("x", at) + tc.text + strings.Repeat("x", length-at) + `"`
			err := Check([]byte(text), Limits{})
			if tc.reason == "" {
				if err != nil {
					t.Errorf("%q after %d bytes: %v", tc.text, at, err)
				}
				continue
			}
			offset := 1 + at
			if tc.text == `"` {
				offset++ // of what follows the string
			}
			if bad := (*SyntaxError)(nil); !errors.As(err, &bad) || bad.Reason != tc.reason || bad.Offset != offset {
				t.Errorf("%q after %d bytes: %v", tc.text, at, err)
			}
		}
	}
}
