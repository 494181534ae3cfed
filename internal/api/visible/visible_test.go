package visible_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/durward-gateway/durward/internal/api/visible"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"plain Zürich 東京 🙂":              "plain Zürich 東京 🙂",
		"M17 \x1b[31mred\x1b[0m":         "M17 ⟨U+001B⟩[31mred⟨U+001B⟩[0m",
		"M17 a\u202ebidi":                "M17 a⟨U+202E⟩bidi",
		"M17 \u2066iso\u2069":            "M17 ⟨U+2066⟩iso⟨U+2069⟩",
		"M17 zero\u200bwidth\ufeff":      "M17 zero⟨U+200B⟩width⟨U+FEFF⟩",
		"M17 soft\u00adhyphen":           "M17 soft⟨U+00AD⟩hyphen",
		"M17 no\u00a0break\u3000":        "M17 no⟨U+00A0⟩break⟨U+3000⟩",
		"M17 line\u2028end\r\n":          "M17 line⟨U+2028⟩end⟨U+000D⟩⟨U+000A⟩",
		"M17 tag\U000e0041":              "M17 tag⟨U+E0041⟩",
		"M17 variant\ufe0f\U000e0100":    "M17 variant⟨U+FE0F⟩⟨U+E0100⟩",
		"M17 filler\u3164\u115f\u2800":   "M17 filler⟨U+3164⟩⟨U+115F⟩⟨U+2800⟩",
		"M17 bytes\xff\xc3":              "M17 bytes⟨0xFF⟩⟨0xC3⟩",
		"M17 private\ue000":              "M17 private⟨U+E000⟩",
		"the replacement \ufffd is real": "the replacement \ufffd is real",
	} {
		if got := visible.Text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestBeginning(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		limit      int
		want       string
		whole      bool
	}{
		{"plain", `{"a":"Grüße, 世界 \n"}`, 100, `{"a":"Grüße, 世界 \n"}`, true},
		{"M17 long", "世界世界", 7, "世界", false},
		{"just fits", "世界", 6, "世界", true},
		{"what is spelled out is not cut", "ab\x00", 10, "ab", false},
		{"nor left out when it fits", "ab\x00", 14, "ab⟨U+0000⟩", true},
		{"M17 blanks that show nothing", "\u2800\u2800", 100, "⟨U+2800⟩⟨U+2800⟩", true},
	} {
		if got, whole := visible.Beginning(tc.text, tc.limit); got != tc.want || whole != tc.whole {
			t.Errorf("%s: %s, %v", tc.name, got, whole)
		}
	}
}

// Text shows all of every text, also of one that consists of nothing but what takes most room.
func FuzzText(f *testing.F) {
	f.Add("a\U0010fffd\xff\u202e", 5)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		all := visible.Text(text)
		if again := visible.Text(all); again != all || !utf8.ValidString(all) {
			t.Fatalf("%q shows as %q", text, all)
		}
		if shown, whole := visible.Beginning(text, limit); !strings.HasPrefix(all, shown) || whole != (shown == all) {
			t.Fatalf("the beginning of %q is %q, %v", text, shown, whole)
		}
	})
}
