package declare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// MaxText is the largest size of all files together, in bytes.
const MaxText = 16 << 20

// maxDepth bounds the nesting of a file.
const maxDepth = 64

// These bound the errors of a file, which would otherwise be many times larger than it.
const (
	maxPath     = 512   // bytes of a member's path
	maxProblems = 1_000 // of a list or an object
)

// File is a file of declarations: YAML, or JSON, which is YAML too.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Problem is an error in a file. Line and Column count from 1; a Column of 0 is unknown.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Path    string `json:"path"` // of the member, as in policies[2].rules[0].name
	Message string `json:"message"`
}

func (p Problem) String() string {
	place := p.File + ":" + strconv.Itoa(p.Line)
	if p.Column > 0 {
		place += ":" + strconv.Itoa(p.Column)
	}
	if p.Path != "" {
		place += ": " + p.Path
	}
	return place + ": " + p.Message
}

// Problems holds all errors of the files: none of them is applied.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// document is one document of a file.
type document struct {
	file string
	root *yaml.Node // a mapping
}

// read parses the documents of all files.
func read(files []File) (documents []*document, problems Problems) {
	size := 0
	for _, f := range files {
		if size += len(f.Text); size > MaxText {
			return nil, Problems{{File: f.Name, Line: 1, Message: fmt.Sprintf("the files are larger than %d MiB together", MaxText>>20)}}
		}
		found, wrong := readFile(f)
		documents, problems = append(documents, found...), append(problems, wrong...)
	}
	return documents, problems
}

func readFile(f File) (documents []*document, problems Problems) {
	decoder := yaml.NewDecoder(strings.NewReader(f.Text))
	for {
		var n yaml.Node
		err := decoder.Decode(&n)
		if errors.Is(err, io.EOF) {
			return documents, problems
		}
		if err != nil {
			return documents, append(problems, syntaxProblem(f.Name, err))
		}
		d := &document{file: f.Name, root: n.Content[0]}
		if d.root.Kind == yaml.ScalarNode && d.root.Tag == "!!null" {
			continue // comments only
		}
		if d.root.Kind != yaml.MappingNode {
			problems = append(problems, d.problem(d.root, "", "a document is an object with members such as servers and policies"))
			continue
		}
		if wrong := d.check(d.root, "", 0); len(wrong) > 0 {
			problems = append(problems, wrong...)
			continue
		}
		documents = append(documents, d)
	}
}

// lineOf finds the line in an error of the YAML reader.
var lineOf = regexp.MustCompile(`\Ayaml: (?:line ([0-9]+): )?`)

func syntaxProblem(file string, err error) Problem {
	p := Problem{File: file, Line: 1, Message: err.Error()}
	if found := lineOf.FindStringSubmatch(p.Message); found != nil {
		p.Message = p.Message[len(found[0]):]
		if line, err := strconv.Atoi(found[1]); err == nil {
			p.Line = line
		}
	}
	p.Message = "this is not YAML: " + p.Message
	return p
}

func (d *document) problem(n *yaml.Node, path, message string) Problem {
	return Problem{File: d.file, Line: n.Line, Column: n.Column, Path: path, Message: message}
}

// check returns the problems of the forms that have no equal in JSON, or that readers understand differently.
func (d *document) check(n *yaml.Node, path string, depth int) (problems Problems) {
	switch {
	case depth > maxDepth:
		return Problems{d.problem(n, path, "this is nested too deeply")}
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return Problems{d.problem(n, path, "anchors and aliases are not used here: write the value out")}
	case tagged(n):
		// A tag would make any text a number or a boolean, and so a part of the JSON that the readers get.
		return Problems{d.problem(n, path, "tags are not used here: write the value without "+n.Tag)}
	case n.Kind == yaml.ScalarNode:
		if n.Tag == "!!timestamp" {
			n.Tag = "!!str" // a name may look like a date
		}
		if _, err := scalar(n); err != nil {
			return Problems{d.problem(n, path, err.Error())}
		}
	case n.Kind == yaml.SequenceNode:
		for i, e := range n.Content {
			if len(problems) >= maxProblems {
				break
			}
			problems = append(problems, d.check(e, below(path, i), depth+1)...)
		}
	case n.Kind == yaml.MappingNode:
		seen := make(map[string]bool)
		for i := 0; i < len(n.Content) && len(problems) < maxProblems; i += 2 {
			key := n.Content[i]
			inner := below(path, key.Value)
			switch {
			case key.Kind != yaml.ScalarNode || key.Tag != "!!str" || key.Anchor != "" || tagged(key):
				problems = append(problems, d.problem(key, path, "the name of a member is a plain text"))
			case seen[key.Value]:
				problems = append(problems, d.problem(key, inner, "this member is here twice"))
			}
			seen[key.Value] = true
			problems = append(problems, d.check(n.Content[i+1], inner, depth+1)...)
		}
	}
	return problems
}

// tagged reports whether a node has a tag of its own, apart from that of a text.
func tagged(n *yaml.Node) bool {
	return n.Style&yaml.TaggedStyle != 0 && !(n.Kind == yaml.ScalarNode && n.Tag == "!!str")
}

// below returns the path of a member, or of an element by its index. A path that is too long ends early.
func below[T int | string](path string, step T) string {
	longer := ""
	switch step := any(step).(type) {
	case int:
		longer = "[" + strconv.Itoa(step) + "]"
	case string:
		if len(step) > maxPath {
			return path
		}
		if longer = step; path != "" {
			longer = "." + step
		}
	}
	if len(path)+len(longer) > maxPath {
		return path
	}
	return path + longer
}

// scalar returns the JSON form of a scalar.
func scalar(n *yaml.Node) ([]byte, error) {
	switch n.Tag {
	case "!!null":
		return []byte("null"), nil
	case "!!str":
		return text(n.Value), nil
	case "!!bool":
		return []byte(strings.ToLower(n.Value)), nil
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return []byte(n.Value), nil
		}
		return nil, errors.New("write this number in decimal digits")
	}
	return nil, fmt.Errorf("values of the type %s are not used here", n.Tag)
}

func text(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // a string always has a form
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// writeJSON writes a checked node as JSON.
func writeJSON(b *bytes.Buffer, n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i < len(n.Content); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(text(n.Content[i].Value))
			b.WriteByte(':')
			writeJSON(b, n.Content[i+1])
		}
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, e := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, e)
		}
		b.WriteByte(']')
	default:
		value, err := scalar(n)
		if err != nil {
			value = []byte("null") // check has refused the document
		}
		b.Write(value)
	}
}

// object returns the document for the API's readers.
func (d *document) object() (*validate.Object, error) {
	var b bytes.Buffer
	writeJSON(&b, d.root)
	return validate.ParseBody(b.Bytes(), strictjson.Limits{MaxBytes: 4 * MaxText})
}

// written maps members of the API's records to those of the files that stand in their place.
var written = map[string]string{"mcp_server_id": "server", "application_ids": "agents", "scope_id": "subject", "provider_id": "provider"}

// placed gives the problems of the API's readers their places in the file.
func (d *document) placed(err error) (placed Problems) {
	var problems validate.Problems
	if !errors.As(err, &problems) {
		return Problems{d.problem(d.root, "", err.Error())}
	}
	for _, p := range problems {
		n, path := d.root, ""
		for _, step := range p.Loc[1:] {
			switch step := step.(type) {
			case int:
				path = below(path, step)
				if n.Kind == yaml.SequenceNode && step < len(n.Content) {
					n = n.Content[step]
				}
			case string:
				name := step
				if other := written[name]; other != "" {
					name = other
				}
				path = below(path, name)
				if v := member(n, step); v != nil {
					n = v
				}
			}
		}
		placed = append(placed, d.problem(n, path, strings.ReplaceAll(strings.TrimPrefix(p.Msg, "Value error, "), "scope_id", written["scope_id"])))
	}
	return placed
}

// member returns a member of a mapping, nil when there is none.
func member(n *yaml.Node, name string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// textOf returns the text of a member, "" when there is none.
func textOf(n *yaml.Node, name string) string {
	if v := member(n, name); v != nil && v.Kind == yaml.ScalarNode && v.Tag == "!!str" {
		return v.Value
	}
	return ""
}

// each returns the objects of a list of the document.
func (d *document) each(list string) []*yaml.Node {
	if n := member(d.root, list); n != nil && n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return nil
}
