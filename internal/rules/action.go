package rules

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind is what an action is about.
type Kind uint8

// Kinds of actions. The first four are kinds of calls; Any is the action "*"; the lists are words that rules may hold
// and that have no effect, for lists are never refused, only filtered.
const (
	ToolsCall Kind = iota + 1
	ResourcesRead
	PromptsGet
	SSEStream
	Any
	ToolsList
	ResourcesList
	PromptsList

	callKinds = SSEStream + 1 // size of an array with one place for each kind of call
)

var kindWords = [...]string{"", "tools/call", "resources/read", "prompts/get", "sse/stream", "*", "tools/list", "resources/list", "prompts/list"}

// String is the word that the kind has in a rule.
func (k Kind) String() string { return kindWords[min(int(k), len(kindWords)-1)] }

// Lengths that the grammar of actions allows, in characters.
const (
	MaxToolName = 128
	MaxPattern  = 2048
)

const (
	wildcard      = "*"
	approveSuffix = ":approve"
)

// Action is one entry of a rule's actions.
type Action struct {
	Kind Kind
	// Name is the tool, URI or prompt that is meant; with Prefix what it starts with, "" being all of the kind.
	Name   string
	Prefix bool
	// Approve: the suffix :approve was there. A grant asks then; a deny takes no notice of it.
	Approve bool
}

// AsksForApproval reports whether an action, as it is written in a rule that grants, asks a human first. That of a tool named
// approve does not.
func AsksForApproval(action string) bool {
	tool, ok := strings.CutPrefix(action, kindWords[ToolsCall]+":")
	return ok && strings.HasSuffix(tool, approveSuffix)
}

// String is the action as it is written in a rule.
func (a Action) String() string {
	var b strings.Builder
	b.WriteString(a.Kind.String())
	if a.Name != "" || a.Prefix {
		b.WriteString(":" + a.Name)
	}
	if a.Prefix {
		b.WriteString(wildcard)
	}
	if a.Approve {
		b.WriteString(approveSuffix)
	}
	return b.String()
}

// ParseAction reads an action as docs/policies.md has it ("Actions"), byte for byte: nothing is trimmed or folded (attack
// M07). Its error is a text for the one who wrote the rule.
//
//   - | tools/call:TOOL[:approve] | resources/read:PATTERN | prompts/get:PATTERN | sse/stream |
//     tools/list | resources/list | prompts/list
//
// TOOL is a name of 1 to 128 characters of [A-Za-z0-9_./-], which a * may follow, or * alone. PATTERN is 1 to 2,048
// visible characters, the last of which may be a *.
func ParseAction(s string) (Action, error) {
	for _, k := range []Kind{Any, SSEStream, ToolsList, ResourcesList, PromptsList} {
		if s == kindWords[k] {
			return Action{Kind: k}, nil
		}
	}
	for _, k := range []Kind{ToolsCall, ResourcesRead, PromptsGet} {
		rest, ok := strings.CutPrefix(s, kindWords[k]+":")
		if !ok {
			continue
		}
		if k == ToolsCall {
			return parseTool(rest)
		}
		return parsePattern(k, rest)
	}
	return Action{}, fmt.Errorf("must be *, tools/call:<tool>, tools/call:<tool>:approve, resources/read:<pattern>, prompts/get:<pattern>, sse/stream, tools/list, resources/list or prompts/list")
}

// ParseCall reads what one call is about: tools/call:TOOL, resources/read:URI, prompts/get:PROMPT or sse/stream. Unlike in an
// action, a * in a URI or a prompt's name is a character like any other. Its error is a text for whoever wrote it.
func ParseCall(s string) (Kind, string, error) {
	if s == kindWords[SSEStream] {
		return SSEStream, "", nil
	}
	for _, k := range []Kind{ToolsCall, ResourcesRead, PromptsGet} {
		name, ok := strings.CutPrefix(s, kindWords[k]+":")
		switch {
		case !ok:
			continue
		case name == "":
			return 0, "", fmt.Errorf("names nothing after the colon")
		case k != ToolsCall:
			return k, name, nil
		case strings.HasSuffix(name, approveSuffix):
			return 0, "", fmt.Errorf("the suffix %s is a word of rules, and no part of a tool's name: leave it out", approveSuffix)
		case strings.HasSuffix(name, wildcard):
			return 0, "", fmt.Errorf("name one tool, not a pattern of many")
		}
		return k, name, wrongToolName(name)
	}
	return 0, "", fmt.Errorf("name one call: tools/call:<tool>, resources/read:<uri>, prompts/get:<prompt> or sse/stream")
}

func parseTool(s string) (Action, error) {
	a := Action{Kind: ToolsCall}
	a.Name, a.Approve = strings.CutSuffix(s, approveSuffix)
	switch {
	case strings.HasSuffix(a.Name, approveSuffix):
		return Action{}, fmt.Errorf("the suffix %s may stand there once only", approveSuffix)
	case strings.Contains(a.Name, approveSuffix+":"):
		return Action{}, fmt.Errorf("the suffix %s must be at the end", approveSuffix)
	}
	a.Name, a.Prefix = strings.CutSuffix(a.Name, wildcard)
	if a.Name == "" && a.Prefix {
		return a, nil
	}
	if err := wrongToolName(a.Name); err != nil {
		return Action{}, err
	}
	return a, nil
}

// ToolName reports whether a tool of that name can be called through the gateway at all: the others are refused
// whatever the policy, so that no name can look like an action that it is not.
func ToolName(name string) bool { return wrongToolName(name) == nil }

var toolCharacters = func() (t [256]bool) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-" {
		t[c] = true
	}
	return t
}()

func wrongToolName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("names no tool")
	case len(name) > MaxToolName:
		return fmt.Errorf("the name of a tool has at most %d characters", MaxToolName)
	}
	for i := range len(name) {
		if toolCharacters[name[i]] {
			continue
		}
		if name[i] == '*' {
			return fmt.Errorf("a * may stand at the end only")
		}
		return fmt.Errorf("the name of a tool is made of A-Z a-z 0-9 _ . / - alone")
	}
	return nil
}

func parsePattern(k Kind, s string) (Action, error) {
	a := Action{Kind: k}
	a.Name, a.Prefix = strings.CutSuffix(s, wildcard)
	switch {
	case s == "":
		return Action{}, fmt.Errorf("names nothing after the colon")
	case utf8.RuneCountInString(s) > MaxPattern:
		return Action{}, fmt.Errorf("a pattern has at most %d characters", MaxPattern)
	case strings.HasSuffix(s, approveSuffix):
		return Action{}, fmt.Errorf("the suffix %s is for tools/call alone", approveSuffix)
	case strings.Contains(a.Name, wildcard):
		return Action{}, fmt.Errorf("a * may stand at the end only")
	case !utf8.ValidString(s) || strings.ContainsFunc(s, invisible):
		return Action{}, fmt.Errorf("a pattern is made of visible characters")
	}
	return a, nil
}

// invisible characters are blanks, controls, and what only changes how others look.
func invisible(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }
