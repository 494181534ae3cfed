package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html"
	"io"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/modules/app/paths"
)

// assetsPrefix is followed by the name of a file, which has the hash of its content.
const assetsPrefix = paths.ConsolePrefix + "assets/"

// files holds what `go run -C modules/console/build .` makes of the sources: the page, and its script and style sheet,
// compressed.
//
//go:embed assets
var files embed.FS

// index is the page.
var index = func() []byte {
	text, err := files.ReadFile("assets/index.html")
	if err != nil {
		panic(err) // it is embedded
	}
	return text
}()

// policy lets the page run the console's script and ask the gateway, and nothing else. A text never becomes markup or
// script: the browser refuses that (Trusted Types).
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; " +
	"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// secure sets the headers of all answers.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// look is how the console looks with a brand.
type look struct {
	index []byte
	files map[string]brandFile // by their names below assetsPrefix
}

// brandFile is a file that the configuration makes, and not the sources.
type brandFile struct {
	kind    string
	content []byte
}

// newLook returns the console with a brand.
func newLook(brand *webpage.Brand) *look {
	l := &look{index: index, files: make(map[string]brandFile)}
	if brand.Own() && brand.SchemedStyle() == "" {
		return l
	}
	text, marks := string(index), ""
	if style := brand.SchemedStyle(); style != "" {
		sum := sha256.Sum256([]byte(style))
		name := "brand." + hex.EncodeToString(sum[:6]) + ".css"
		l.files[name] = brandFile{types[".css"], []byte(style)}
		marks += `<link rel="stylesheet" href="` + assetsPrefix + name + `">` + "\n"
	}
	if !brand.Own() {
		logo := ""
		if brand.Logo != nil {
			name := "logo." + brand.Logo.Hash + "." + brand.Logo.Extension
			l.files[name] = brandFile{brand.Logo.Type, brand.Logo.Content}
			logo = assetsPrefix + name
			text = icon.ReplaceAllLiteralString(text, `<link rel="icon" href="`+logo+`">`)
		}
		marks += `<meta name="brand" content="` + html.EscapeString(brand.Title()) + `" data-logo="` + logo + `">` + "\n"
		text = strings.Replace(text, "· "+webpage.Name+"</title>", "· "+html.EscapeString(brand.Title())+"</title>", 1)
	}
	l.index = []byte(strings.Replace(text, "</head>", marks+"</head>", 1))
	return l
}

// icon matches the gateway's own icon in the page.
var icon = regexp.MustCompile(`<link rel="icon"[^>]*>`)

func (l *look) serveIndex(w http.ResponseWriter) {
	secure(w.Header())
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(l.index)))
	_, _ = w.Write(l.index)
}

// drawingPolicy lets a picture in SVG have styles, and neither scripts nor anything of another address, also when somebody
// opens its address.
const drawingPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox"

// serve answers with a file of the brand. It reports false when there is none of that name.
func (l *look) serve(w http.ResponseWriter, name string) bool {
	file, ok := l.files[name]
	if !ok {
		return false
	}
	secure(w.Header())
	if strings.HasPrefix(file.kind, "image/") {
		w.Header().Set("Content-Security-Policy", drawingPolicy)
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Content-Type", file.kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(file.content)))
	_, _ = w.Write(file.content)
	return true
}

// types are the media types of the assets.
var types = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".txt": "text/plain; charset=utf-8"}

// serveAsset answers with a file whose name changes with its content, so that browsers keep it for good.
func serveAsset(w http.ResponseWriter, r *http.Request, name string) {
	kind, known := types[path.Ext(name)]
	packed, err := files.ReadFile("assets/" + name + ".gz")
	if !known || err != nil || strings.Contains(name, "/") {
		gateway.WriteNotFound(w)
		return
	}
	body := packed
	if takesGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
	} else if body, err = unpack(packed); err != nil {
		gateway.WriteInternalError(w)
		return
	}
	secure(w.Header())
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Vary", "Accept-Encoding")
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) //nolint:gosec // an embedded file, whatever its name
}

// takesGzip reports whether a client unpacks gzip (RFC 9110 section 12.5.3). One that names it with a weight, as no browser
// does, gets the plain file.
func takesGzip(r *http.Request) bool {
	for _, value := range r.Header.Values("Accept-Encoding") {
		for coding := range strings.SplitSeq(value, ",") {
			if strings.TrimSpace(coding) == "gzip" {
				return true
			}
		}
	}
	return false
}

func unpack(packed []byte) ([]byte, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(unpacked)
}
