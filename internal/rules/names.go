package rules

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// callable reports whether a name may be used in a call at all, whatever the policy.
func callable(k Kind, name string) bool {
	switch k {
	case ToolsCall:
		return ToolName(name)
	case ResourcesRead:
		return name != "" && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl) && !climbs(name)
	case PromptsGet:
		return name != "" && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
	case SSEStream:
		return true
	}
	return false
}

// climbs reports whether a URI has a segment "..", with which it would leave what a prefix in a policy stands for. It is
// looked for in the text and in what the text is once its percent signs are decoded, for servers differ in when they do
// that; with backslashes and parameters as some of them read paths.
func climbs(uri string) bool {
	for range 3 {
		if hasDotDot(uri) {
			return true
		}
		decoded, err := url.PathUnescape(uri)
		if err != nil {
			// A percent sign that starts no escape: decode the others, as lenient servers do.
			decoded = lenient.Replace(uri)
		}
		if decoded == uri {
			return false
		}
		uri = decoded
	}
	return hasDotDot(uri)
}

var lenient = strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", "%5c", `\`, "%5C", `\`, "%25", "%")

func hasDotDot(uri string) bool {
	rest := uri
	for {
		i := strings.Index(rest, "..")
		if i < 0 {
			return false
		}
		at := len(uri) - len(rest) + i
		if (at == 0 || separates(uri[at-1])) && (at+2 == len(uri) || separates(uri[at+2])) {
			return true
		}
		rest = rest[i+1:]
	}
}

func separates(c byte) bool { return strings.IndexByte(`/\:;?#`, c) >= 0 }

// refusedStart reports whether no URI that starts so can be read.
func refusedStart(start string) bool {
	whole := start[:strings.LastIndexByte(start, '/')+1]
	return strings.ContainsFunc(start, unicode.IsControl) || climbs(whole)
}

// literals are the fixed parts of a URI template: what stands before, between and after its expressions. A brace that
// is never closed is an expression to the end.
func literals(template string) []string {
	var out []string
	for {
		literal, rest, found := strings.Cut(template, "{")
		out = append(out, literal)
		if !found {
			return out
		}
		_, template, _ = strings.Cut(rest, "}")
	}
}

// expands reports whether the text can be an expansion of a template with these fixed parts, two at least, or with
// onlyStart what one starts with.
func expands(parts []string, text string, onlyStart bool) bool {
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(text, first) {
		return onlyStart && strings.HasPrefix(first, text)
	}
	if onlyStart {
		return true // the first expression may be all the rest
	}
	text = text[len(first):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, last)
}
