// Package errorpage shows errors of the gateway to people with a browser as pages. Programs get them as JSON.
package errorpage

import (
	"bytes"
	_ "embed" // the page
	"encoding/json"
	"net/http"
	"strings"

	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/gateway"
)

var (
	//go:embed errorpage.html
	errorText string
	errorPage = webpage.MustParse(errorText)
)

// maxErrorBody is the limit for the bodies of errors that are shown as pages. The gateway's own errors have a sentence
// or two.
const maxErrorBody = 16 << 10

// ForBrowser returns a writer that shows errors of the gateway to a browser as pages, and a function that must be
// called once the request is answered. Requests of programs keep their writer, and so do requests that have such a
// writer already. The brand is shown on the pages.
func ForBrowser(w http.ResponseWriter, r *http.Request, brand *webpage.Brand) (http.ResponseWriter, func()) {
	if !Navigates(r) {
		return w, func() {}
	}
	if _, already := w.(*errorPages); already {
		return w, func() {}
	}
	p := &errorPages{ResponseWriter: w, brand: brand}
	return p, p.finish
}

// errorPages holds back errors in JSON until they are complete.
type errorPages struct {
	http.ResponseWriter
	brand  *webpage.Brand
	status int // of an error that is held back
	body   bytes.Buffer
}

// Unwrap is for http.ResponseController.
func (p *errorPages) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// WriteHeader holds an error in JSON back, and passes everything else on.
func (p *errorPages) WriteHeader(status int) {
	if p.status != 0 {
		return
	}
	if status >= http.StatusBadRequest && p.Header().Get("Content-Type") == "application/json" {
		p.status = status
		return
	}
	p.ResponseWriter.WriteHeader(status)
}

func (p *errorPages) Write(data []byte) (int, error) {
	switch {
	case p.status == 0:
		return p.ResponseWriter.Write(data)
	case p.body.Len()+len(data) > maxErrorBody:
		p.asItIs()
		return p.ResponseWriter.Write(data)
	}
	return p.body.Write(data)
}

// asItIs passes on the held-back bytes unchanged.
func (p *errorPages) asItIs() {
	p.ResponseWriter.WriteHeader(p.status)
	_, _ = p.ResponseWriter.Write(p.body.Bytes())
	p.status = 0
}

// finish shows the error that was held back. A body that is not a service error of the gateway is passed on unchanged.
func (p *errorPages) finish() {
	if p.status == 0 {
		return
	}
	var refusal gateway.ServiceError
	if json.Unmarshal(p.body.Bytes(), &refusal) != nil || refusal.Message == "" || refusal.Details != nil {
		p.asItIs()
		return
	}
	status := p.status
	p.status = 0
	title, advice := explain(status)
	message := visible.Text(refusal.Message)
	if !strings.HasSuffix(message, ".") {
		message += "."
	}
	err := errorPage.WriteIn(p.ResponseWriter, status, webpage.Frame{Title: title, Brand: p.brand}, struct {
		Message, Advice, Name string
		Status                int
	}{message, advice, string(refusal.Name), status})
	if err != nil {
		p.status = status
		p.asItIs()
	}
}

// explain returns the meaning of a status in words for people, and advice on how to go on.
func explain(status int) (title, advice string) {
	switch {
	case status == http.StatusUnauthorized:
		return "This address is for programs", "Programs show an access token or an API key here. Being logged in with a browser is not enough, and a browser is not needed. If you looked for a page, there is a mistake in the address."
	case status == http.StatusForbidden:
		return "You may not do this", "Ask whoever runs this gateway when you think that you should."
	case status == http.StatusNotFound:
		return "There is no such page", "Look for a mistake in the address, or go on from the front page."
	case status == http.StatusMethodNotAllowed:
		return "This page is not opened like this", "Go back, and try what you did once more."
	case status == http.StatusTooManyRequests:
		return "Too much at once", "Wait a minute, and open the page again."
	case status >= http.StatusInternalServerError:
		return "The gateway cannot do this at the moment", "Try again in a moment. When it stays like this, tell whoever runs this gateway: its log says why."
	}
	return "This cannot be done", "Go back, and try what you did once more."
}
