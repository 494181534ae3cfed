package listfilter

import (
	"bytes"
	"regexp"
)

// suspect matches every text in which any reader of JSON could find a list: the name of one in any case, an escape
// that may mean one of its letters, a letter that folds to one (U+017F to s, U+212A to k), or NUL, as in text of
// another encoding.
var suspect = regexp.MustCompile(`(?i:tools|resources|resourcetemplates|prompts|tasks)|\\u00[4-7]|\\u(?i:017f|212a)|\x{17f}|\x{212a}|\x00`)

// mayHoldList reports whether a text that is not strict JSON may hold a list for a less strict reader.
func mayHoldList(text []byte) bool { return suspect.Match(text) }

// quoted holds the names of the lists as servers write them.
var quoted = func() (names [len(lists)][]byte) {
	for i := range lists {
		names[i] = []byte(`"` + lists[i].member + `"`)
	}
	return names
}()

// plural is the end of all of quoted, so that one search finds every possible place of one of them.
var plural = []byte(`s"`)

// namesList reports whether a text may hold a list that a server wrote.
func namesList(text []byte) bool {
	for at := 0; ; at += len(plural) {
		i := bytes.Index(text[at:], plural)
		if i < 0 {
			return false
		}
		at += i
		for _, name := range quoted {
			if bytes.HasSuffix(text[:at+len(plural)], name) {
				return true
			}
		}
	}
}

// updatedEnd is the end of the name of the notification that a resource has changed, as servers write it; some escape
// its slashes.
var updatedEnd = []byte(`updated"`)

// mayBeNews reports whether a text may hold that notification as a server wrote it.
func mayBeNews(text []byte) bool { return bytes.Contains(text, updatedEnd) }
