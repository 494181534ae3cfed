package session

import (
	_ "embed" // the pages
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/internal/api/snippets"
	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

var (
	//go:embed front.html
	frontText string
	frontPage = webpage.MustParse(frontText).Wide()

	//go:embed server.html
	serverText string
	serverPage = webpage.MustParse(serverText).Wide()
)

const (
	// shownServers is the number of servers in the list on the front page.
	shownServers = 100
	// shownText is the length of a server's name or description that is shown, in bytes.
	shownText = 1 << 10
)

// shownServer is a server in the form of its page. Hidden characters in its names are made visible.
type shownServer struct {
	Name, Slug, Description string
	// These are addresses. Disconnect is "" when nothing is stored.
	Page, Connect, Disconnect string
	NeedsAccount, Connected   bool
	// Failing reports that the last try of the server failed. Why contains facts about the network, and is for
	// administrators.
	Failing bool
}

func (v *visit) describeServer(s storage.ServerView) shownServer {
	name, _ := visible.Cut(s.Name, shownText)
	description, _ := visible.Cut(s.Entry.Description, shownText)
	shown := shownServer{
		Name: name, Slug: s.Slug, Description: description, Page: paths.MCPPrefix + s.Slug, Connect: paths.ConnectPrefix + s.Slug,
		NeedsAccount: connection.NeedsAccount(&s.Entry), Connected: s.ConnectionStatus == storage.ConnectionConnected, Failing: s.LastError != "",
	}
	if shown.NeedsAccount && (shown.Connected || s.ConnectionStatus == storage.ConnectionError) {
		shown.Disconnect = shown.Connect + "?" + paramDisconnect + "=1"
	}
	return shown
}

func (v *visit) servers(name string, limit int) (storage.Page[storage.ServerView], error) {
	return v.core.Store.Servers(v.r.Context(), storage.ServerFilter{
		OrganizationID: v.user.OrganizationID, UserID: v.user.UserID, Slug: name, Now: v.now(), Page: storage.PageRequest{Number: 1, Limit: limit},
	})
}

// list shows the front page of the logged-in user, at an address that has no other page.
func (v *visit) list() {
	if v.loggedIn() {
		v.front()
	}
}

// front shows the page for a browser that opens the gateway's address.
func (v *visit) front() {
	page := struct {
		LoggedIn, Login bool
		Address         string
		Servers         []shownServer
		More            int
	}{LoggedIn: v.user != nil, Login: len(v.core.Logins.Issuers()) > 0, Address: v.core.PublicURL + paths.MCPPrefix}
	title := "A gateway for MCP servers"
	if v.user != nil {
		title = "Your MCP servers"
		found, err := v.servers("", shownServers)
		if err != nil {
			v.core.LogFailure(v.logger, "listing servers", err)
			v.unavailable()
			return
		}
		for i := range found.Items {
			page.Servers = append(page.Servers, v.describeServer(found.Items[i]))
		}
		page.More = found.Total - len(found.Items)
	}
	v.show(frontPage, http.StatusOK, title, page)
}

// server shows the page for a browser that opens the address of an MCP server. For a visitor who is not logged in it is
// the same for every name, and made without a look-up: it does not tell which servers exist.
func (v *visit) server(name string) {
	page := struct {
		shownServer
		Address, Log string
		Snippets     []snippets.Snippet
	}{Address: v.core.PublicURL + paths.MCPPrefix + name}
	page.Snippets = snippets.For(page.Address, name)
	if v.user == nil {
		if len(v.core.Logins.Issuers()) > 0 {
			page.Log = loginAddress(v.r.URL.Path)
		}
		// Programs that claim to read HTML find here the address for logging in, as they do without that claim.
		v.core.Challenge(v.r.URL.Path, false).SetHeader(v.w.Header())
		v.show(serverPage, http.StatusUnauthorized, "Add this address to your MCP client", page)
		return
	}
	found, err := v.servers(name, 1)
	switch {
	case err != nil && !errors.Is(err, storage.ErrNotFound):
		v.core.LogFailure(v.logger, "looking up a server", err)
		v.unavailable()
		return
	case err != nil || len(found.Items) == 0:
		v.sayLink(http.StatusNotFound, "There is no such server", "Your organization has no server of that name.", link{paths.Connect, "Your MCP servers"})
		return
	}
	page.shownServer = v.describeServer(found.Items[0])
	frame := v.frame(page.Name)
	frame.Back = webpage.Link{Address: paths.Front, Text: "Front page"}
	v.showIn(serverPage, http.StatusOK, frame, page)
}

// opensServer returns the name of the MCP server whose address a browser opens.
func opensServer(path string) (string, bool) {
	name, ok := strings.CutPrefix(path, paths.MCPPrefix)
	return name, ok && slug.Valid(name)
}

func loginAddress(back string) string {
	return paths.Login + "?" + url.Values{"return": {back}}.Encode()
}
