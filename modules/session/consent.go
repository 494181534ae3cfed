package session

import (
	_ "embed" // the page
	"net/http"
	"net/url"
	"strings"

	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/modules/app/paths"
)

var (
	//go:embed consent.html
	consentText string
	consentPage = webpage.MustParse(consentText)
)

// nameless stands for a client that gave no name.
const nameless = "A client without a name"

// saysLater is the value of the button that goes on without an account at the server.
const saysLater = "later"

// consenting is a question to a user about a client.
type consenting struct {
	Client string
	// Origin is the host that stands for the client: the site of its metadata document. It is "" when nobody vouches for
	// the client's name.
	Origin string
	// Configured reports that the gateway's operator has set up the client.
	Configured bool
	// BackTo names the place to which the client is answered.
	BackTo string
	Local  bool // that is this computer
	// Server is the server's name; "" for the gateway as a whole.
	Server string
	Days   int // for which the client stays logged in at most

	Address, Form string
	// Connect is the address of the page on which the account is connected; "" when the question is about the client.
	Connect string
}

func (a *authorizing) question() consenting {
	lifetime, _ := a.oauth.Lifetimes()
	u, _ := authserver.ParseRedirect(a.asked.RedirectURI)
	q := consenting{
		Client: a.shownClient(), Origin: originOf(a.client.ID), Configured: a.oauth.Configured(a.client.ID), BackTo: a.backTo(), Local: u.Scheme != "https",
		Days: max(1, int(lifetime.Hours()/24)), Address: a.address(), Form: a.core.Logins.Browsers.FormToken(a.user.Session, a.action()),
	}
	if a.server != nil {
		q.Server = visible.Text(a.server.Name)
	}
	return q
}

// shownClient returns the client's name for the page. A name that the client gave itself stands in quotation marks: one
// such as "verified by Acme" does not read like words of the page.
func (a *authorizing) shownClient() string {
	name := strings.TrimSpace(a.client.Name)
	switch {
	case name == "":
		return nameless
	case a.oauth.Configured(a.client.ID):
		return visible.Text(name)
	}
	return "“" + visible.Text(name) + "”"
}

// ask asks the user whether the client may act for them.
func (a *authorizing) ask() {
	q := a.question()
	a.showQuestion("Let "+q.Client+" act for you?", q)
}

// offerAccount asks the user to connect the account that the server needs.
func (a *authorizing) offerAccount() {
	q := a.question()
	back := url.Values{paramReturn: {a.core.PublicURL + a.address()}}
	q.Connect = paths.ConnectPrefix + a.server.Slug + "?" + back.Encode()
	a.showQuestion("Connect your account at "+q.Server+"?", q)
}

func (a *authorizing) showQuestion(title string, q consenting) {
	frame := a.frame(title)
	// Browsers apply the policy for forms to the redirects behind them too, which lead to the client in the end.
	frame.Forms = authserver.FormSources(a.asked.RedirectURI)
	a.showIn(consentPage, http.StatusOK, frame, q)
}
