package wire

import (
	"bytes"
	"strings"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// LastUser returns the last text that the user wrote, in full. A smart model's determiner reads it (and cuts it). It
// consists of the text parts, joined by line ends, of the last message of role user that has any. So the results of
// tools, which Anthropic's clients send as messages of the user, do not hide the question. An input that is one string
// is that string. Of several inputs for embeddings it is the last one. It is "" when there is no text. It is read again
// on each call.
func (r *Request) LastUser() string {
	text, _ := r.users(true)
	return text
}

// FirstUser returns the first message of the user, by which a conversation is recognized. It returns the text as
// [Request.LastUser] does or, without text, the content as it was sent. It uses the text because clients move their
// marks for prompt caches. It is "" when there is no message of the user.
func (r *Request) FirstUser() string {
	text, content := r.users(false)
	if text == "" {
		return string(content)
	}
	return text
}

// users reads the prompt for the first message of the user, or for the last that has text.
func (r *Request) users(last bool) (text string, content []byte) {
	if r.prompt == (span{}) {
		return "", nil
	}
	s := strictjson.NewScanner(r.prompt.of(r.body), strictjson.Limits{MaxBytes: len(r.body) + 1})
	defer s.Release()
	switch s.Kind() {
	case strictjson.String:
		return unquote(s.String()), nil
	case strictjson.Array:
	default:
		return "", nil
	}
	var array strictjson.ArrayFrame
	for s.OpenArray(&array); s.NextElement(&array); {
		var found []byte
		switch s.Kind() {
		case strictjson.String: // of embeddings
			raw, _ := s.String()
			if r.Endpoint == limit.Embeddings {
				found = raw
			}
		case strictjson.Object:
			found = userContent(s)
		default:
			s.Skip()
		}
		if found == nil {
			continue
		}
		if !last {
			return contentText(found), found
		}
		if hasText(found) {
			content = found
		}
	}
	return contentText(content), content
}

// userContent reads a message, at which s stands, and returns its content when it is the user's.
func userContent(s *strictjson.Scanner) (content []byte) {
	user := false
	var object strictjson.ObjectFrame
	for s.OpenObject(&object); s.NextMember(&object); {
		switch string(object.Name()) {
		case "role":
			value := s.Skip()
			user = len(value) > 1 && value[0] == '"' && unquote(value, bytes.IndexByte(value, '\\') >= 0) == "user"
		case "content":
			content = s.Skip()
		default:
			s.Skip()
		}
	}
	if !user {
		return nil
	}
	return content
}

func hasText(content []byte) bool {
	found := false
	eachText(content, func(raw []byte, _ bool) bool {
		found = len(raw) > 2
		return !found
	})
	return found
}

// contentText returns the text of a message's content: a string, or an array of parts.
func contentText(content []byte) string {
	if len(content) > 0 && content[0] == '"' {
		return unquote(content, bytes.IndexByte(content, '\\') >= 0)
	}
	var b strings.Builder
	first := true
	eachText(content, func(raw []byte, escaped bool) bool {
		if !first {
			b.WriteByte('\n')
		}
		first = false
		b.WriteString(unquote(raw, escaped))
		return true
	})
	return b.String()
}

// eachText calls found with each text of a message's content, with quotation marks, until it returns false.
func eachText(content []byte, found func(raw []byte, escaped bool) bool) {
	if len(content) == 0 {
		return
	}
	s := strictjson.NewScanner(content, strictjson.Limits{MaxBytes: len(content)})
	defer s.Release()
	switch s.Kind() {
	case strictjson.String:
		found(s.String())
		return
	case strictjson.Array:
	default:
		return
	}
	var array strictjson.ArrayFrame
	for s.OpenArray(&array); s.NextElement(&array); {
		if s.Kind() != strictjson.Object {
			s.Skip()
			continue
		}
		var text []byte
		kind := ""
		var object strictjson.ObjectFrame
		for s.OpenObject(&object); s.NextMember(&object); {
			name := string(object.Name())
			switch value := s.Skip(); {
			case len(value) < 2 || value[0] != '"':
			case name == "type":
				kind = unquote(value, bytes.IndexByte(value, '\\') >= 0)
			case name == "text":
				text = value
			}
		}
		if text != nil && (kind == "text" || kind == "input_text") && !found(text, bytes.IndexByte(text, '\\') >= 0) {
			return
		}
	}
}
