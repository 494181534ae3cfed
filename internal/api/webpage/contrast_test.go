package webpage

import (
	"regexp"
	"strings"
	"testing"
)

// TestContrast checks WCAG 2.2 criteria 1.4.3 (4.5:1 for text) and 1.4.11 (3:1 for the visible border of a control,
// and its focus), in light and in dark.
func TestContrast(t *testing.T) {
	light, dark, found := strings.Cut(style, "@media (prefers-color-scheme: dark)")
	if !found {
		t.Fatal("the style sheet has no dark colours")
	}
	declared := regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6})`)
	colours := func(text string) map[string]Colour {
		out := map[string]Colour{}
		for _, m := range declared.FindAllStringSubmatch(text, -1) {
			out[m[1]] = colour(t, m[2])
		}
		return out
	}
	dark = dark[:strings.Index(dark, "\n}\n")]
	schemes := map[string]map[string]Colour{"light": colours(light), "dark": colours(dark)}
	if len(schemes["light"]) < 15 || len(schemes["light"]) != len(schemes["dark"]) {
		t.Errorf("%d light colours, %d dark ones", len(schemes["light"]), len(schemes["dark"]))
	}
	for scheme, tokens := range schemes {
		for _, pair := range []struct {
			above, below string
			least        float64
		}{
			{"text", "page", 4.5}, {"text", "card", 4.5}, {"text", "code", 4.5}, {"text", "no-soft", 4.5}, {"muted", "card", 4.5}, {"muted", "code", 4.5},
			{"muted", "page", 4.5}, {"link", "card", 4.5}, {"link", "page", 4.5}, {"link", "code", 4.5}, {"on-accent", "accent", 4.5}, {"on-yes", "yes", 4.5}, {"no", "card", 4.5},
			{"no", "no-soft", 4.5}, {"warning", "warning-soft", 4.5}, {"good", "good-soft", 4.5},
			{"control", "card", 3}, {"control", "code", 3}, {"accent", "card", 3}, {"accent", "page", 3}, {"yes", "card", 3}, {"yes", "no", 1},
		} {
			if got := contrast(tokens[pair.above], tokens[pair.below]); got < pair.least {
				t.Errorf("%s: %s on %s has %.2f:1, not %.1f:1", scheme, pair.above, pair.below, got, pair.least)
			}
		}
	}
	// A colour of its own anywhere else would be held by nothing.
	for _, line := range strings.Split(style, "\n") {
		if !strings.Contains(line, "--") && regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b`).MatchString(line) {
			t.Errorf("a colour that is no token: %s", line)
		}
	}
}
