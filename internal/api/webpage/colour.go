package webpage

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Colour is a colour of sRGB, without transparency.
type Colour [3]uint8

var colourPattern = regexp.MustCompile(`\A#?[0-9a-fA-F]{6}\z`)

// ParseColour reads a colour such as #1f4fd1. It may lack the #, which begins a comment in a Caddyfile.
func ParseColour(text string) (Colour, error) {
	if !colourPattern.MatchString(text) {
		return Colour{}, fmt.Errorf("%q is no colour; write it as six hexadecimal digits, such as 1f4fd1", text)
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "#"), 16, 32)
	return Colour{uint8(n >> 16), uint8(n >> 8), uint8(n)}, err
}

func (c Colour) String() string { return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]) }

// luminance returns the relative luminance of a colour (WCAG 2.2, "relative luminance").
func (c Colour) luminance() float64 {
	weights, sum := [3]float64{0.2126, 0.7152, 0.0722}, 0.0
	for i, weight := range weights {
		part := float64(c[i]) / math.MaxUint8
		if part <= 0.04045 {
			part /= 12.92
		} else {
			part = math.Pow((part+0.055)/1.055, 2.4)
		}
		sum += weight * part
	}
	return sum
}

// contrast returns the contrast ratio of two colours (WCAG 2.2, "contrast ratio").
func contrast(a, b Colour) float64 {
	first, second := a.luminance(), b.luminance()
	return (max(first, second) + 0.05) / (min(first, second) + 0.05)
}

// mixed returns a colour with a share of another one.
func (c Colour) mixed(other Colour, share float64) Colour {
	var out Colour
	for i := range c {
		out[i] = uint8(math.Round(float64(c[i])*(1-share) + float64(other[i])*share))
	}
	return out
}

// readable is the least contrast of text (WCAG 2.2, criterion 1.4.3).
const readable = 4.5

var (
	black, white = Colour{}, Colour{255, 255, 255}
	// lightGrounds and darkGrounds hold the colours behind text in the accent: --page, --card and --code of the style sheet.
	lightGrounds = []Colour{{0xf4, 0xf5, 0xf8}, white}
	darkGrounds  = []Colour{{0x0f, 0x13, 0x1a}, {0x18, 0x1d, 0x27}, {0x10, 0x14, 0x1c}}
	// onDark is text on the accent of dark pages, and onLight on that of light ones.
	onDark, onLight = Colour{0x0f, 0x16, 0x26}, white
)

// shade returns the colour itself where it can be read on all grounds, otherwise the nearest one on the way to another
// colour that can.
func (c Colour) shade(grounds []Colour, on, to Colour) Colour {
	const steps = 200
	for i := range steps {
		candidate := c.mixed(to, float64(i)/steps)
		least := contrast(candidate, on)
		for _, ground := range grounds {
			least = min(least, contrast(candidate, ground))
		}
		if least >= readable {
			return candidate
		}
	}
	return to
}
