package oauthserver

import (
	"net/http"

	"github.com/durward-gateway/durward/internal/api/webpage"
)

// content is the login and consent page. Programs that follow it rely on its fields: see Server.Authorize.
const content = `<p><strong>{{if .ClientName}}{{.ClientName}}{{else}}{{.ClientID}}{{end}}</strong> asks to act for you. Nobody is asked for a password: this is for development only.</p>
<form method="post" action="{{.Action}}"><input type="hidden" name="ticket" value="{{.Ticket}}">
{{template "pick" .Data}}
<p><button class="quiet" name="deny" value="1" formnovalidate>Do not allow</button></p></form>
<h2>What it gets</h2>
<dl>{{if .ClientName}}<dt>Client</dt><dd>{{.ClientID}}</dd>{{end}}
<dt>You return to</dt><dd>{{.RedirectHost}}</dd>
<dt>It asks for</dt><dd>{{range $i, $s := .Scopes}}{{if $i}}, {{end}}{{$s}}{{else}}nothing in particular{{end}}</dd>
{{with .Targets}}<dt>To be used at</dt><dd>{{range $i, $t := .}}{{if $i}}<br>{{end}}{{$t}}{{end}}</dd>{{end}}</dl>
`

var failurePage = webpage.MustParse(`<p>{{.}}</p>`)

// prompt holds the contents of the login page.
type prompt struct {
	ClientName, ClientID, RedirectHost string
	Scopes, Targets                    []string
	Action, Ticket                     string
	Data                               any
}

func parsePage(pick string) (*webpage.Template, error) {
	return webpage.Parse(content + `{{define "pick"}}` + pick + `{{end}}`)
}

// render answers with a page that runs no script, loads nothing and cannot be framed. formTo is the address to which
// the form may lead, redirects included, because browsers apply form-action to them as well; "" for anywhere.
func (s *Server) render(w http.ResponseWriter, status int, page *webpage.Template, title string, data any, formTo string) {
	body, err := page.Render(webpage.Frame{Title: title, Site: s.config.Site}, data)
	if err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	webpage.SecureForms(h, formTo)
	h.Set("Content-Type", "text/html; charset=utf-8")
	// Not no-referrer: with it browsers send "Origin: null" with the form, which is indistinguishable from a sandboxed frame.
	h.Set("Referrer-Policy", "same-origin")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func (s *Server) fail(w http.ResponseWriter, status int, text string) {
	s.render(w, status, failurePage, "This sign-in cannot go on", text, "'self'")
}
