package wire

import (
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
)

// Usage holds the tokens that a call used.
type Usage struct {
	// Input counts all tokens of the prompt, including those that came from a cache or were written to one. OpenAI
	// counts in the same way. Anthropic's input_tokens exclude both, so all three numbers are added up.
	Input int64
	// Output counts all tokens that the model wrote, thinking included.
	Output int64
	// Cached is the part of Input that was read from a cache.
	Cached int64
	// Known reports whether the upstream sent the final numbers. Otherwise they are estimates, or 0.
	Known bool
	// Written is the part of Input that was written to a cache. Written1h is the part of Written that is kept there for
	// an hour. Some providers charge for writes, and more for the hour.
	Written, Written1h int64
}

// Total returns the number that limits on tokens count.
func (u Usage) Total() int64 { return u.Input + u.Output }

// mostTokens is the largest number that is believed. It is far above the range of any model.
const mostTokens = 100_000_000

// AnswerUsage reads the usage in a JSON answer. It returns Usage{} when there is none, or none that can be true.
func AnswerUsage(endpoint limit.Endpoint, body []byte) Usage {
	c := cursor{b: body}
	var t told
	for name := range c.members {
		if string(name) == "usage" {
			t.read(&c)
		} else {
			c.skip()
		}
	}
	return t.usage(endpoint)
}

// AnswerModel returns the provider's name of the model in a JSON answer; "" when there is none.
func AnswerModel(body []byte) (model string) {
	c := cursor{b: body}
	for name := range c.members {
		if string(name) == "model" {
			model = string(c.text())
		} else {
			c.skip()
		}
	}
	return model
}

// AnswerUsed returns the [AnswerUsage]. When that is not known it returns an estimate from r and the text in the
// answer. An answer with text but without output tokens is estimated too, as in [Stream.Used].
func AnswerUsed(r *Request, body []byte) Usage {
	u := AnswerUsage(r.Endpoint, body)
	if u.Known && u.Output > 0 {
		return u
	}
	text := answerText(r.Endpoint, body)
	if u.Known && text == 0 {
		return u
	}
	return u.or(EstimateUsed(r, text))
}

// or returns an estimate that keeps the known numbers of the prompt and does not lower a known output.
func (u Usage) or(estimate Usage) Usage {
	if u.Input > 0 {
		estimate.Input, estimate.Cached, estimate.Written, estimate.Written1h = u.Input, u.Cached, u.Written, u.Written1h
	}
	estimate.Output = max(estimate.Output, u.Output)
	return estimate
}

// EstimateUsed returns the assumed usage of a call without reported usage: the estimate of the prompt, and one token
// for four of outputBytes, the bytes of text that came back.
func EstimateUsed(r *Request, outputBytes int64) Usage { return estimateUsed(r.Estimate, outputBytes) }

func estimateUsed(e limit.Estimate, outputBytes int64) Usage {
	u := Usage{Input: e.Prompt}
	if e.Output {
		u.Output = limit.OfBytes(outputBytes)
	}
	return u
}

// PerChoice returns the output tokens of one choice. limit.Means learns from it.
func (r *Request) PerChoice(output int64) int64 {
	choices := max(r.Estimate.Choices, 1)
	return max(output, 0)/choices + min(max(output, 0)%choices, 1)
}

// answerText returns the number of bytes of text in a JSON answer.
func answerText(endpoint limit.Endpoint, body []byte) (n int64) {
	var holds string
	switch endpoint {
	case limit.ChatCompletions:
		holds = "choices"
	case limit.Responses:
		holds = "output"
	case limit.Messages:
		holds = "content"
	default:
		return 0
	}
	c := cursor{b: body}
	for name := range c.members {
		if string(name) == holds {
			n += c.textBytes()
		} else {
			c.skip()
		}
	}
	return n
}

// told holds the numbers that an upstream reported, for both API families. Later numbers replace earlier ones.
type told struct {
	prompt, completion number // OpenAI: prompt_tokens, completion_tokens, or input_tokens, output_tokens
	cached             number // OpenAI: cached_tokens; Anthropic: cache_read_input_tokens; DeepSeek: prompt_cache_hit_tokens
	written            number // Anthropic: cache_creation_input_tokens; OpenRouter: cache_write_tokens
	written5m          number // Anthropic, of cache_creation: ephemeral_5m_input_tokens
	written1h          number // and ephemeral_1h_input_tokens
}

// number is a count of tokens: absent, valid, or not to be believed.
type number struct {
	n           int64
	given, wild bool
}

// read reads a usage object, at which c stands. null reports nothing. The numbers of cache reads and writes have many
// names. Some servers send two of them at once, and one of the two may be 0.
func (t *told) read(c *cursor) {
	var cached, written number
	for name := range c.members {
		switch string(name) {
		case "prompt_tokens", "input_tokens":
			t.prompt.read(c)
		case "completion_tokens", "output_tokens":
			t.completion.read(c)
		case "cache_read_input_tokens", "cached_tokens", "prompt_cache_hit_tokens":
			cached.most(c)
		case "cache_creation_input_tokens":
			written.most(c)
		case "cache_creation":
			for name := range c.members {
				switch string(name) {
				case "ephemeral_5m_input_tokens":
					t.written5m.read(c)
				case "ephemeral_1h_input_tokens":
					t.written1h.read(c)
				default:
					c.skip()
				}
			}
		case "prompt_tokens_details", "input_tokens_details":
			for name := range c.members {
				switch string(name) {
				case "cached_tokens", "cache_read_tokens":
					cached.most(c)
				case "cache_write_tokens", "cache_creation_tokens":
					written.most(c)
				default:
					c.skip()
				}
			}
		default:
			c.skip()
		}
	}
	if cached.given {
		t.cached = cached
	}
	if written.given {
		t.written = written
	}
}

// most reads a number. It keeps the new one when that is higher than the one before, or is not to be believed.
func (n *number) most(c *cursor) {
	before := *n
	if n.read(c); before.wild || before.n > n.n && !n.wild {
		*n = before
	}
}

func (n *number) read(c *cursor) {
	text := c.skip()
	if string(text) == "null" {
		return
	}
	*n = number{given: true}
	if len(text) == 0 || len(text) > 10 {
		n.wild = true
		return
	}
	for _, d := range text {
		if d < '0' || d > '9' {
			n.n, n.wild = 0, true
			return
		}
		n.n = n.n*10 + int64(d-'0')
	}
	if n.n > mostTokens {
		n.n, n.wild = 0, true
	}
}

// atLeast raises numbers to those of before.
func (t *told) atLeast(before *told) {
	t.prompt.n = max(t.prompt.n, before.prompt.n)
	t.completion.n = max(t.completion.n, before.completion.n)
	t.cached.n = max(t.cached.n, before.cached.n)
	t.written.n = max(t.written.n, before.written.n)
	t.written5m.n = max(t.written5m.n, before.written5m.n)
	t.written1h.n = max(t.written1h.n, before.written1h.n)
}

// usage interprets the numbers. Some servers send zero for all when they did not count.
func (t *told) usage(endpoint limit.Endpoint) Usage {
	if t.prompt.wild || t.completion.wild || t.cached.wild || t.written.wild || t.written5m.wild || t.written1h.wild {
		return Usage{}
	}
	// Some servers send only the sum, and some send the sum with parts that are 0.
	u := Usage{Input: t.prompt.n, Output: t.completion.n, Cached: t.cached.n, Written: max(t.written.n, t.written5m.n+t.written1h.n), Written1h: t.written1h.n}
	switch endpoint {
	case limit.Messages:
		u.Input += u.Cached + u.Written
	case limit.Embeddings:
		u.Output = 0
	}
	u.Cached = min(u.Cached, u.Input)
	u.Written = min(u.Written, u.Input-u.Cached)
	u.Written1h = min(u.Written1h, u.Written)
	if u.Total() == 0 {
		return Usage{}
	}
	u.Known = true
	return u
}
