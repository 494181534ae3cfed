package world

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

var (
	pageForm  = regexp.MustCompile(`(?s)<form([^>]*)>(.*?)</form>`)
	formField = regexp.MustCompile(`<input[^>]*>`)
	attribute = regexp.MustCompile(`([a-z]+)="([^"]*)"`)
)

// attributes reads the attributes of a tag.
func attributes(tag []byte) map[string]string {
	found := make(map[string]string)
	for _, pair := range attribute.FindAllSubmatch(tag, -1) {
		found[string(pair[1])] = html.UnescapeString(string(pair[2]))
	}
	return found
}

// forms holds the login pages of an identity provider.
type forms struct {
	gate string                              // the gate, whose own pages are none of them
	fill func(user string) map[string]string // the user's input, by the names of fields
}

// pass opens an address and sends the form of each page, until there is none or the browser is at one of the gateway's pages
// that asks nothing. It returns that page.
func (f forms) pass(t testing.TB, browser *http.Client, address, user string) string {
	t.Helper()
	response, err := browser.Get(address)
	for range 8 {
		if err != nil {
			t.Fatal(err)
		}
		page, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		form := pageForm.FindSubmatch(page)
		written, values := f.fill(user), make(url.Values)
		if strings.HasPrefix(response.Request.URL.String(), f.gate) {
			if form = question(page); form != nil {
				values.Set("decision", "approve")
			}
		}
		if form == nil {
			return string(page)
		}
		for _, tag := range formField.FindAll(form[2], -1) {
			field := attributes(tag)
			if value, asked := written[field["name"]]; asked {
				values.Set(field["name"], value)
			} else if field["type"] == "hidden" {
				values.Set(field["name"], field["value"])
			}
		}
		to, problem := response.Request.URL.Parse(attributes(form[1])["action"])
		if problem != nil {
			t.Fatal(problem)
		}
		response, err = browser.PostForm(to.String(), values)
	}
	t.Fatal("the login does not end")
	return ""
}

// question returns the form of a page of the gateway's that asks about a client; nil: it asks nothing.
func question(page []byte) [][]byte {
	for _, form := range pageForm.FindAllSubmatch(page, -1) {
		if strings.HasPrefix(attributes(form[1])["action"], "/oauth/authorize") {
			return form
		}
	}
	return nil
}

// letsIn checks that a client which is given the address of a server alone logs a user in at the gateway, and calls a tool. The
// identity provider knows no client but the gateway.
func (f forms) letsIn(t *testing.T, user string) {
	t.Helper()
	for _, name := range []string{"sdk 1", "sdk 2", "mcp-remote", "@ai-sdk/mcp", "mcp-use"} {
		if form == short && name != "sdk 1" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			jar, err := cookiejar.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			plan := object{"url": f.gate + "/mcp/everything", "modules": filepath.Dir(module(t, "x")), "tool": "echo", "arguments": object{"message": "hello"}}
			var opened []string
			got := newcomer{name: name}.contact(t, plan, func(address string) {
				opened = append(opened, address)
				f.pass(t, &http.Client{Jar: jar}, address, user)
			})
			if len(opened) != 1 || !strings.HasPrefix(opened[0], f.gate+"/oauth/authorize?") || !strings.Contains(got.Result, "Echo: hello") {
				t.Errorf("the user was led to %q, and the client says %s", opened, got.Result)
			}
		})
	}
}

// browse logs a user in for login.mjs.
func (f forms) browse(g *guide, browser *http.Client, address, user string) {
	g.t.Helper()
	if page := f.pass(g.t, browser, address, user); !strings.Contains(page, "You are logged in") {
		g.t.Fatalf("the login ends on %s", rig.Tail(page, 2_000))
	}
}

// visit logs a user in at the gateway's own pages, which show who it is.
func (f forms) visit(t testing.TB, user, shown string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	if page := f.pass(t, &http.Client{Jar: jar}, f.gate+"/approvals", user); !strings.Contains(page, shown) {
		t.Errorf("the login leads to %s", rig.Tail(page, 3_000))
	}
}
