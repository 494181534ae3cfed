package rig

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Browser is a Chromium that a test drives.
type Browser struct {
	T       testing.TB // the test that drives it at present
	input   io.Writer
	answers chan Page
}

// Page is the page that the browser shows after a command.
type Page struct {
	URL        string     `json:"url"`
	Title      string     `json:"title"`
	Text       string     `json:"text"`
	Documents  []Document `json:"documents"` // all documents that it went through, redirects included
	Complaints []string   `json:"complaints"`
	Error      string     `json:"error"`
}

// Document is one document that the browser asked for.
type Document struct {
	Status  int    `json:"status"`
	Method  string `json:"method"`
	URL     string `json:"url"`
	Origin  string `json:"origin"`
	Referer string `json:"referer"`
}

// StartBrowser starts the Chromium that is installed, with an empty profile, in the time zone Asia/Tokyo.
func StartBrowser(t testing.TB) *Browser { t.Helper(); return startBrowser(t) }

// StartBrowserWithoutScripts does the work of StartBrowser for a reader who lets no page run scripts.
func StartBrowserWithoutScripts(t testing.TB) *Browser {
	t.Helper()
	return startBrowser(t, "without-scripts")
}

// Chromium returns the path of the Chromium that is installed: where there is one that has no window (Debian's
// chromium-headless-shell), that one, because a screen takes it 60 % of the processor time. DURWARD_CONSOLE=all looks with the
// whole browser.
func Chromium(t testing.TB) string {
	t.Helper()
	if os.Getenv("DURWARD_CONSOLE") != "all" {
		if path, err := exec.LookPath("chromium-headless-shell"); err == nil {
			return path
		}
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v; `make setup` installs it on Debian", err)
	}
	return path
}

func startBrowser(t testing.TB, words ...string) *Browser {
	t.Helper()
	tools := Tools(t, "browser")
	driver, err := findAbove("integration/browser/drive.mjs")
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("", "browser-") //nolint:usetesting // the browser may still write to it while it ends
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command("node", append([]string{driver, tools, Chromium(t), filepath.Join(home, "profile")}, words...)...)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "XDG_RUNTIME_DIR=" + home}
	var complaint Transcript
	command.Stderr, command.WaitDelay = &complaint, StopTimeout
	input, output := Pipes(t, command)
	b := &Browser{T: t, input: input, answers: make(chan Page)}
	go b.read(output)
	t.Cleanup(func() {
		_ = input.Close() // ends the driver, which ends the browser
		timer := time.AfterFunc(StopTimeout, func() { _ = command.Process.Kill() })
		err := command.Wait()
		timer.Stop()
		if err != nil {
			t.Errorf("the browser's driver: %v\n%s", err, complaint.String())
		}
		_ = os.RemoveAll(home)
	})
	return b
}

func (b *Browser) read(output io.Reader) {
	defer close(b.answers)
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var p Page
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			p.Error = fmt.Sprintf("%v: %s", err, lines.Bytes())
		}
		b.answers <- p
	}
}

// command gives the browser a command. A page that the browser complains about (a script, a style or a form that its
// policy forbids, a request that fails) fails the test.
func (b *Browser) command(command map[string]string) Page {
	b.T.Helper()
	encoded, err := json.Marshal(command)
	if err != nil {
		b.T.Fatal(err)
	}
	if _, err := b.input.Write(append(encoded, '\n')); err != nil {
		b.T.Fatal(err)
	}
	select {
	case p, ok := <-b.answers:
		if !ok {
			b.T.Fatalf("%v: the browser's driver has ended", command)
		}
		if p.Error != "" {
			b.T.Fatalf("%v at %s: %s\n%v\nIt shows: %s", command, p.URL, p.Error, p.Complaints, Tail(p.Text, 3_000))
		}
		if len(p.Complaints) > 0 {
			b.T.Errorf("%v: the browser complains at %s: %q", command, p.URL, p.Complaints)
		}
		return p
	case <-time.After(2 * CallTimeout):
		b.T.Fatalf("%v: the browser does not answer", command)
	}
	return Page{}
}

// Mind makes the browser's complaints fail the test on pages of one origin only: other origins' pages are not the
// gateway's.
func (b *Browser) Mind(origin string) {
	b.T.Helper()
	b.command(map[string]string{"do": "mind", "origin": origin})
}

// Open opens an address.
func (b *Browser) Open(address string) Page {
	b.T.Helper()
	return b.command(map[string]string{"do": "open", "url": address})
}

// Click clicks a button that leads to another document.
func (b *Browser) Click(name string) Page {
	b.T.Helper()
	return b.command(map[string]string{"do": "click", "name": name})
}

// Press clicks a button of a page that a script changes.
func (b *Browser) Press(name string) Page {
	b.T.Helper()
	return b.command(map[string]string{"do": "press", "name": name})
}

// Toggle clicks a switch of a page that a script changes.
func (b *Browser) Toggle(name string) Page {
	b.T.Helper()
	return b.command(map[string]string{"do": "toggle", "name": name})
}

// Pick clicks an element that shows a text, on a page that a script changes.
func (b *Browser) Pick(text string) Page {
	b.T.Helper()
	return b.command(map[string]string{"do": "pick", "text": text})
}

// Popup clicks a button that opens another tab, and goes on there.
func (b *Browser) Popup(name string) Page {
	b.T.Helper()
	return b.command(map[string]string{"do": "popup", "name": name})
}

// Leave closes a tab that Popup opened, and goes on in the one before.
func (b *Browser) Leave() Page {
	b.T.Helper()
	return b.command(map[string]string{"do": "leave"})
}

// Follow follows a link.
func (b *Browser) Follow(name string) Page {
	b.T.Helper()
	return b.command(map[string]string{"do": "follow", "name": name})
}

// Fill types into a field, which is found by its label or its placeholder.
func (b *Browser) Fill(name, text string) Page {
	b.T.Helper()
	return b.command(map[string]string{"do": "fill", "name": name, "text": text})
}

// Until waits until the page, or one that it leads on to by itself, shows a text.
func (b *Browser) Until(text string) Page {
	b.T.Helper()
	return b.command(map[string]string{"do": "until", "text": text})
}

// Inject puts scripts into the page in every way that markup allows, one of them from source, and fails the test when
// one runs.
func (b *Browser) Inject(source string) Page {
	b.T.Helper()
	return b.command(map[string]string{"do": "inject", "source": source})
}

// Picture stores a picture of the page, on a desk and on a phone, in light and in dark, in the directory
// BROWSER_PICTURES, for people.
func (b *Browser) Picture(name string) {
	b.T.Helper()
	if directory := os.Getenv("BROWSER_PICTURES"); directory != "" {
		b.command(map[string]string{"do": "picture", "path": filepath.Join(directory, name+".png")})
	}
}

// Contains fails the test unless the page shows all of the texts.
func (b *Browser) Contains(p Page, texts ...string) {
	b.T.Helper()
	for _, text := range texts {
		if !strings.Contains(p.Title+"\n"+p.Text, text) {
			b.T.Errorf("%s does not show %q: %s", p.URL, text, p.Text)
		}
	}
}
