package slug

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestValid(t *testing.T) {
	for _, tt := range []struct {
		name, slug string
		want       bool
	}{
		{"plain", "my-server-2", true},
		{"P03 one character", "a", true},
		{"P03 dash", "-", true},
		{"P03 dashes", "--", true},
		{"63 characters", strings.Repeat("a", 63), true},
		{"64 characters", strings.Repeat("a", 64), false},
		{"P03 empty", "", false},
		{"P03 64 KiB", strings.Repeat("a", 1<<16), false},
		{"P03 underscore", "a_b", false},
		{"P03 dot", "a.b", false},
		{"P03 accent", "aé", false},
		{"P03 full-width", "ａ", false},
		{"P03 Cyrillic", "а", false},
		{"P03 line feed at the end", "a\n", false},
		{"P03 encoded line feed", "a%0a", false},
		{"P03 blank first", " a", false},
		{"P03 zero-width space", "a\u200b", false},
		{"P03 Kelvin", "\u212a", false},
		{"P02 capital", "FOO", false},
		{"P03 NUL", "a\x00", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Valid(tt.slug); got != tt.want {
				t.Errorf("Valid(%.40q) = %v", tt.slug, got)
			}
		})
	}
}

func TestReserved(t *testing.T) {
	for _, tt := range []struct {
		name, slug string
		want       bool
	}{
		{"P04 health", "health", true},
		{"P04 metrics", "metrics", true},
		{"P04 well-known", "well-known", true},
		{"P04 admin", "admin", true},
		{"P04 by-slug", "by-slug", true},
		{"P04 oauth", "oauth", true},
		{"uuid", "0190b6c2-7f3a-7d3e-8f00-0123456789ab", true},
		{"uuid without dashes", "0190b6c27f3a7d3e8f000123456789ab", true},
		{"uuid with dashes elsewhere", "0190b6c27f3a7d3e8f00012345678-9ab", true},
		{"33 hex digits", "0190b6c27f3a7d3e8f000123456789abc", false},
		{"not hex", "0190b6c27f3a7d3e8f000123456789ag", false},
		{"longer word", "admins", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Reserved(tt.slug); got != tt.want {
				t.Errorf("Reserved(%q) = %v", tt.slug, got)
			}
		})
	}
}

func TestFromName(t *testing.T) {
	for name, want := range map[string]string{
		"My Server":               "my-server",
		"  GitHub\t(Production)":  "github-production",
		"a_b.c/d":                 "abcd",
		"a - - b":                 "a-b",
		"Zoë's":                   "zos",
		"\u212aelvin":             "elvin",
		"日本":                      fallback,
		"":                        fallback,
		"--":                      fallback,
		strings.Repeat("ab ", 40): strings.Repeat("ab-", 21)[:62],
	} {
		if got := FromName(name); got != want {
			t.Errorf("FromName(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestWithSuffix(t *testing.T) {
	random := []byte{0xde, 0xad, 0xbe, 0xef}
	for slug, want := range map[string]string{
		"my-server":                "my-server-deadbeef",
		"admin":                    "admin-deadbeef",
		strings.Repeat("a", 63):    strings.Repeat("a", 54) + "-deadbeef",
		strings.Repeat("a-", 31):   strings.Repeat("a-", 26) + "a-deadbeef",
		"":                         "server-server-deadbeef",
		"-":                        "server-server-deadbeef",
		"0190b6c27f3a7d3e8f000123": "server-0190b6c27f3a7d3e8f000123-deadbeef",
	} {
		got, err := WithSuffix(slug, bytes.NewReader(random))
		if err != nil || got != want {
			t.Errorf("WithSuffix(%q) = %q, %v, want %q", slug, got, err, want)
		}
	}
	if _, err := WithSuffix("a", bytes.NewReader(random[:2])); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("short random: %v", err)
	}
}

func FuzzSlug(f *testing.F) {
	for _, s := range []string{"a", "My Server", "a\n", "0190b6c2-7f3a-7d3e-8f00-0123456789ab", "\xff", "0190b6c27f3a7d3e8f000123"} {
		f.Add(s)
	}
	pattern := regexp.MustCompile(`\A[a-z0-9-]{1,63}\z`)
	f.Fuzz(func(t *testing.T, s string) {
		if Valid(s) != pattern.MatchString(s) {
			t.Errorf("Valid(%q) = %v", s, Valid(s))
		}
		if _, err := uuid.Parse(s); err == nil && Valid(s) && !Reserved(s) {
			t.Errorf("%q parses as a uuid", s)
		}
		made := FromName(s)
		suffixed, err := WithSuffix(made, bytes.NewReader([]byte{0xde, 0xad, 0xbe, 0xef}))
		if !Valid(made) || err != nil || !Valid(suffixed) || Reserved(suffixed) {
			t.Errorf("%q gives %q and %q (%v)", s, made, suffixed, err)
		}
		if suffixed, err := WithSuffix(s, bytes.NewReader([]byte{0, 0, 0, 0})); err != nil || !Valid(suffixed) || Reserved(suffixed) {
			t.Errorf("%q gives %q (%v)", s, suffixed, err)
		}
	})
}
