package wire

import (
	"bytes"

	"github.com/durward-gateway/durward/internal/proxy/sse"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
)

// look reads the usage, the text and the state of an event, and reports whether it is the chunk to hide.
func (s *Stream) look(e *sse.Event) (hide bool) {
	c := cursor{b: e.Data}
	switch s.endpoint {
	case limit.Messages:
		s.messages(&c, e)
	case limit.Responses:
		s.responses(&c, e)
	default:
		if e.Name == "error" && !s.failed {
			s.failed, s.failure = true, Failure{Status: 500}
		}
		return s.chat(&c)
	}
	return false
}

// chat reads a chunk of a chat completion.
func (s *Stream) chat(c *cursor) (hide bool) {
	// Some servers write null for no choices, or leave them out.
	choices, empty, counted, wrong := 0, true, false, false
	var usage told
	for name := range c.members {
		switch string(name) {
		case "choices":
			empty = c.next() == '[' || c.next() == 'n'
			for range c.elements {
				choices++
				s.choice(c)
			}
		case "usage":
			counted = c.next() == '{'
			usage.read(c)
		case "model":
			s.named(c)
		case "error":
			wrong = c.next() != 'n'
			s.fail(c)
		default:
			c.skip()
		}
	}
	if s.output > 0 || s.finished > 0 {
		s.delivers = true
	}
	if !counted {
		return false
	}
	// Some servers send a running count with every chunk: the last numbers count.
	s.told, s.final = usage, true
	return s.hide && empty && choices == 0 && !wrong
}

func (s *Stream) choice(c *cursor) {
	for name := range c.members {
		switch string(name) {
		case "delta", "message":
			s.delta(c)
		case "text":
			s.output += c.textBytes()
		case "finish_reason":
			switch reason := c.text(); {
			case string(reason) == "error": // from OpenRouter, with the error beside the choices or in this one
				if !s.failed {
					s.failed, s.failure = true, Failure{Status: 500}
				}
			case len(reason) > 0:
				s.finished++
			}
		case "error":
			s.fail(c)
		default:
			c.skip()
		}
	}
}

// delta counts the text that a model wrote. Reasoning has several names, and some servers use two of them at once.
func (s *Stream) delta(c *cursor) {
	var reasoning int64
	for name := range c.members {
		switch string(name) {
		case "reasoning", "reasoning_content", "thinking":
			reasoning = max(reasoning, c.textBytes())
		case "content", "refusal", "tool_calls", "function_call":
			s.output += c.textBytes()
		case "role":
			c.skip()
		default: // audio, images, and anything else
			switch string(c.skip()) {
			case "null", `""`, "[]", "{}":
			default:
				s.delivers = true
			}
		}
	}
	s.output += reasoning
}

// responses reads an event of the Responses API. Its type is also in the data.
func (s *Stream) responses(c *cursor, e *sse.Event) {
	var kind []byte
	var delta int64
	var response, failed cursor
	for name := range c.members {
		switch string(name) {
		case "type":
			kind = c.text()
		case "sequence_number":
			s.sequence = parseNumber(c.skip()) + 1
		case "delta":
			delta = c.textBytes()
		case "response":
			response.b = c.skip()
		case "error", "code":
			failed = cursor{b: c.skip()}
		default:
			c.skip()
		}
	}
	if kind == nil {
		kind = []byte(e.Name)
	}
	switch string(kind) {
	case "response.created", "response.in_progress", "response.queued", "keepalive":
	case "response.completed", "response.incomplete", "response.failed":
		s.ended(&response, string(kind) == "response.failed", &failed)
	case "error":
		s.failBy(&failed)
	case "response.audio.delta", "response.output_audio.delta": // data, not text
		s.delivers = true
	default:
		s.delivers = true
		if bytes.HasSuffix(kind, []byte(".delta")) {
			s.output += delta
		}
	}
}

// ended reads the last state of a response. failed is the error beside it, where there is one.
func (s *Stream) ended(response *cursor, failure bool, failed *cursor) {
	s.done = true
	s.delivers = s.delivers || !failure
	for name := range response.members {
		switch string(name) {
		case "usage":
			s.told, s.final = told{}, true
			s.told.read(response)
		case "error":
			*failed = cursor{b: response.skip()}
		case "model":
			s.named(response)
		default:
			response.skip()
		}
	}
	if failure {
		s.failBy(failed)
	}
}

// messages reads an event of Anthropic's API.
func (s *Stream) messages(c *cursor, e *sse.Event) {
	var kind []byte
	var usage, delta, failed cursor
	for name := range c.members {
		switch string(name) {
		case "type":
			kind = c.text()
		case "message":
			for name := range c.members {
				switch string(name) {
				case "usage":
					usage.b = c.skip()
				case "model":
					s.named(c)
				default:
					c.skip()
				}
			}
		case "usage":
			usage.b = c.skip()
		case "delta", "content_block":
			delta.b = c.skip()
		case "error":
			failed.b = c.skip()
		default:
			c.skip()
		}
	}
	if kind == nil {
		kind = []byte(e.Name)
	}
	switch string(kind) {
	case "ping":
		return
	case "message_start":
		s.told.read(&usage)
		return
	case "message_delta":
		// The numbers are cumulative. Missing ones keep their value from message_start.
		before := s.told
		s.told.read(&usage)
		s.told.atLeast(&before)
		s.final = s.final || len(usage.b) > 0
	case "content_block_start", "content_block_delta":
		s.block(&delta)
	case "message_stop":
		s.done = true
	case "error":
		s.failBy(&failed)
		return
	}
	s.delivers = true
}

// block counts the text of a content block, or of a part of one.
func (s *Stream) block(c *cursor) {
	for name := range c.members {
		switch string(name) {
		case "text", "partial_json", "thinking", "name":
			s.output += c.textBytes()
		default:
			c.skip()
		}
	}
}

// failBy records an error of the upstream: the one at which c stands, or an unknown one when there is no description.
func (s *Stream) failBy(c *cursor) {
	s.failed = true
	if f, told := failure(c); told || s.failure.Status == 0 {
		s.failure = f
	}
}

// fail records an error of the upstream, at which c stands, if it is one.
func (s *Stream) fail(c *cursor) {
	if f, told := failure(c); told {
		s.failed, s.failure = true, f
	}
}

// printable returns text for logs and breakers. It returns "" when the text has characters that codes do not have.
func printable(text []byte) string {
	if len(text) > 64 {
		return ""
	}
	for _, c := range text {
		if c <= ' ' || c >= 0x7F || c == '"' || c == '\\' {
			return ""
		}
	}
	return string(text)
}
