package limit

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// PartTokens is the estimate for one image, audio or file part.
const PartTokens = 1000

// FirstMean is the output estimate for a call whose alias had no answers in the last hour.
const FirstMean = 256

// MostOutput is the upper bound for the output of a model that has no stated maximum. MostPrompt is the upper bound for
// the estimate of any prompt: no model reads as much.
const (
	MostOutput = 1_000_000
	MostPrompt = 10_000_000
)

// bytesPerToken is the number of bytes of text that count as one token.
const bytesPerToken = 4

// OfBytes returns the number of tokens for a number of bytes of text.
func OfBytes(n int64) int64 { return (max(n, 0) + bytesPerToken - 1) / bytesPerToken }

// Estimate holds the estimated size of a request for a model, before the request is sent. Smart models also compare its
// prompt with their context breakpoints.
type Estimate struct {
	Prompt  int64 // tokens
	Most    int64 // maximum output tokens that the client allows for each choice; 0 when it says nothing
	Choices int64 // at least 1
	Output  bool  // the endpoint answers with text
}

// Reserve returns the number of tokens to reserve: the prompt, and the client's maximum for every choice in full.
// Without a maximum it takes mean, the alias's mean for a whole call (see [Means]), for every choice. Such a guess of the
// output is capped at half of smallest, the smallest matching limit ([Matched.SmallestTokens]), so that a guess alone
// never refuses a call for good.
//
// No reservation exceeds the output that the model can make: able for one choice (0: MostOutput), and for all choices
// together MostOutput, or able where that is more.
func (e Estimate) Reserve(mean, able, smallest int64, limited bool) int64 {
	if !e.Output {
		return e.Prompt
	}
	if able <= 0 {
		able = MostOutput
	}
	each := e.Most
	if each <= 0 {
		each = mean
	}
	output := min(times(min(each, able), e.Choices), max(able, MostOutput))
	if e.Most <= 0 && limited {
		output = min(output, smallest/2)
	}
	return e.Prompt + output
}

// times multiplies without overflow. Negative factors count as 0.
func times(a, b int64) int64 {
	a, b = max(a, 0), max(b, 0)
	if b != 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// Endpoint is an address of the LLM runtime that accepts a prompt.
type Endpoint uint8

// Endpoints.
const (
	ChatCompletions Endpoint = iota
	Responses
	Embeddings
	Messages
	CountTokens // for messages; used by Anthropic's clients
)

// EstimateRequest estimates a request body. limits bounds the body. The error is the reader's *strictjson.SyntaxError,
// or says that the body is not an object.
//
// The prompt counts the UTF-8 bytes of all strings below messages, input, prompt, system, instructions and tools,
// converted to tokens. Each image, audio and file among them counts as PartTokens in place of its data. In input and
// prompt a number is a token, as the APIs for embeddings and completions define it.
func EstimateRequest(endpoint Endpoint, body []byte, limits strictjson.Limits) (Estimate, error) {
	s := strictjson.NewScanner(body, limits)
	defer s.Release()
	e := StartEstimate(endpoint)
	var object strictjson.ObjectFrame
	for s.OpenObject(&object); !s.Failed() && s.NextMember(&object); {
		if !e.Member(object.Name(), s) {
			s.Skip()
		}
	}
	if err := s.End(); err != nil {
		return Estimate{}, fmt.Errorf("estimating tokens: %w", err)
	}
	return e.Estimate(), nil
}

// Estimation is an unfinished estimate, for callers that read the members of a request for other purposes too.
type Estimation struct {
	endpoint Endpoint
	estimate Estimate
	sum      tally
}

// StartEstimate begins the estimate of a request.
func StartEstimate(endpoint Endpoint) Estimation {
	return Estimation{endpoint: endpoint, estimate: Estimate{Choices: 1, Output: endpoint != Embeddings && endpoint != CountTokens}}
}

// Member reads the value of a request member that counts; s stands at that value. For any other member it reports false
// and leaves the value unread.
func (e *Estimation) Member(name []byte, s *strictjson.Scanner) bool {
	switch string(name) {
	case "messages", "system", "instructions":
		e.sum.add(walk(s, place{}))
	case "tools":
		e.sum.add(walk(s, place{schema: true}))
	case "input", "prompt":
		e.sum.add(walk(s, place{tokens: true}))
	case "max_tokens", "max_completion_tokens", "max_output_tokens":
		if !e.endpoint.bounds(name) {
			return false
		}
		e.estimate.Most = max(e.estimate.Most, count(s.Skip()))
	case "n", "best_of":
		e.estimate.Choices = max(e.estimate.Choices, count(s.Skip()))
	default:
		return false
	}
	return true
}

// bounds reports whether a member of a request bounds its output. The member of another API bounds nothing: many
// servers accept it and ignore it, and a call would then be charged only the few tokens that it names (attack T07).
func (e Endpoint) bounds(member []byte) bool {
	switch e {
	case ChatCompletions:
		return string(member) != "max_output_tokens"
	case Responses:
		return string(member) == "max_output_tokens"
	case Messages:
		return string(member) == "max_tokens"
	default:
		return false
	}
}

// Estimate returns the estimate of the members read so far.
func (e *Estimation) Estimate() Estimate {
	done := e.estimate
	done.Prompt = min(e.sum.total(), MostPrompt)
	return done
}

// OfToolResult returns the tokens of an MCP tool result as a model would read it. It counts the strings of content, or
// of structuredContent when there is no content. Each image, audio and blob counts as PartTokens in place of its data.
// A task that has ended counts as the result in it. Anything but a valid object counts by its length.
func OfToolResult(result []byte) int64 { return ofResult(result, true) }

func ofResult(result []byte, task bool) int64 {
	s := strictjson.NewScanner(result, strictjson.Limits{MaxBytes: math.MaxInt})
	defer s.Release()
	if s.Kind() != strictjson.Object {
		return OfBytes(int64(len(result)))
	}
	read := readResult(s, task)
	if s.End() != nil {
		return OfBytes(int64(len(result)))
	}
	return read.total()
}

// toolResult holds the parts of a result that count.
type toolResult struct {
	content, structured tally
	inner               []byte // of a task (MCP 2026-07-28, extension for tasks)
}

// readResult reads the object at which s stands.
func readResult(s *strictjson.Scanner, task bool) (r toolResult) {
	var object strictjson.ObjectFrame
	for s.OpenObject(&object); !s.Failed() && s.NextMember(&object); {
		switch name := string(object.Name()); {
		case name == "content":
			r.content = walk(s, place{})
		case name == "structuredContent":
			r.structured.text = int64(len(s.Skip()))
		case name == "result" && task && s.Kind() == strictjson.Object:
			r.inner = s.Skip()
		default:
			s.Skip()
		}
	}
	return r
}

func (r *toolResult) total() int64 {
	if r.content != (tally{}) {
		return r.content.total()
	}
	if r.inner != nil && r.structured == (tally{}) {
		return ofResult(r.inner, false)
	}
	return r.structured.total()
}

// OfAnswer returns the OfToolResult count of the result in an answer, and reads the answer once. ok is false for
// anything but one plain answer with a result (JSON-RPC 2.0 section 5): an error, a batch, a notification, or text that
// is not JSON. The caller must then read the text as a message first.
func OfAnswer(text []byte) (tokens int64, ok bool) {
	depth := strictjson.DefaultMaxDepth + 1 // the answer adds one level around the result
	s := strictjson.NewScanner(text, strictjson.Limits{MaxBytes: math.MaxInt, MaxDepth: depth})
	defer s.Release()
	if s.Kind() != strictjson.Object {
		return 0, false
	}
	var version, id bool
	var result toolResult
	found := false
	var object strictjson.ObjectFrame
	for s.OpenObject(&object); !s.Failed() && s.NextMember(&object); {
		switch name, kind := object.Name(), s.Kind(); {
		case string(name) == "jsonrpc":
			version = string(s.Skip()) == `"2.0"`
		case string(name) == "id" && (kind == strictjson.String || kind == strictjson.Number):
			id = kind == strictjson.String
			if raw := s.Skip(); !id {
				_, err := strconv.ParseInt(string(raw), 10, 64)
				id = err == nil
			}
		case string(name) == "result" && kind == strictjson.Object:
			result, found = readResult(s, true), true
		default:
			return 0, false
		}
	}
	if s.End() != nil || !version || !id || !found {
		return 0, false
	}
	return result.total(), true
}

// tally holds the counts of one value.
type tally struct {
	text   int64 // bytes of strings
	data   int64 // bytes of strings that are the data of a part, if one of the enclosing values turns out to be a part
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

// place describes the position of a value.
type place struct {
	schema bool // below tools, where objects are schemas and never parts
	tokens bool // in input or prompt, below arrays only, where numbers are tokens
	data   bool // below a member that holds data in a part
}

// walk tallies the next value. The scanner's limits bound its depth.
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
			part, plain = isPart(kind), string(kind) == "text"
			t.text += int64(len(kind))
			continue
		default:
			inner.data = isData(name)
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

// decoded returns the text behind a string that the reader gave, with its escapes resolved. Providers decode before
// they compare, so a type spelled with escapes must not hide its meaning.
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

// isPart reports whether a type names an image, audio or file part in the APIs of OpenAI, Anthropic and MCP.
func isPart(kind []byte) bool {
	switch string(kind) {
	case "image", "image_url", "input_image", "computer_screenshot",
		"audio", "input_audio", "video_url",
		"file", "input_file", "document", "resource":
		return true
	}
	return false
}

// isData reports whether a member holds the data of a part, or the data's address.
func isData(member []byte) bool {
	switch string(member) {
	case "url", "image_url", "file_url", "data", "file_data", "blob":
		return true
	}
	return false
}

// count reads a whole number above zero. Anything else is 0, and a number that is too large is the largest. A number in
// quotation marks counts too, with blanks, underscores and escapes in it: some servers read it as the number.
func count(lexeme []byte) int64 {
	if len(lexeme) > 0 && lexeme[0] == '"' {
		text := decoded(lexeme, bytes.IndexByte(lexeme, '\\') >= 0)
		lexeme = bytes.TrimSpace(bytes.ReplaceAll(text, []byte("_"), nil))
	}
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

// unescapedLength returns the UTF-8 length of a checked string after its escapes are resolved. inside is the string
// without its quotation marks.
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
			if r >= 0xD800 && r < 0xE000 { // the reader refuses lone surrogates
				i += 6
				n += 4
				continue
			}
			n += int64(utf8.RuneLen(rune(r)))
		}
	}
	return n
}
