package world

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
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

// pass opens an address and sends the form of each page, until there is none or the browser is at the gateway. It returns that page.
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
		if form == nil || strings.HasPrefix(response.Request.URL.String(), f.gate) {
			return string(page)
		}
		written, values := f.fill(user), make(url.Values)
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
