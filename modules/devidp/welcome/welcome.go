// Package welcome explains to a newcomer the running services of development mode and their use: the banner of `durward
// dev`, and the page at `/` of the gateway.
package welcome

import (
	"context"
	_ "embed" // the texts
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/durward-gateway/durward/internal/api/snippets"
	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/modules/devidp/idp"
)

// This is the address on which `durward dev` listens, and at which the other commands look for it, unless they are told
// otherwise.
const (
	DefaultListen = "127.0.0.1:8080"
	DefaultURL    = "http://" + DefaultListen
)

// Facts holds the facts for the banner and the page.
type Facts struct {
	URL     string // of the gateway, without a slash at the end
	Command string // the command that starts this program
	// URLFlag is the flag that other commands need to find this gateway, empty when they find it by themselves.
	URLFlag string
	Data    string
	Users   []User
	// Snippets holds the settings that tell each MCP client about the demo server.
	Snippets []snippets.Snippet
}

// Snippet returns the first of the snippets.
func (f Facts) Snippet() snippets.Snippet { return f.Snippets[0] }

// URLFlag returns the flag by which other commands find the gateway at url.
func URLFlag(url string) string {
	if url == DefaultURL {
		return ""
	}
	return " --url " + url
}

// User is a person who can be picked on the login page.
type User struct{ Email, About string }

// New gathers the facts of the gateway at url, which keeps its files in the directory data.
func New(url, data string) Facts {
	f := Facts{URL: url, Command: Command(), URLFlag: URLFlag(url), Data: data, Snippets: snippets.For(url+"/mcp/demo", "demo")}
	for _, user := range idp.Users() {
		about := "organization " + user.Organization
		if len(user.Roles) > 0 {
			about += ", role " + strings.Join(user.Roles, ", ")
		}
		if len(user.Groups) > 0 {
			about += ", group " + strings.Join(user.Groups, ", ")
		}
		f.Users = append(f.Users, User{Email: user.Email, About: about})
	}
	return f
}

var (
	//go:embed banner.txt
	bannerText     string
	bannerTemplate = map[bool]*template.Template{true: parseBanner(true), false: parseBanner(false)}

	//go:embed page.html
	pageText     string
	pageTemplate = webpage.MustParse(pageText).Wide()
)

// parseBanner reads the banner's text, in colour or without. All text in it is the program's own.
func parseBanner(colour bool) *template.Template {
	paint := func(code string) func(string) string {
		return func(text string) string {
			if !colour {
				return text
			}
			return "\x1b[" + code + "m" + text + "\x1b[0m"
		}
	}
	return template.Must(template.New("banner").Funcs(template.FuncMap{"bold": paint("1"), "link": paint("36"), "faint": paint("2")}).Parse(bannerText))
}

// Banner returns the text that is printed once the gateway runs: one screen, for a terminal in colour or for anything else.
func (f Facts) Banner(colour bool) string {
	var text strings.Builder
	if err := bannerTemplate[colour].Execute(&text, f); err != nil {
		return f.URL + "\n"
	}
	return text.String()
}

type readerKey struct{}

type reader struct {
	user  *webpage.User
	brand *webpage.Brand
}

// For returns a request for the page with the user who is logged in, nil for nobody, and the brand at its top.
func For(r *http.Request, user *webpage.User, brand *webpage.Brand) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), readerKey{}, reader{user, brand}))
}

// ServeHTTP answers with the page.
func (f Facts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reads, _ := r.Context().Value(readerKey{}).(reader)
	frame := webpage.Frame{Title: "durward is running in development mode", User: reads.user, Brand: reads.brand, Links: []webpage.Link{{Address: "/connect", Text: "Servers"}, {Address: "/approvals", Text: "Pending approvals"}}}
	page := struct {
		Facts
		Reader string // "": nobody is logged in
	}{Facts: f}
	if reads.user != nil {
		page.Reader = reads.user.Name
	}
	if err := pageTemplate.WriteIn(w, http.StatusOK, frame, page); err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
	}
}

// Command returns the words that start this program again: its name when a shell finds it by that, `go run` when it was
// started in that way, otherwise its path.
func Command() string {
	started := os.Args[0]
	name := filepath.Base(started)
	if strings.Contains(filepath.ToSlash(started), "/go-build") {
		return "go run ./cmd/durward"
	}
	if _, err := exec.LookPath(name); err == nil {
		return name
	}
	return started
}
