package house

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	fence       = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```")
	codeSpan    = regexp.MustCompile("`[^`]*`")
	linkTarget  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headingLine = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	linkText    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// TestLinks checks that links between pages lead to files and headings that are there.
func TestLinks(t *testing.T) {
	found := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text := codeSpan.ReplaceAllString(fence.ReplaceAllString(read(t, path), ""), "")
		for _, link := range linkTarget.FindAllStringSubmatch(text, -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			found++
			checkLink(t, path, link[1])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 100 {
		t.Errorf("found %d links only: how they are written has changed", found)
	}
}

func checkLink(t *testing.T, page, link string) {
	t.Helper()
	name, anchor, _ := strings.Cut(link, "#")
	target := page
	if name != "" {
		target = filepath.Join(filepath.Dir(page), name)
	}
	if _, err := os.Stat(target); err != nil {
		t.Errorf("%s: %s leads nowhere", page, link)
		return
	}
	if anchor != "" && !anchors(read(t, target))[anchor] {
		t.Errorf("%s: %s leads to no heading", page, link)
	}
}

// anchors returns the names that GitHub gives the headings of a page.
func anchors(text string) map[string]bool {
	names := make(map[string]bool)
	for _, heading := range headingLine.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		plain := linkText.ReplaceAllString(heading[1], "$1")
		name := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(plain)), ""), " ", "-")
		base := name
		for n := 1; names[name]; n++ {
			name = base + "-" + strconv.Itoa(n)
		}
		names[name] = true
	}
	return names
}
