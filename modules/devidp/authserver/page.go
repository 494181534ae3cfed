package authserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/durward-gateway/durward/internal/loopback"
)

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.4rem}dt{font-weight:600}dd{margin:0 0 .5rem;overflow-wrap:anywhere}
button{display:block;width:100%;margin:.4rem 0;padding:.6rem;font:inherit;text-align:left;border:1px solid #888;border-radius:.4rem;background:#f6f8fa;cursor:pointer}
input{font:inherit;padding:.5rem;width:100%;box-sizing:border-box}
.no{background:#fff;color:#a40e26}.note{color:#57606a;font-size:.9rem}`

// layout is the login and consent page. Its fields are what programs that follow it rely on: see Server.Authorize.
const layout = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{{.Title}}</title><style>` + style + `</style></head>
<body><h1>{{.Title}}</h1>
<dl><dt>Client</dt><dd>{{if .ClientName}}{{.ClientName}} ({{.ClientID}}){{else}}{{.ClientID}}{{end}}</dd>
<dt>You return to</dt><dd>{{.RedirectHost}}</dd>
<dt>It asks for</dt><dd>{{range $i, $s := .Scopes}}{{if $i}}, {{end}}{{$s}}{{else}}nothing in particular{{end}}</dd>
{{with .Targets}}<dt>To be used at</dt><dd>{{range $i, $t := .}}{{if $i}}<br>{{end}}{{$t}}{{end}}</dd>{{end}}</dl>
<form method="post" action="{{.Action}}"><input type="hidden" name="ticket" value="{{.Ticket}}">
{{template "pick" .Data}}
<button class="no" name="deny" value="1" formnovalidate>Do not allow</button></form>
<p class="note">For development only: nobody is asked for a password.</p></body></html>
`

const failure = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Sign-in failed</title><style>` + style + `</style></head>
<body><h1>This sign-in cannot go on</h1><p>{{.}}</p></body></html>
`

var (
	failurePage = template.Must(template.New("failure").Parse(failure))
	styleHash   = func() string {
		sum := sha256.Sum256([]byte(style))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}()
)

// prompt is what the login page shows.
type prompt struct {
	Title, ClientName, ClientID, RedirectHost string
	Scopes, Targets                           []string
	Action, Ticket                            string
	Data                                      any
}

func parsePage(pick string) (*template.Template, error) {
	page, err := template.New("page").Parse(layout)
	if err != nil {
		return nil, fmt.Errorf("parsing login page: %w", err)
	}
	if _, err := page.New("pick").Parse(pick); err != nil {
		return nil, fmt.Errorf("parsing login page: %w", err)
	}
	return page, nil
}

// render answers with a page that runs no script, loads nothing and is framed by nobody. formTo is where the form may
// lead, redirects included, because browsers apply form-action to them as well.
func render(w http.ResponseWriter, status int, page *template.Template, data any, formTo string) {
	var b bytes.Buffer
	if err := page.Execute(&b, data); err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src "+styleHash+"; base-uri 'none'; frame-ancestors 'none'"+formTo)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	// Not no-referrer: with it browsers send "Origin: null" with the form, which is indistinguishable from a sandboxed frame.
	h.Set("Referrer-Policy", "same-origin")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// formAction is the directive that lets the form lead to redirect, and onwards on this machine. An IPv6 address cannot be
// written in a policy, so there the directive is left out.
func formAction(redirect string) string {
	u, err := url.Parse(redirect)
	if err != nil || strings.Contains(u.Host, "[") {
		return ""
	}
	own := ""
	if !loopback.IsHost(u.Host) {
		own = " " + u.Scheme + "://" + u.Host
	}
	return "; form-action 'self' http://localhost:* http://127.0.0.1:*" + own
}

func fail(w http.ResponseWriter, status int, text string) { render(w, status, failurePage, text, "") }
