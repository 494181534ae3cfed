package session

import (
	_ "embed" // the pages
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/modules/app/paths"
)

var (
	//go:embed links.html
	linksText string
	linksPage = webpage.MustParse(linksText)

	//go:embed approvals.html
	approvalsText string
	approvalsPage = webpage.MustParse(approvalsText).Wide().Times(timesPath)

	//go:embed approval.html
	approvalText string
	approvalPage = webpage.MustParse(approvalText).Wide().Times(timesPath)
)

// timesPath is the path of the script, below the pages that use it: a Caddyfile that routes other addresses of the site
// elsewhere keeps it with the pages.
const timesPath = paths.Approvals + "/times.js"

const (
	titleLogin  = "You are not logged in"
	textPending = "Pending approvals"
	textClients = "Clients that act for you"
)

// link leads to another address of this site.
type link struct{ Address, Text string }

// show answers with a page.
func (v *visit) show(page *webpage.Template, status int, title string, data any) {
	v.showIn(page, status, v.frame(title), data)
}

func (v *visit) showIn(page *webpage.Template, status int, frame webpage.Frame, data any) {
	if err := page.WriteIn(v.w, status, frame, data); err != nil {
		v.logger.Error("making a page", zap.Error(err))
		gateway.WriteInternalError(v.w)
	}
}

// frame returns the frame around a page for the logged-in user.
func (v *visit) frame(title string) webpage.Frame {
	f := webpage.Frame{Title: title, User: v.core.Logins.PageUser(v.user), Brand: v.core.Brand}
	if v.user != nil {
		if v.core.Authorization != nil && v.app.HasConsole() {
			f.Links = append(f.Links, webpage.Link{Address: paths.Console, Text: "Console"})
		}
		f.Links = append(f.Links, webpage.Link{Address: paths.Connect, Text: "Servers"}, webpage.Link{Address: paths.Approvals, Text: textPending})
		if v.core.Authorization != nil {
			f.Links = append(f.Links, webpage.Link{Address: paths.Clients, Text: "Clients"})
		}
	}
	return f
}

// say answers with a sentence or two.
func (v *visit) say(status int, title, text string) { v.sayLink(status, title, text) }

func (v *visit) sayLink(status int, title, text string, links ...link) {
	v.show(linksPage, status, title, struct {
		Text  string
		Links []link
	}{text, links})
}

func (v *visit) unavailable() {
	gateway.SetRetryAfter(v.w)
	v.say(http.StatusServiceUnavailable, "Try again in a moment", "The gateway cannot find out what it needs to know just now.")
}

func (v *visit) now() time.Time { return time.Now() }
