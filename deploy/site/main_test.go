package main

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var hrefs = regexp.MustCompile(`(?:href|src)="([^"]+)"`)

// TestSite checks that the site of this checkout has a page for each Markdown file, that every link of it leads somewhere, and
// that each page is at most two clicks away from the first. It follows links as a browser does.
func TestSite(t *testing.T) {
	out := t.TempDir()
	if err := run("../..", out); err != nil {
		t.Fatal(err)
	}
	s, err := load("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.pages) < 30 {
		t.Errorf("%d pages", len(s.pages))
	}
	clicks := map[string]int{"index.html": 0}
	waiting := []string{"index.html"}
	ids := func(file string) string {
		content, err := os.ReadFile(filepath.Join(out, file))
		if err != nil {
			t.Errorf("%s is not there", file)
		}
		return string(content)
	}
	for len(waiting) > 0 {
		here := waiting[0]
		waiting = waiting[1:]
		for _, found := range hrefs.FindAllStringSubmatch(ids(here), -1) {
			to, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			there := path.Join(path.Dir(here), to)
			if to == "" {
				there = here
			}
			text := ids(there)
			if anchor != "" && !strings.Contains(text, ` id="`+anchor+`"`) {
				t.Errorf("%s: %s leads to no heading", here, found[1])
			}
			if _, seen := clicks[there]; !seen && strings.HasSuffix(there, ".html") {
				clicks[there] = clicks[here] + 1
				waiting = append(waiting, there)
			}
		}
	}
	for _, p := range s.pages {
		if n, ok := clicks[p.address]; !ok || n > 2 {
			t.Errorf("%s is %d clicks away, or cannot be reached", p.address, n)
		}
		if p.title == "" {
			t.Errorf("%s has no title", p.source)
		}
	}
	var index []entry
	text := strings.TrimSuffix(strings.TrimPrefix(ids("index.js"), "window.searchIndex = "), ";\n")
	if err := json.Unmarshal([]byte(text), &index); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, e := range index {
		found = found || e.Page == "Releasing" && e.Heading == "The same bytes" && strings.Contains(e.Text, "make release-twice") && e.Address == "docs/releasing.html#the-same-bytes"
	}
	if !found || len(index) < 200 {
		t.Errorf("the search has %d sections, or lacks one", len(index))
	}
}

// TestWrongLinks checks that a link that leads nowhere ends the making of a site.
func TestWrongLinks(t *testing.T) {
	for name, wrong := range map[string]string{"no page": "[a](other.md)", "no heading": "[a](#other)", "no file": "[a](../Makefile)"} {
		root := t.TempDir()
		if err := os.Mkdir(filepath.Join(root, "docs"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, contents), []byte("# Docs\n\n"+wrong+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run(root, filepath.Join(root, "out")); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
