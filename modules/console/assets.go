package console

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"

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

func serveIndex(w http.ResponseWriter) {
	secure(w.Header())
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(index)))
	_, _ = w.Write(index)
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
