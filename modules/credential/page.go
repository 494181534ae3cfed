package credential

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"github.com/durward-gateway/durward/modules/app"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is what a browser sees when it comes back.
type page struct {
	Status int
	Title  string
	Text   string
	Holder *holder // nil when nothing was connected
}

// holder names who holds a connection now. Whoever was lured here by a link of somebody else's sees that it is not them
// (login CSRF), and can undo it.
type holder struct {
	User, Organization string
	Token              string
	Action             string
}

// contentPolicy allows the page's one style sheet and its one form, and nothing else.
var contentPolicy = "default-src 'none'; style-src 'sha256-" + styleDigest() + "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func styleDigest() string {
	_, rest, _ := strings.Cut(pageText, "<style>")
	style, _, _ := strings.Cut(rest, "</style>")
	sum := sha256.Sum256([]byte(style))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// secure sets what every answer to a browser that may carry a code or state in its address needs (RFC 9700 sections 4.2
// and 4.16).
func secure(h http.Header) {
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", contentPolicy)
}

func (p page) write(w http.ResponseWriter) {
	if p.Holder != nil {
		p.Holder.Action = app.UndoPath
	}
	var body bytes.Buffer
	if err := pageTemplate.Execute(&body, p); err != nil {
		app.WriteInternalError(w)
		return
	}
	secure(w.Header())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(p.Status)
	_, _ = w.Write(body.Bytes())
}
