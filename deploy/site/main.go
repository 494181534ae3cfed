// Command site makes a web site of the repository's pages: one page for each Markdown file, a list of all pages on each of
// them, and a search that works without a server. It is a module of its own, so that nothing of it is linked into the gateway.
// `make docs-site` runs it.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	root := flag.String("root", "../..", "the checkout")
	out := flag.String("out", "../../bin/site", "the `directory` to write to, which is emptied")
	flag.Parse()
	if err := run(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

// contents is the page that orders the others, in a table whose bold rows are headings.
const contents = "docs/README.md"

//go:embed assets/page.html
var pageText string

//go:embed assets/style.css
var style []byte

//go:embed assets/search.js
var search []byte

var layout = template.Must(template.New("page").Parse(pageText))

func run(root, out string) error {
	s, err := load(root)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	files := map[string][]byte{"style.css": style, "search.js": search}
	var entries []entry
	for _, p := range s.pages {
		text, err := s.render(p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.source, err)
		}
		files[p.address] = text
		entries = append(entries, p.entries...)
	}
	index, err := json.Marshal(entries)
	if err != nil {
		return err
	}
	// A script, not JSON: pages that are opened from a disk may load no other file.
	files["index.js"] = slices.Concat([]byte("window.searchIndex = "), index, []byte(";\n"))
	for name, content := range files {
		file := filepath.Join(out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // everybody may read the site
			return err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil { //nolint:gosec // as above
			return err
		}
	}
	return nil
}

// site holds all pages, in the order of their sources' names.
type site struct {
	root     string
	pages    []*page
	bySource map[string]*page
	sections []section
}

// section is a part of the list of pages.
type section struct {
	Title string
	Links []link
}

type link struct{ Address, Title string }

// leftOut lists folders of what others wrote and of what is made.
var leftOut = []string{".git", ".github", "bin", "node_modules", ".cache", "testdata", "third-party"}

// load reads all pages of a checkout.
func load(root string) (*site, error) {
	s := &site{root: root, bySource: make(map[string]*page)}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(leftOut, entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(file) != ".md":
			return nil
		}
		source, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(file) //nolint:gosec // a checkout of one's own
		if err != nil {
			return err
		}
		p := parse(filepath.ToSlash(source), text)
		s.pages, s.bySource[p.source] = append(s.pages, p), p
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, p := range s.pages {
		if err := s.resolve(p); err != nil {
			return nil, fmt.Errorf("%s: %w", p.source, err)
		}
	}
	return s, s.order()
}

var (
	sectionRow = regexp.MustCompile(`^\| \*\*(.+)\*\* \|`)
	linkInRow  = regexp.MustCompile(`\[[^\]]*\]\(([^)#]+)\)`)
)

// order makes the list of pages from the table in contents. Pages that it does not name come last.
func (s *site) order() error {
	table, ok := s.bySource[contents]
	if !ok {
		return fmt.Errorf("there is no %s", contents)
	}
	listed := map[string]bool{"README.md": true, contents: true}
	s.sections = []section{{Title: "Overview", Links: []link{{"index.html", "durward"}, {table.address, table.title}}}}
	for line := range strings.Lines(string(table.text)) {
		if row := sectionRow.FindStringSubmatch(line); row != nil {
			s.sections = append(s.sections, section{Title: row[1]})
			continue
		}
		if !strings.HasPrefix(line, "|") {
			continue
		}
		for _, found := range linkInRow.FindAllStringSubmatch(line, -1) {
			p, ok := s.bySource[path.Join(path.Dir(contents), found[1])]
			if !ok || listed[p.source] {
				continue
			}
			listed[p.source] = true
			last := &s.sections[len(s.sections)-1]
			last.Links = append(last.Links, link{p.address, p.title})
		}
	}
	more := section{Title: "More"}
	for _, p := range s.pages {
		if !listed[p.source] {
			more.Links = append(more.Links, link{p.address, p.title})
		}
	}
	if len(more.Links) > 0 {
		s.sections = append(s.sections, more)
	}
	return nil
}

// render returns a page in the layout of all. Addresses are relative, so that the site can lie in any folder.
func (s *site) render(p *page) ([]byte, error) {
	body, err := p.html()
	if err != nil {
		return nil, err
	}
	up := strings.Repeat("../", strings.Count(p.address, "/"))
	var text bytes.Buffer
	err = layout.Execute(&text, map[string]any{
		"Title": p.title, "Up": up, "Address": p.address, "Source": repository + "/blob/main/" + p.source, "Sections": s.sections,
		"Body": template.HTML(body), //nolint:gosec // the repository's own pages
	})
	return text.Bytes(), err
}
