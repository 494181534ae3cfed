package integration

import (
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// drawing is a logo with all that must not run when somebody opens its address.
const drawing = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 24" onload="ran(3)"><rect width="64" height="24" rx="5" fill="#d9480f"/><path fill="#fff" d="M10 18 16 6l6 12z"/></svg>`

// brandedConfig writes the configuration of a gateway in development mode with a branding block.
func brandedConfig(t *testing.T, h devHome, port, branding string) string {
	t.Helper()
	config := h.file("branded.caddyfile")
	text := fmt.Sprintf("{\n\tadmin unix/%[1]s/admin.sock\n\tpersist_config off\n\tlog {\n\t\toutput durward\n\t}\n\tdurward {\n\t\tpublic_url http://127.0.0.1:%[2]s\n"+
		"\t\tstore sqlite %[1]s/data/durward.db\n\t\tidentity dev\n\t\tbranding {\n%[3]s\n\t\t}\n\t}\n}\n\nhttp://127.0.0.1:%[2]s {\n\tbind 127.0.0.1\n\tdurward\n}\n", h.path, port, branding)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// TestBranding checks that each kind of page and the console show the operator's name, logo and colour, and nothing of
// durward's own, under policies that allow no more than before.
func TestBranding(t *testing.T) {
	t.Parallel()
	h, port := newDevHome(t), freePort(t)
	logo := h.file("logo.txt") // its name says nothing
	if err := os.WriteFile(logo, []byte(drawing), 0o600); err != nil {
		t.Fatal(err)
	}
	const name = `Acme & "Söhne"`
	config := brandedConfig(t, h, port, "\t\t\tname `"+name+"`\n\t\t\tlogo "+logo+"\n\t\t\taccent ffd43b")
	d := &dev{home: h, url: "http://127.0.0.1:" + port, process: startProcess(t, h.path, nil, durward(t), "run", "--config", config)}
	d.process.waitFor(t, d.url+"/readyz")

	nobody := consoleVisit{d, newClient(t)}
	alice := d.logsIn(t, "/console")
	picture := "data:image/svg&#43;xml;base64," + base64.StdEncoding.EncodeToString([]byte(drawing))
	for path, v := range map[string]consoleVisit{
		"/": nobody, "/login/callback?error=access_denied": nobody, "/oauth/authorize": alice, "/nothing/here": nobody,
		"/api/oauth/callback?state=none": nobody, "/connect": alice, "/approvals": alice, "/approvals/none": alice, "/clients": alice, "/docs": nobody,
	} {
		response, page := v.send(t, http.MethodGet, path, map[string]string{"Accept": "text/html", "Sec-Fetch-Mode": "navigate"})
		if !strings.Contains(page, ` · `+html.EscapeString(name)+`</title>`) || strings.Count(page, `<img src="`+picture+`" alt="">`) != 1 || strings.Contains(page, "· durward</title>") {
			t.Errorf("%s (%s) does not show the brand: %s", path, response.Status, page[:min(len(page), 800)])
		}
		policy := response.Header.Get("Content-Security-Policy")
		if strings.Count(policy, "'sha256-") != 2 || !strings.Contains(policy, "; img-src data:;") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: the policy is %s", path, policy)
		}
	}

	response, page := alice.send(t, http.MethodGet, "/console", nil)
	if got := response.Header.Get("Content-Security-Policy"); got != consolePolicy {
		t.Errorf("the console's policy is %s", got)
	}
	address := regexp.MustCompile(`<meta name="brand" content="Acme &amp; &#34;Söhne&#34;" data-logo="(/console/assets/logo\.[0-9a-f]{12}\.svg)">`).FindStringSubmatch(page)
	style := regexp.MustCompile(`<link rel="stylesheet" href="(/console/assets/brand\.[0-9a-f]{12}\.css)">`).FindStringSubmatch(page)
	if address == nil || style == nil {
		t.Fatalf("the console's page: %s", page)
	}
	response, body := nobody.send(t, http.MethodGet, address[1], nil)
	for header, want := range map[string]string{
		"Content-Type": "image/svg+xml", "X-Content-Type-Options": "nosniff", "Cache-Control": "public, max-age=31536000, immutable", "Cross-Origin-Resource-Policy": "same-origin",
		"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox",
	} {
		if got := response.Header.Get(header); got != want || body != drawing {
			t.Errorf("the logo has %s: %s\n%s", header, got, body)
		}
	}
	if response, body := nobody.send(t, http.MethodGet, style[1], nil); response.Header.Get("Content-Type") != "text/css; charset=utf-8" || !strings.Contains(body, "--accent: light-dark(") {
		t.Errorf("the style: %v %s", response.Header, body)
	}

	l := startLooker(t, d.url)
	l.do("login", "user", clientUser, "path", "/console/keys")
	l.do("branded", "name", name, "logo", address[1])
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{0, 320} {
			l.do("screen", "path", "/console/keys", "scheme", scheme, "width", width, "picture", l.picture(fmt.Sprintf("brand-%s-%d", scheme, width)))
			for i, path := range []string{"/clients", "/connect", "/nothing/here"} {
				l.do("plain", "path", path, "scheme", scheme, "width", width, "picture", l.picture(fmt.Sprintf("brand-page-%d-%s-%d", i, scheme, width)))
			}
		}
	}
	l.do("drawing", "path", address[1])
	d.process.stop(t)
}

// TestBrandingRefused checks that a logo that is none stops the start, with the place of the block.
func TestBrandingRefused(t *testing.T) {
	t.Parallel()
	h := newDevHome(t)
	page := h.file("logo.svg") // its name says a picture, and its content does not
	if err := os.WriteFile(page, []byte("<html><script>1</script></html>"), 0o600); err != nil {
		t.Fatal(err)
	}
	for says, logo := range map[string]string{
		"neither PNG nor WebP":      page,
		"no such file or directory": h.file("none.png"),
		"has to be base64":          "data:image/png,x",
		"is a directory":            h.path,
	} {
		config := brandedConfig(t, h, freePort(t), "\t\t\tlogo "+logo)
		command := exec.CommandContext(within(t, startTimeout), durward(t), "validate", "--config", config)
		command.Env = h.environment()
		output, err := command.CombinedOutput()
		if err == nil || !strings.Contains(string(output), filepath.Base(config)+":11: branding: logo: ") || !strings.Contains(string(output), says) {
			t.Errorf("%s: %v\n%s", logo, err, output)
		}
	}
}

// TestConsoleTheme checks that the reader's choice of colours holds from the first thing that is drawn, whatever the system's
// are, and can be taken back.
func TestConsoleTheme(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	l := startLooker(t, d.url)
	const path, light, dark = "/console/settings", "rgb(244, 245, 248)", "rgb(15, 19, 26)"
	l.do("login", "user", "admin@example.test", "path", path)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{0, 390} {
			l.do("screen", "path", path, "scheme", scheme, "width", width, "picture", l.picture(fmt.Sprintf("settings-%s-%d", scheme, width)))
		}
	}
	l.do("themed", "path", path, "system", "light", "want", light)
	l.do("themed", "path", path, "system", "dark", "want", dark)
	for _, step := range []struct{ choose, system, want string }{{"Dark", "light", dark}, {"Light", "dark", light}, {"As the system", "dark", dark}} {
		l.do("screen", "path", path, "scheme", step.system)
		l.do("choose", "label", step.choose)
		l.do("themed", "path", path, "system", step.system, "want", step.want)
		l.do("screen", "path", path, "scheme", step.system)
	}
	d.process.stop(t)
}
