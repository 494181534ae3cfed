package engine

import (
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// callable reports whether a call may use a name at all, under any policy.
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

// ResourceURI reports whether a call may use a URI at all, under any policy.
func ResourceURI(uri string) bool { return callable(ResourcesRead, uri) }

// climbs reports whether a URI has a segment "..". With it the URI would leave the place that a prefix in a policy
// stands for. climbs searches the text, and also the text with its percent signs decoded, because servers differ in
// when they decode them. It reads backslashes and path parameters as some servers do. Control characters count as well:
// readers of URLs remove tabs and line ends, even between two dots.
func climbs(uri string) bool {
	for range 3 {
		if hasDotDot(uri) || strings.ContainsFunc(uri, unicode.IsControl) {
			return true
		}
		decoded := unescaped(uri)
		if decoded == uri {
			return false
		}
		uri = decoded
	}
	return hasDotDot(uri) || strings.ContainsFunc(uri, unicode.IsControl)
}

// unescaped decodes the percent escapes. A percent sign that starts no escape stays, as in lenient servers.
func unescaped(uri string) string {
	at := strings.IndexByte(uri, '%')
	if at < 0 {
		return uri
	}
	out := append(make([]byte, 0, len(uri)), uri[:at]...)
	for ; at < len(uri); at++ {
		if uri[at] == '%' && at+2 < len(uri) {
			if c, err := hex.DecodeString(uri[at+1 : at+3]); err == nil {
				out = append(out, c[0])
				at += 2
				continue
			}
		}
		out = append(out, uri[at])
	}
	return string(out)
}

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

// refusedStart reports whether no URI with that start can be read.
func refusedStart(start string) bool {
	whole := start[:strings.LastIndexByte(start, '/')+1]
	return strings.ContainsFunc(unescaped(start), unicode.IsControl) || climbs(whole)
}

// literals returns the fixed parts of a URI template: the texts before, between and after its expressions. A brace that
// is never closed starts an expression that reaches to the end.
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

// expands reports whether the text can be an expansion of a template with these fixed parts, of which there are at
// least two. With onlyStart it reports whether an expansion can start with the text.
func expands(parts []string, text string, onlyStart bool) bool {
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(text, first) {
		return onlyStart && strings.HasPrefix(first, text)
	}
	if onlyStart {
		return true // the first expression may stand for all the rest
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
