package webpage

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the style sheet
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
)

//go:embed style.css
var style string

// layout is what all pages have in common.
var layout = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>` + style + `</style>
</head>
<body>
<main{{if .Wide}} class="wide"{{end}}>
<h1>{{.Title}}</h1>
{{template "content" .Data}}
</main>
</body>
</html>
`

// policy allows a page its one style sheet and forms to this site, and nothing else.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()

// Template is the content of a kind of page.
type Template struct {
	template *template.Template
	wide     bool
}

// MustParse makes a template of a page's content, which is below its heading. It panics when the content is no template.
func MustParse(content string) *Template {
	t := template.Must(template.New("page").Parse(layout))
	template.Must(t.New("content").Parse(content))
	return &Template{template: t}
}

// Wide makes room for more than a few sentences.
func (t *Template) Wide() *Template {
	t.wide = true
	return t
}

// Secure sets what every answer to a browser needs: its address may carry a code or a state, and its page a button
// (RFC 9700 sections 4.2 and 4.16).
func Secure(h http.Header) {
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", policy)
}

// Write answers with a page. When there is an error, nothing has been written.
func (t *Template) Write(w http.ResponseWriter, status int, title string, data any) error {
	var body bytes.Buffer
	err := t.template.Execute(&body, struct {
		Title string
		Wide  bool
		Data  any
	}{title, t.wide, data})
	if err != nil {
		return fmt.Errorf("making a page: %w", err)
	}
	Secure(w.Header())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes())
	return nil
}

// Redirect sends the browser to an address by GET. location must not come from a request without having been checked.
func Redirect(w http.ResponseWriter, location string) {
	Secure(w.Header())
	w.Header().Set("Location", location)
	w.WriteHeader(http.StatusSeeOther)
}
