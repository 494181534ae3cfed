package models

import (
	"encoding/json"
	"strings"
)

// prompt is the question to a model, from either provider's API.
type prompt struct {
	model    string
	system   string
	messages []message
	tools    []tool
	choice   string // "auto", "none", "any", or the name of the tool that must be called
	most     int    // tokens of the answer; 0: no limit
}

// message is one message of a conversation.
type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

type tool struct {
	name   string
	schema json.RawMessage // of its arguments
}

// content is a text, or a list of parts, of which texts and results of tools count.
type content struct {
	text   string
	result bool // it is the answer of a tool
}

// UnmarshalJSON reads a text, null or a list of parts.
func (c *content) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		c.text = text
		return nil
	}
	var parts []struct {
		Type    string  `json:"type"`
		Text    string  `json:"text"`
		Content content `json:"content"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	var texts []string
	for _, part := range parts {
		if part.Type == "tool_result" {
			c.result = true
			part.Text = part.Content.text
		}
		if part.Text != "" {
			texts = append(texts, part.Text)
		}
	}
	c.text = strings.Join(texts, "\n")
	return nil
}

// user returns the last message of the user or of a tool.
func (p *prompt) user() (text string, result bool) {
	for i := len(p.messages) - 1; i >= 0; i-- {
		switch m := p.messages[i]; m.Role {
		case "user":
			return m.Content.text, m.Content.result
		case "tool":
			return m.Content.text, true
		}
	}
	return "", false
}

// takeSystem moves the operator's messages to the system prompt.
func (p *prompt) takeSystem() {
	var rest []message
	for _, m := range p.messages {
		if m.Role == "system" || m.Role == "developer" {
			p.system += m.Content.text
			continue
		}
		rest = append(rest, m)
	}
	p.messages = rest
}

// input returns the number of tokens of the prompt.
func (p *prompt) input() int {
	n := tokens(p.system)
	for _, m := range p.messages {
		n += tokens(m.Content.text)
	}
	for _, t := range p.tools {
		n += tokens(t.name) + tokens(string(t.schema))
	}
	return n
}

// tokens returns the approximate number of tokens of a text: four bytes each.
func tokens(text string) int { return (len(text) + 3) / 4 }

// choiceOf reads the tool that must be called: a word, or an object that names one.
func choiceOf(raw json.RawMessage) string {
	var word string
	if json.Unmarshal(raw, &word) == nil {
		if word == "required" {
			return "any"
		}
		return word
	}
	var chosen struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if json.Unmarshal(raw, &chosen) != nil {
		return ""
	}
	if name := chosen.Function.Name + chosen.Name; name != "" {
		return name
	}
	return chosen.Type
}
