// Package welcome tells a newcomer what runs in development mode and how to use it: the banner of `durward dev`, and the
// page at `/` of the gateway.
package welcome

import (
	_ "embed" // the texts
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/durward-gateway/durward/internal/webpage"
	"github.com/durward-gateway/durward/modules/devidp/idp"
)

// Where `durward dev` listens, and the other commands look for it, unless they are told otherwise.
const (
	DefaultListen = "127.0.0.1:8080"
	DefaultURL    = "http://" + DefaultListen
)

// Facts are what there is to tell.
type Facts struct {
	URL     string // of the gateway, without a slash at the end
	Command string // how this program is started
	// URLFlag is what the other commands must be told to find this gateway, empty when they find it by themselves.
	URLFlag string
	Data    string
	Users   []User
}

// User is somebody who can be picked on the login page.
type User struct{ Email, About string }

// New gathers the facts of the gateway at url, which keeps its files in the directory data.
func New(url, data string) Facts {
	f := Facts{URL: url, Command: command(), Data: data}
	if url != DefaultURL {
		f.URLFlag = " --url " + url
	}
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
	bannerTemplate = template.Must(template.New("banner").Parse(bannerText))

	//go:embed page.html
	pageText     string
	pageTemplate = webpage.MustParse(pageText).Wide()
)

// Banner is what is printed once the gateway runs.
func (f Facts) Banner() string {
	var text strings.Builder
	if err := bannerTemplate.Execute(&text, f); err != nil {
		return f.URL + "\n"
	}
	return text.String()
}

// ServeHTTP answers with the page.
func (f Facts) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if err := pageTemplate.Write(w, http.StatusOK, "durward is running in development mode", f); err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
	}
}

// command is what to type to start this program again: its name when a shell finds it by that, `go run` when that is how
// it was started, else its path.
func command() string {
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
