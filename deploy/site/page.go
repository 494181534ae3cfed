package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

const repository = "https://github.com/durward-gateway/durward"

// page is a Markdown file, and what is made of it.
type page struct {
	source  string // from the root of the checkout
	address string // from the root of the site
	title   string
	text    []byte
	tree    ast.Node
	anchors map[string]bool
	entries []entry
}

// entry holds a heading and the text below it, for the search.
type entry struct {
	Address string `json:"a"`
	Page    string `json:"p"`
	Heading string `json:"h"`
	Text    string `json:"t"`
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM))

// parse reads a page. Its headings get the ids that GitHub gives them, which links use.
func parse(source string, content []byte) *page {
	p := &page{source: source, address: address(source), text: content, anchors: make(map[string]bool)}
	p.tree = markdown.Parser().Parse(text.NewReader(content))
	var below []string
	end := func() {
		if len(p.entries) > 0 {
			p.entries[len(p.entries)-1].Text = strings.Join(below, " ")
		}
		below = nil
	}
	for node := p.tree.FirstChild(); node != nil; node = node.NextSibling() {
		heading, ok := node.(*ast.Heading)
		if !ok {
			below = append(below, strings.Join(strings.Fields(plain(node, content)), " "))
			continue
		}
		end()
		said := strings.TrimSpace(plain(heading, content))
		if p.title == "" {
			p.title = said
		}
		id := p.anchor(said)
		heading.SetAttributeString("id", []byte(id))
		p.entries = append(p.entries, entry{Address: p.address + "#" + id, Page: p.title, Heading: said})
	}
	end()
	return p
}

// address returns a page's address. README.md becomes the page of its folder.
func address(source string) string {
	folder, name := path.Split(source)
	if name == "README.md" {
		return folder + "index.html"
	}
	return strings.TrimSuffix(source, ".md") + ".html"
}

var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)

// anchor returns a heading's id, as GitHub makes it, and remembers it.
func (p *page) anchor(heading string) string {
	base := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
	id := base
	for n := 1; p.anchors[id]; n++ {
		id = base + "-" + strconv.Itoa(n)
	}
	p.anchors[id] = true
	return id
}

// plain returns the text of a node without its markup.
func plain(node ast.Node, source []byte) string {
	var said strings.Builder
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				said.Write(n.Segment.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					said.WriteByte(' ')
				}
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if entering {
				for i := range n.Lines().Len() {
					line := n.Lines().At(i)
					said.Write(line.Value(source))
				}
			}
		case *ast.Paragraph, *ast.TextBlock, *ast.ListItem, *east.TableCell:
			if !entering {
				said.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return said.String()
}

// resolve makes links between pages links of the site, and links to other files of the repository links to them where it is
// published.
func (s *site) resolve(p *page) error {
	var problems []error
	_ = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if l, ok := n.(*ast.Link); ok && entering {
			to, err := s.target(p, string(l.Destination))
			if err != nil {
				problems = append(problems, err)
			}
			l.Destination = []byte(to)
		}
		return ast.WalkContinue, nil
	})
	return errors.Join(problems...)
}

// target returns where a link leads on the site.
func (s *site) target(p *page, to string) (string, error) {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return to, nil
	}
	name, anchor, hasAnchor := strings.Cut(to, "#")
	source := p.source
	if name != "" {
		source = path.Join(path.Dir(p.source), name)
	}
	there, ok := s.bySource[source]
	if !ok {
		there, ok = s.bySource[path.Join(source, "README.md")]
	}
	if !ok {
		info, err := os.Stat(filepath.Join(s.root, filepath.FromSlash(source)))
		if err != nil {
			return to, fmt.Errorf("%s leads nowhere", to)
		}
		if info.IsDir() {
			return repository + "/tree/main/" + source, nil
		}
		return repository + "/blob/main/" + source, nil
	}
	if hasAnchor && !there.anchors[anchor] {
		return to, fmt.Errorf("%s leads to no heading", to)
	}
	relative, err := filepath.Rel(filepath.FromSlash(path.Dir(p.address)), filepath.FromSlash(there.address))
	if err != nil {
		return to, err
	}
	relative = filepath.ToSlash(relative)
	if hasAnchor {
		relative += "#" + anchor
	}
	return relative, nil
}

func (p *page) html() ([]byte, error) {
	var body bytes.Buffer
	if err := markdown.Renderer().Render(&body, p.text, p.tree); err != nil {
		return nil, err
	}
	// Wide tables scroll by themselves, by keyboard too.
	return bytes.ReplaceAll(bytes.ReplaceAll(body.Bytes(), []byte("<table>"), []byte(`<div class="table" tabindex="0" role="region" aria-label="table"><table>`)),
		[]byte("</table>"), []byte("</table></div>")), nil
}
