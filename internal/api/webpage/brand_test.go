package webpage

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

const drawing = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><path d="M0 0h1v1z"/></svg>`

// TestAccent checks that each colour can be read wherever the style sheet puts it: as text on every ground, and below the
// text of buttons, in light and in dark (WCAG 2.2, criterion 1.4.3). A colour that can be read already stays.
func TestAccent(t *testing.T) {
	light, dark, _ := strings.Cut(style, "@media (prefers-color-scheme: dark)")
	token := func(text, name string) Colour {
		found := regexp.MustCompile(`--` + name + `: (#[0-9a-f]{6})`).FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("the style sheet has no %s", name)
		}
		return colour(t, found[1])
	}
	random := rand.New(rand.NewPCG(1, 2))
	accents := []Colour{black, white, colour(t, "ffff00"), colour(t, "#1F4FD1"), colour(t, "#93b5ff"), colour(t, "808080")}
	for range 2000 {
		n := random.Uint32()
		accents = append(accents, Colour{uint8(n), uint8(n >> 8), uint8(n >> 16)})
	}
	for _, accent := range accents {
		var b Brand
		b.SetAccent(accent)
		for _, scheme := range []struct {
			text  string
			shade Colour
		}{{light, b.accent.light}, {dark, b.accent.dark}} {
			for _, other := range []string{"page", "card", "code", "on-accent"} {
				if got := contrast(scheme.shade, token(scheme.text, other)); got < 4.5 {
					t.Errorf("%s becomes %s, which has %.2f:1 with %s", accent, scheme.shade, got, other)
				}
			}
		}
	}
	var b Brand
	b.SetAccent(colour(t, "1f4fd1"))
	if b.accent.light != colour(t, "1f4fd1") || b.accent.dark == b.accent.light {
		t.Errorf("a readable colour becomes %v", b.accent)
	}
}

// TestLogo checks that the content says what a logo is, and that nothing else is one.
func TestLogo(t *testing.T) {
	for name, test := range map[string]struct{ content, kind, problem string }{
		"PNG":                 {"\x89PNG\r\n\x1a\n....", "image/png", ""},
		"WebP":                {"RIFF....WEBPVP8 ", "image/webp", ""},
		"SVG":                 {`<?xml version="1.0"?><!-- a comment -->` + drawing, "image/svg+xml", ""},
		"a page":              {`<html xmlns="http://www.w3.org/1999/xhtml"/>`, "", "its element is not svg"},
		"another svg":         {`<svg/>`, "", "its element is not svg"},
		"a script in it":      {strings.Replace(drawing, "<path", "<g><script>1</script></g><path", 1), "", "it has a script"},
		"cut":                 {drawing[:60], "", "neither PNG nor WebP"},
		"empty":               {"", "", "it has no element"},
		"a picture of a kind": {"GIF89a", "", "neither PNG nor WebP"},
		"too large":           {"\x89PNG\r\n\x1a\n" + strings.Repeat(".", LargestLogo), "", "more than 64 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			var b Brand
			err := b.SetLogo([]byte(test.content))
			switch {
			case test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem) || b.Logo != nil):
				t.Errorf("%v", err)
			case test.problem == "" && (err != nil || b.Logo.Type != test.kind):
				t.Errorf("%v: %+v", err, b.Logo)
			}
		})
	}
}

// TestBrandedPage checks that a page shows name, logo and accent, under a policy that is the same but for the hash of the
// accent's style.
func TestBrandedPage(t *testing.T) {
	b := &Brand{Name: `Acme "<b>&`}
	b.SetAccent(colour(t, "ffcc00"))
	if err := b.SetLogo([]byte(drawing)); err != nil {
		t.Fatal(err)
	}
	show := func(brand *Brand) (page, policy string) {
		w := httptest.NewRecorder()
		if err := MustParse(`<p>{{.}}</p>`).WriteIn(w, http.StatusOK, Frame{Title: "t", Brand: brand}, "text"); err != nil {
			t.Fatal(err)
		}
		return w.Body.String(), w.Header().Get("Content-Security-Policy")
	}
	page, policy := show(b)
	for _, want := range []string{
		"<title>t · Acme &#34;&lt;b&gt;&amp;</title>", "<style>" + b.Style() + "</style>",
		`<img src="data:image/svg&#43;xml;base64,` + base64.StdEncoding.EncodeToString([]byte(drawing)) + `" alt="">Acme &#34;&lt;b&gt;&amp;</a>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s:\n%s", want, page)
		}
	}
	if strings.Contains(page, Name) || strings.Contains(page, "<svg") || strings.Contains(page, "%231f4fd1") {
		t.Errorf("the page shows the gateway's own:\n%s", page)
	}
	plain, ownPolicy := show(new(Brand))
	if nobody, _ := show(nil); plain != nobody || strings.Count(plain, "<style>") != 1 || !strings.Contains(plain, "</svg>"+Name) {
		t.Errorf("a page without a brand:\n%s", plain)
	}
	if got := strings.Replace(policy, " "+styleSource(b.Style()), "", 1); got != ownPolicy || got == policy {
		t.Errorf("the policy is %s, not %s", policy, ownPolicy)
	}
	if err := b.SetLogo(append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte("."), iconBelow)...)); err != nil {
		t.Fatal(err)
	}
	if page, _ := show(b); strings.Count(page, "image/png") != 1 {
		t.Error("a large logo is in the page twice")
	}
}

func colour(t *testing.T, text string) Colour {
	t.Helper()
	c, err := ParseColour(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
