package engine

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind is the kind of thing that an action applies to.
type Kind uint8

// Kinds of actions. The first four are kinds of calls. Any is the action "*". The lists are words that rules may hold
// and that have no effect, because lists are never refused, only filtered.
const (
	ToolsCall Kind = iota + 1
	ResourcesRead
	PromptsGet
	SSEStream
	Any
	ToolsList
	ResourcesList
	PromptsList

	callKinds = SSEStream + 1 // size of an array with one element for each kind of call
)

var kindWords = [...]string{"", "tools/call", "resources/read", "prompts/get", "sse/stream", "*", "tools/list", "resources/list", "prompts/list"}

// String returns the word for the kind, as rules write it.
func (k Kind) String() string { return kindWords[min(int(k), len(kindWords)-1)] }

// Maximum lengths in the grammar of actions, in characters.
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
	// Name is the tool, URI or prompt. With Prefix it is the start of one, and "" then means all of the kind.
	Name   string
	Prefix bool
	// Approve reports whether the suffix :approve was there. With it, a grant asks; a deny ignores it.
	Approve bool
}

// AsksForApproval reports whether an action of a rule that grants asks a human first. It takes the action as rules
// write it. An action for a tool that is named approve does not ask.
func AsksForApproval(action string) bool {
	tool, ok := strings.CutPrefix(action, kindWords[ToolsCall]+":")
	return ok && strings.HasSuffix(tool, approveSuffix)
}

// String returns the action as rules write it.
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

// ParseAction reads an action by the grammar of docs/policies.md ("Actions"), byte for byte. It trims and folds nothing
// (attack M07). Its error is a text for the author of the rule.
//
//   - | tools/call:TOOL[:approve] | resources/read:PATTERN | prompts/get:PATTERN | sse/stream |
//     tools/list | resources/list | prompts/list
//
// TOOL is a name of 1 to 128 characters of [A-Za-z0-9_./-], which a * may follow, or * alone. PATTERN has 1 to 2,048
// visible characters. The last of them may be a *.
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

// ParseCall reads the subject of one call: tools/call:TOOL, resources/read:URI, prompts/get:PROMPT or sse/stream. In
// the URI or the prompt's name a * is an ordinary character, unlike in an action. Its error is a text for the author of
// the call.
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

// ToolName reports whether the gateway allows calls of a tool with that name at all. Calls of other names are refused
// under every policy, so that no name can look like an action that it is not.
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

// invisible reports whether a character is a blank, a control, or one that only changes how other characters look.
func invisible(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }
