package devmode

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
)

// Banner is what is printed once the gateway runs.
type Banner struct {
	URL     string // of the gateway, without a slash at the end
	Command string // how this program is started, see Command
	// URLFlag is what the other commands must be told to find this gateway, empty when they find it by themselves.
	URLFlag string
	Data    string
	Users   []User
}

// User is somebody who can be picked on the login page.
type User struct{ Email, About string }

//go:embed banner.txt
var bannerText string

var bannerTemplate = template.Must(template.New("banner").Parse(bannerText))

// String is the banner's text.
func (b Banner) String() string {
	var text strings.Builder
	if err := bannerTemplate.Execute(&text, b); err != nil {
		return b.URL + "\n"
	}
	return text.String()
}

// Command is what to type to start this program again: its name when a shell finds it by that, `go run` when that is how
// it was started, else its path.
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
