package webpage

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // the style sheet, the layout
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
)

var (
	//go:embed style.css
	style string

	//go:embed layout.html
	layoutText string
	// layout holds the common parts of all pages. It contains the style sheet itself, because a Caddyfile may send
	// the other addresses of a site elsewhere: so an answer from any address has the style.
	layout = strings.Replace(layoutText, "/* style.css */", style, 1)
)

// Name is the product's name, at the top of its pages.
const Name = "durward"

// policy returns a page's Content-Security-Policy without the destinations of its forms, and its script. The only
// pictures allowed are those inside the page.
func policy(brand *Brand) string {
	if styles := brand.Style(); styles != "" {
		return policyFor(styleSource(style) + " " + styleSource(styles))
	}
	return ownPolicy
}

var ownPolicy = policyFor(styleSource(style))

func policyFor(styles string) string {
	return "default-src 'none'; style-src " + styles + "; img-src data:; base-uri 'none'; frame-ancestors 'none'"
}

// styleSource allows one inline style sheet, to the letter.
func styleSource(sheet string) string {
	sum := sha256.Sum256([]byte(sheet))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Link leads to another address of the same site.
type Link struct{ Address, Text string }

// User is a user who is logged in with a browser, with the form that logs them out.
type User struct{ Name, Token, Logout string }

// Frame describes the surroundings of a page's content.
type Frame struct {
	Title string
	// Site is the name of another site than the gateway's own, which has no front page. Default: the gateway's.
	Site string
	// Back leads to the page from which the reader came. Default: only to the front page.
	Back Link
	// Links lists other pages to which the reader can go.
	Links []Link
	// Forms lists the sources to which the page's forms lead, redirects included (CSP level 3, section 6.4.1). Default: this
	// site alone.
	Forms string
	// User is the reader; nil when nobody is logged in.
	User *User
	// Brand is shown at the top; nil for the gateway's own.
	Brand *Brand
}

// AccentStyle returns the style sheet of the brand, which is made of colours alone.
func (f Frame) AccentStyle() template.CSS { return template.CSS(f.Brand.Style()) } //nolint:gosec // of colours that were parsed

// Template is the content of a kind of page.
type Template struct {
	template *template.Template
	wide     bool
	script   string // the address of the script for times, "" for none
}

// MustParse makes a template of a page's content, which is below its heading. It panics when the content is no valid
// template.
func MustParse(content string) *Template {
	t, err := Parse(content)
	if err != nil {
		panic(err)
	}
	return t
}

// Parse makes a template of a page's content.
func Parse(content string) (*Template, error) {
	t, err := template.New("page").Parse(layout)
	if err != nil {
		return nil, fmt.Errorf("reading the layout of pages: %w", err)
	}
	if _, err := t.New("content").Parse(content); err != nil {
		return nil, fmt.Errorf("reading the content of a page: %w", err)
	}
	return &Template{template: t}, nil
}

// Wide makes room for more than a few sentences.
func (t *Template) Wide() *Template {
	t.wide = true
	return t
}

// Secure sets the headers that every answer to a browser needs: its address may carry a code or a state, and its page
// a button (RFC 9700 sections 4.2 and 4.16).
func Secure(h http.Header) { SecureForms(h, "'self'") }

// SecureForms sets the same headers as Secure, for a page whose forms lead to the given sources (CSP level 3, section
// 6.4.1); "" allows all.
func SecureForms(h http.Header, sources string) { secure(h, sources, nil) }

// Secure sets the same headers, for a page in this frame.
func (f Frame) Secure(h http.Header) { secure(h, cmp.Or(f.Forms, "'self'"), f.Brand) }

func secure(h http.Header, sources string, brand *Brand) {
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	if sources != "" {
		sources = "; form-action " + sources
	}
	h.Set("Content-Security-Policy", policy(brand)+sources)
}

// Write answers with a page of which only the title is given. When it returns an error, nothing has been written.
func (t *Template) Write(w http.ResponseWriter, status int, title string, data any) error {
	return t.WriteIn(w, status, Frame{Title: title}, data)
}

// WriteIn answers with a page in its frame. When it returns an error, nothing has been written.
func (t *Template) WriteIn(w http.ResponseWriter, status int, frame Frame, data any) error {
	body, err := t.Render(frame, data)
	if err != nil {
		return err
	}
	frame.Secure(w.Header())
	if t.script != "" {
		w.Header().Set("Content-Security-Policy", w.Header().Get("Content-Security-Policy")+"; script-src 'self'")
	}
	send(w, status, body)
	return nil
}

// Render makes a page, for callers that set its headers themselves.
func (t *Template) Render(frame Frame, data any) ([]byte, error) {
	var body bytes.Buffer
	err := t.template.Execute(&body, struct {
		Frame
		Name   string
		Wide   bool
		Script string
		Data   any
	}{frame, frame.Brand.Title(), t.wide, t.script, data})
	if err != nil {
		return nil, fmt.Errorf("making a page: %w", err)
	}
	return body.Bytes(), nil
}

func send(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// Redirect sends the browser to an address by GET. A location from a request must have been checked.
func Redirect(w http.ResponseWriter, location string) {
	Secure(w.Header())
	w.Header().Set("Location", location)
	w.WriteHeader(http.StatusSeeOther)
}
