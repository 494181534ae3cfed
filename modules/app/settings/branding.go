package settings

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/api/webpage"
)

// Branding holds what pages and the console show of whoever runs the gateway. Each user sees it, whatever their
// organization.
type Branding struct {
	// The name at the top of pages and in their titles, up to 40 characters. Default: `durward`.
	Name string `json:"name,omitempty"`
	// The logo beside the name: a PNG, SVG or WebP of up to 64 KiB, as the path of its file or as a `data:` URL with base64.
	// It is read when the configuration is loaded. Default: that of durward; with a name, none.
	Logo string `json:"logo,omitempty"`
	// The colour of links and main buttons, as `rrggbb` or `#rrggbb`. Where text in it would have less contrast than 4.5:1, a darker
	// shade is used in light pages, and a lighter one in dark pages. Default: a blue.
	Accent string `json:"accent,omitempty"`
}

// longestName is the most characters of a name: more would leave no room for anything else at the top of a page.
const longestName = 40

// Set sets an option of the Caddyfile.
func (b *Branding) Set(word, value string) error {
	field, ok := map[string]*string{"name": &b.Name, "logo": &b.Logo, "accent": &b.Accent}[word]
	switch {
	case !ok:
		return fmt.Errorf("unrecognized word %q in branding; known are accent, logo, name", word)
	case value == "":
		return fmt.Errorf("%s is empty; leave the line out for the default", word)
	case *field != "":
		return fmt.Errorf("%s may be given once", word)
	}
	*field = value
	return nil
}

// Check refuses what can be seen to be wrong without reading a file. b may be nil.
func (b *Branding) Check() error {
	if b == nil {
		return nil
	}
	if utf8.RuneCountInString(b.Name) > longestName {
		return fmt.Errorf("name takes up to %d characters, so that a page's top has room for more", longestName)
	}
	if visible.Text(b.Name) != b.Name || strings.TrimSpace(b.Name) != b.Name {
		return errors.New("name has characters that cannot be seen, or blanks around it")
	}
	if b.Accent != "" {
		if _, err := webpage.ParseColour(b.Accent); err != nil {
			return fmt.Errorf("accent: %w", err)
		}
	}
	return nil
}

// Brand reads the logo, and returns what pages show. b may be nil.
func (b *Branding) Brand() (*webpage.Brand, error) {
	if b == nil {
		return new(webpage.Brand), nil
	}
	if err := b.Check(); err != nil {
		return nil, err
	}
	brand := &webpage.Brand{Name: b.Name}
	if b.Accent != "" {
		accent, err := webpage.ParseColour(b.Accent)
		if err != nil {
			return nil, fmt.Errorf("accent: %w", err)
		}
		brand.SetAccent(accent)
	}
	if b.Logo == "" {
		return brand, nil
	}
	logo, err := readLogo(b.Logo)
	if err == nil {
		err = brand.SetLogo(logo)
	}
	if err != nil {
		return nil, fmt.Errorf("logo: %w", err)
	}
	return brand, nil
}

// readLogo returns the bytes of a logo, and no more of them than show that they are too many.
func readLogo(place string) ([]byte, error) {
	if strings.HasPrefix(place, "data:") {
		_, encoded, ok := strings.Cut(place, ";base64,")
		if !ok {
			return nil, errors.New("a data URL has to be base64, as in `data:image/png;base64,...`")
		}
		content, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return nil, fmt.Errorf("reading the data URL: %w", err)
		}
		return content, nil
	}
	file, err := os.Open(place)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, webpage.LargestLogo+1))
}
