package webpage

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"html/template"
	"io"
)

// LargestLogo is the most bytes of a logo.
const LargestLogo = 64 << 10

// iconBelow bounds logos that are the icon of pages too: each page has both in it.
const iconBelow = 16 << 10

// Brand holds the name, logo and colour of whoever runs the gateway, for the tops of pages. It does not change once it is used. A nil one is the gateway's
// own.
type Brand struct {
	// Name is at the top of pages and in their titles. Default: the product's.
	Name string
	// Logo is the picture beside it; nil for the default.
	Logo *Logo

	accent *shades // nil for the default
}

// shades are the colours of an accent in light and in dark pages.
type shades struct{ light, dark Colour }

// Logo is a picture that browsers show and never run.
type Logo struct {
	// Type is its media type.
	Type string
	// Extension is the end of a file's name, for the type.
	Extension string
	Content   []byte
	// Hash names the content.
	Hash string
}

// Style returns the style sheet of the accent, which comes after the pages' own; "" for none. b may be nil.
func (b *Brand) Style() string {
	if b == nil || b.accent == nil {
		return ""
	}
	const declared = ":root { --link: %[1]s; --accent: %[1]s; --on-accent: %[2]s }"
	return fmt.Sprintf(declared+"\n", b.accent.light, onLight) +
		fmt.Sprintf("@media (prefers-color-scheme: dark) { "+declared+" }\n", b.accent.dark, onDark)
}

// SchemedStyle returns the same for a page whose reader chooses between light and dark. b may be nil.
func (b *Brand) SchemedStyle() string {
	if b == nil || b.accent == nil {
		return ""
	}
	return fmt.Sprintf(":root { --link: light-dark(%[1]s, %[2]s); --accent: light-dark(%[1]s, %[2]s); --on-accent: light-dark(%[3]s, %[4]s) }\n",
		b.accent.light, b.accent.dark, onLight, onDark)
}

// Title returns the name that pages show. b may be nil.
func (b *Brand) Title() string {
	if b == nil || b.Name == "" {
		return Name
	}
	return b.Name
}

// Own reports whether the gateway's own logo is shown. With the name of somebody else it would be wrong. b may be nil.
func (b *Brand) Own() bool { return b == nil || b.Name == "" && b.Logo == nil }

// Picture returns the logo as an address that holds it; "" for none. A Caddyfile may send other addresses of a site
// elsewhere, so a page has its logo in it, as it has its style. b may be nil.
func (b *Brand) Picture() template.URL {
	if b == nil || b.Logo == nil {
		return ""
	}
	return template.URL("data:" + b.Logo.Type + ";base64," + base64.StdEncoding.EncodeToString(b.Logo.Content)) //nolint:gosec // a picture, by its content
}

// Icon returns the picture for the browser's tab in the same way; "" for none.
func (b *Brand) Icon() template.URL {
	if b == nil || b.Logo == nil || len(b.Logo.Content) > iconBelow {
		return ""
	}
	return b.Picture()
}

// SetAccent sets the colour of links and main buttons. Where text in it could not be read, a shade of it is used.
func (b *Brand) SetAccent(c Colour) {
	b.accent = &shades{light: c.shade(lightGrounds, onLight, black), dark: c.shade(darkGrounds, onDark, white)}
}

// SetLogo sets the logo. It refuses what is no picture of a known type, whatever the name of its file.
func (b *Brand) SetLogo(content []byte) error {
	if len(content) > LargestLogo {
		return fmt.Errorf("it has more than %d KiB; make it smaller", LargestLogo>>10)
	}
	logo := &Logo{Content: content}
	switch {
	case bytes.HasPrefix(content, []byte("\x89PNG\r\n\x1a\n")):
		logo.Type, logo.Extension = "image/png", "png"
	case len(content) > 12 && string(content[:4]) == "RIFF" && string(content[8:12]) == "WEBP":
		logo.Type, logo.Extension = "image/webp", "webp"
	default:
		if err := checkSVG(content); err != nil {
			return fmt.Errorf("it is neither PNG nor WebP, nor SVG: %w", err)
		}
		logo.Type, logo.Extension = "image/svg+xml", "svg"
	}
	sum := sha256.Sum256(content)
	logo.Hash = hex.EncodeToString(sum[:6])
	b.Logo = logo
	return nil
}

// checkSVG reports why content is no SVG picture that a browser would show as an image.
func checkSVG(content []byte) error {
	decoder, depth, roots := xml.NewDecoder(bytes.NewReader(content)), 0, 0
	for {
		token, err := decoder.Token()
		switch {
		case errors.Is(err, io.EOF) && roots == 1:
			return nil
		case errors.Is(err, io.EOF):
			return errors.New("it has no element")
		case err != nil:
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth == 0 && (roots > 0 || t.Name != (xml.Name{Space: "http://www.w3.org/2000/svg", Local: "svg"})) {
				return errors.New("its element is not svg of http://www.w3.org/2000/svg")
			}
			if t.Name.Local == "script" {
				return errors.New("it has a script, and a logo needs none")
			}
			if depth == 0 {
				roots++
			}
			depth++
		case xml.EndElement:
			depth--
		}
	}
}
