package browser

import (
	"errors"
	"io"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Form is a form of a page.
type Form struct {
	// Action is the address to which it is sent, as written in the page.
	Action string
	// Fields holds its initial values: those of its inputs, hidden ones included.
	Fields map[string]string
	// Choices holds the values of its named buttons: pressing one sends its value.
	Choices map[string][]string
}

func (f *Form) values() url.Values {
	values := make(url.Values, len(f.Fields))
	for name, value := range f.Fields {
		values.Set(name, value)
	}
	return values
}

// reading holds the state of reading a page.
type reading struct {
	page     *Page
	form     *Form            // nil outside a form
	text     *strings.Builder // collects text, nil outside a heading or paragraph
	finished func(string)     // receives the collected text
}

func (p *Page) read(r io.Reader) error {
	state := reading{page: p}
	tokenizer := html.NewTokenizer(r)
	for {
		switch tokenizer.Next() {
		case html.ErrorToken:
			if err := tokenizer.Err(); !errors.Is(err, io.EOF) {
				return err
			}
			return nil
		case html.StartTagToken, html.SelfClosingTagToken:
			state.start(tokenizer.Token())
		case html.EndTagToken:
			state.end(tokenizer.Token().DataAtom)
		case html.TextToken:
			if state.text != nil {
				state.text.Write(tokenizer.Text())
			}
		}
	}
}

func (s *reading) start(tag html.Token) {
	attributes := make(map[string]string, len(tag.Attr))
	for _, a := range tag.Attr {
		attributes[a.Key] = a.Val
	}
	switch tag.DataAtom {
	case atom.H1:
		s.collect(func(text string) {
			if s.page.Title == "" {
				s.page.Title = text
			}
		})
	case atom.P:
		s.collect(func(text string) { s.page.Text = strings.TrimSpace(s.page.Text + " " + text) })
	case atom.Form:
		if s.form == nil {
			s.form = &Form{Action: attributes["action"], Fields: make(map[string]string), Choices: make(map[string][]string)}
			s.page.Forms = append(s.page.Forms, s.form)
		}
	case atom.Input:
		if s.form != nil && attributes["name"] != "" {
			s.form.Fields[attributes["name"]] = attributes["value"]
		}
	case atom.Button:
		if name := attributes["name"]; s.form != nil && name != "" {
			s.form.Choices[name] = append(s.form.Choices[name], attributes["value"])
		}
	}
}

func (s *reading) collect(finished func(string)) { s.text, s.finished = new(strings.Builder), finished }

func (s *reading) end(tag atom.Atom) {
	switch tag {
	case atom.Form:
		s.form = nil
	case atom.H1, atom.P:
		if s.text != nil {
			s.finished(strings.Join(strings.Fields(s.text.String()), " "))
			s.text = nil
		}
	}
}
