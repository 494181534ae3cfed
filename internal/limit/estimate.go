package limit

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// PartTokens is what an image, audio or file part is taken for.
const PartTokens = 1000

// FirstMean is taken for the output of a call whose alias has answered nothing in the last hour.
const FirstMean = 256

// bytesPerToken is how many bytes of text are taken for one token.
const bytesPerToken = 4

// OfBytes is the tokens that bytes of text are taken for.
func OfBytes(n int64) int64 { return (max(n, 0) + bytesPerToken - 1) / bytesPerToken }

// Estimate is what a request for a model is taken for before it is sent. Its prompt is also what smart models compare
// with their context breakpoints.
type Estimate struct {
	Prompt  int64 // tokens
	Most    int64 // the tokens of output that the client allows for each choice; 0 when it says nothing
	Choices int64 // at least 1
	Output  bool  // the endpoint answers with text at all
}

// Reserve is the tokens to reserve: the prompt, and the client's maximum for every choice in full. Without a maximum
// it takes mean, the alias's for a whole call (see [Means]), for every choice, capped at half of smallest, the
// smallest matching limit ([Matched.SmallestTokens]), so that a guess alone never keeps a call out for good.
func (e Estimate) Reserve(mean, smallest int64, limited bool) int64 {
	if !e.Output {
		return e.Prompt
	}
	output := times(e.Most, e.Choices)
	if e.Most <= 0 {
		output = times(mean, e.Choices)
		if limited {
			output = min(output, smallest/2)
		}
	}
	if output > math.MaxInt64-e.Prompt {
		return math.MaxInt64
	}
	return e.Prompt + output
}

// times multiplies without overflow; both are taken for 0 when below.
func times(a, b int64) int64 {
	a, b = max(a, 0), max(b, 0)
	if b != 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// Endpoint is an address of the LLM runtime that takes a prompt.
type Endpoint uint8

// Endpoints.
const (
	ChatCompletions Endpoint = iota
	Responses
	Embeddings
	Messages
)

// EstimateRequest estimates a request body. limits bounds it; its error is the reader's *strictjson.SyntaxError, or that
// the body is no object.
//
// The prompt is the UTF-8 bytes of all strings below messages, input, prompt, system, instructions and tools, in
// tokens, and PartTokens for each image, audio and file among them in place of its data. In input and prompt a number
// is a token, as the APIs for embeddings and completions have it.
func EstimateRequest(endpoint Endpoint, body []byte, limits strictjson.Limits) (Estimate, error) {
	s := strictjson.NewScanner(body, limits)
	defer s.Release()
	e := Estimate{Choices: 1, Output: endpoint != Embeddings}
	var sum tally
	var object strictjson.ObjectFrame
	for s.OpenObject(&object); !s.Failed() && s.NextMember(&object); {
		switch string(object.Name()) {
		case "messages", "system", "instructions":
			sum.add(walk(s, place{}))
		case "tools":
			sum.add(walk(s, place{schema: true}))
		case "input", "prompt":
			sum.add(walk(s, place{tokens: true}))
		case "max_tokens", "max_completion_tokens", "max_output_tokens":
			e.Most = max(e.Most, count(s.Skip()))
		case "n", "best_of":
			e.Choices = max(e.Choices, count(s.Skip()))
		default:
			s.Skip()
		}
	}
	if err := s.End(); err != nil {
		return Estimate{}, fmt.Errorf("estimating tokens: %w", err)
	}
	e.Prompt = sum.total()
	return e, nil
}

// OfToolResult is the tokens of an MCP tool result as a model would read it: the strings of its content, or of
// structuredContent when it has no content, and PartTokens for each image, audio and blob in place of its data. What
// is not a valid object counts by its length.
func OfToolResult(result []byte) int64 {
	s := strictjson.NewScanner(result, strictjson.Limits{MaxBytes: math.MaxInt})
	defer s.Release()
	if s.Kind() != strictjson.Object {
		return OfBytes(int64(len(result)))
	}
	var content, structured tally
	var object strictjson.ObjectFrame
	for s.OpenObject(&object); !s.Failed() && s.NextMember(&object); {
		switch string(object.Name()) {
		case "content":
			content = walk(s, place{})
		case "structuredContent":
			structured.text = int64(len(s.Skip()))
		default:
			s.Skip()
		}
	}
	if s.End() != nil {
		return OfBytes(int64(len(result)))
	}
	if content == (tally{}) {
		return structured.total()
	}
	return content.total()
}

// tally is what a value holds.
type tally struct {
	text   int64 // bytes of strings
	data   int64 // bytes of strings that are the data of a part, if one of the values around turns out to be a part
	parts  int64
	tokens int64
}

func (t *tally) add(u tally) {
	t.text += u.text
	t.data += u.data
	t.parts += u.parts
	t.tokens += u.tokens
}

func (t tally) total() int64 { return OfBytes(t.text+t.data) + PartTokens*t.parts + t.tokens }

// place is where a value stands.
type place struct {
	schema bool // below tools, where objects are schemas and never parts
	tokens bool // in input or prompt, below arrays alone, where numbers are tokens
	data   bool // below a member that holds data in a part
}

// walk tallies the next value. It goes as deep as the scanner's limits let it.
func walk(s *strictjson.Scanner, at place) (t tally) {
	switch s.Kind() {
	case strictjson.String:
		raw, escaped := s.String()
		if raw == nil {
			return t
		}
		n := int64(len(raw) - 2)
		if escaped {
			n = unescapedLength(raw[1 : len(raw)-1])
		}
		if at.data {
			t.data = n
		} else {
			t.text = n
		}
	case strictjson.Array:
		var array strictjson.ArrayFrame
		for s.OpenArray(&array); !s.Failed() && s.NextElement(&array); {
			t.add(walk(s, at))
		}
	case strictjson.Object:
		t = walkObject(s, at)
	case strictjson.Number:
		if s.Skip(); at.tokens {
			t.tokens = 1
		}
	default:
		s.Skip()
	}
	return t
}

func walkObject(s *strictjson.Scanner, at place) (t tally) {
	at.tokens = false
	part, plain := false, false
	var object strictjson.ObjectFrame
	for s.OpenObject(&object); !s.Failed() && s.NextMember(&object); {
		inner := at
		switch name := object.Name(); {
		case at.schema:
		case string(name) == "type" && s.Kind() == strictjson.String:
			kind := decoded(s.String())
			part, plain = isPart[string(kind)], string(kind) == "text"
			t.text += int64(len(kind))
			continue
		default:
			inner.data = isData[string(name)]
		}
		t.add(walk(s, inner))
	}
	switch {
	case part:
		t.data, t.parts = 0, t.parts+1
	case plain: // a file whose data is text: {"type":"text","media_type":"text/plain","data":"..."}
		t.text, t.data = t.text+t.data, 0
	}
	return t
}

// decoded is what a string that the reader gave stands for. Providers decode before they compare, so a type that is
// spelled with escapes must not hide what it says.
func decoded(raw []byte, escaped bool) []byte {
	if len(raw) < 2 {
		return nil
	}
	raw = raw[1 : len(raw)-1]
	if !escaped {
		return raw
	}
	return strictjson.AppendUnescaped(nil, raw)
}

// isPart is the types of images, audio and files in the APIs of OpenAI, Anthropic and MCP.
var isPart = map[string]bool{
	"image": true, "image_url": true, "input_image": true, "computer_screenshot": true,
	"audio": true, "input_audio": true, "video_url": true,
	"file": true, "input_file": true, "document": true, "resource": true,
}

// isData is the members that hold what a part is made of, or the addresses of it.
var isData = map[string]bool{
	"url": true, "image_url": true, "file_url": true, "data": true, "file_data": true, "blob": true,
}

// count reads a whole number above zero; anything else is 0. One that is too large is the largest. Digits in quotation
// marks count too: some servers read them as the number.
func count(lexeme []byte) int64 {
	lexeme = bytes.Trim(lexeme, `"`)
	n, err := strconv.ParseInt(string(lexeme), 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(string(lexeme), 64)
		switch {
		case err != nil && !math.IsInf(f, 1), f != math.Trunc(f):
			return 0
		case f >= math.MaxInt64:
			return math.MaxInt64
		}
		n = int64(f)
	}
	return max(n, 0)
}

// unescapedLength is the length in UTF-8 of what the inside of a checked string stands for.
func unescapedLength(inside []byte) (n int64) {
	for i := 0; i < len(inside); {
		switch {
		case inside[i] != '\\':
			i++
			n++
		case inside[i+1] != 'u':
			i += 2
			n++
		default:
			r, _ := strconv.ParseUint(string(inside[i+2:i+6]), 16, 16)
			i += 6
			if r >= 0xD800 && r < 0xE000 { // the reader refuses lone ones
				i += 6
				n += 4
				continue
			}
			n += int64(utf8.RuneLen(rune(r)))
		}
	}
	return n
}
