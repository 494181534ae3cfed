package webpage

import (
	"math"
	"regexp"
	"strconv"
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
	tokens := regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6})`)
	colours := func(text string) map[string]float64 {
		out := map[string]float64{}
		for _, m := range tokens.FindAllStringSubmatch(text, -1) {
			out[m[1]] = luminance(t, m[2])
		}
		return out
	}
	dark = dark[:strings.Index(dark, "\n}\n")]
	schemes := map[string]map[string]float64{"light": colours(light), "dark": colours(dark)}
	if len(schemes["light"]) < 15 || len(schemes["light"]) != len(schemes["dark"]) {
		t.Errorf("%d light colours, %d dark ones", len(schemes["light"]), len(schemes["dark"]))
	}
	for scheme, colour := range schemes {
		for _, pair := range []struct {
			above, below string
			least        float64
		}{
			{"text", "page", 4.5}, {"text", "card", 4.5}, {"text", "code", 4.5}, {"text", "no-soft", 4.5}, {"muted", "card", 4.5}, {"muted", "code", 4.5},
			{"muted", "page", 4.5}, {"link", "card", 4.5}, {"link", "page", 4.5}, {"link", "code", 4.5}, {"on-accent", "accent", 4.5}, {"on-yes", "yes", 4.5}, {"no", "card", 4.5},
			{"no", "no-soft", 4.5}, {"warning", "warning-soft", 4.5}, {"good", "good-soft", 4.5},
			{"control", "card", 3}, {"control", "code", 3}, {"accent", "card", 3}, {"accent", "page", 3}, {"yes", "card", 3}, {"yes", "no", 1},
		} {
			above, below := colour[pair.above], colour[pair.below]
			if got := (math.Max(above, below) + 0.05) / (math.Min(above, below) + 0.05); got < pair.least {
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

// luminance returns the relative luminance of a colour (WCAG 2.2, "relative luminance").
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	weights, sum := [3]float64{0.2126, 0.7152, 0.0722}, 0.0
	for i, weight := range weights {
		n, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
