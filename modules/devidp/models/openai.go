package models

import (
	"encoding/json"
	"net/http"
)

// complain answers an error as OpenAI does.
func complain(w http.ResponseWriter, status int, kind, message string) {
	write(w, status, object{"error": object{"message": message, "type": "invalid_request_error", "param": nil, "code": kind}})
}

func noModel(w http.ResponseWriter, model string) {
	complain(w, http.StatusNotFound, "model_not_found", "The demo provider has no model "+model+" for this.")
}

// chatRequest holds the known members of a request to POST /v1/chat/completions.
type chatRequest struct {
	Model               string    `json:"model"`
	Messages            []message `json:"messages"`
	Stream              bool      `json:"stream"`
	MaxTokens           int       `json:"max_tokens"`
	MaxCompletionTokens int       `json:"max_completion_tokens"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []struct {
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	ToolChoice json.RawMessage `json:"tool_choice"`
}

// chat answers POST /v1/chat/completions.
func (p *provider) chat(w http.ResponseWriter, r *http.Request) {
	var asked chatRequest
	if !read(w, r, &asked, complain) {
		return
	}
	q := prompt{model: asked.Model, messages: asked.Messages, choice: choiceOf(asked.ToolChoice), most: max(asked.MaxTokens, asked.MaxCompletionTokens)}
	q.takeSystem()
	for _, t := range asked.Tools {
		q.tools = append(q.tools, tool{t.Function.Name, t.Function.Parameters})
	}
	answer, ok := q.answer()
	if !ok {
		noModel(w, q.model)
		return
	}
	c := completion{p: p, model: q.model, answer: answer, finish: "stop"}
	switch {
	case answer.tool != "":
		c.finish = "tool_calls"
	case answer.cut:
		c.finish = "length"
	}
	c.usage = object{"prompt_tokens": q.input(), "completion_tokens": answer.output(), "total_tokens": q.input() + answer.output()}
	if asked.Stream {
		c.stream(p.stream(w, r, false), asked.StreamOptions.IncludeUsage)
		return
	}
	write(w, http.StatusOK, c.whole())
}

// completion is the answer to a chat.
type completion struct {
	p      *provider
	model  string
	answer reply
	finish string // why it ends
	usage  object
}

func (c *completion) head(kind string) object {
	return object{"id": c.p.id("chatcmpl-"), "object": kind, "created": c.p.Now().Unix(), "model": c.model}
}

// whole returns the completion in one object.
func (c *completion) whole() object {
	said := object{"role": "assistant", "content": c.answer.text, "refusal": nil}
	if c.answer.tool != "" {
		said["content"], said["tool_calls"] = nil, []object{{
			"id": c.p.id("call_"), "type": "function", "function": object{"name": c.answer.tool, "arguments": string(c.answer.arguments)},
		}}
	}
	whole := c.head("chat.completion")
	whole["choices"], whole["usage"] = []object{{"index": 0, "message": said, "logprobs": nil, "finish_reason": c.finish}}, c.usage
	return whole
}

// stream sends the completion in pieces, and the usage at the end if it was asked for.
func (c *completion) stream(s *stream, usage bool) {
	chunk := c.head("chat.completion.chunk")
	delta := func(delta object, finish any) {
		chunk["choices"] = []object{{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}
		s.send(chunk)
	}
	first := object{"role": "assistant", "content": ""}
	if c.answer.tool != "" {
		first["content"], first["tool_calls"] = nil, []object{{
			"index": 0, "id": c.p.id("call_"), "type": "function", "function": object{"name": c.answer.tool, "arguments": ""},
		}}
	}
	delta(first, nil)
	for _, piece := range c.answer.pieces() {
		if !s.wait() {
			return
		}
		if c.answer.tool != "" {
			delta(object{"tool_calls": []object{{"index": 0, "function": object{"arguments": piece}}}}, nil)
			continue
		}
		delta(object{"content": piece}, nil)
	}
	delta(object{}, c.finish)
	if usage {
		chunk["choices"], chunk["usage"] = []object{}, c.usage
		s.send(chunk)
	}
	s.raw("[DONE]")
}

// responses answers POST /v1/responses, with texts only.
func (p *provider) responses(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Model           string          `json:"model"`
		Instructions    string          `json:"instructions"`
		Input           json.RawMessage `json:"input"`
		Stream          bool            `json:"stream"`
		MaxOutputTokens int             `json:"max_output_tokens"`
	}
	if !read(w, r, &asked, complain) {
		return
	}
	q := prompt{model: asked.Model, system: asked.Instructions, most: asked.MaxOutputTokens}
	var text string
	if json.Unmarshal(asked.Input, &text) == nil {
		q.messages = []message{{Role: "user", Content: content{text: text}}}
	} else if json.Unmarshal(asked.Input, &q.messages) != nil {
		complain(w, http.StatusBadRequest, "invalid_request_error", "The input is neither a text nor a list of messages.")
		return
	}
	q.takeSystem()
	answer, ok := q.answer()
	if !ok {
		noModel(w, q.model)
		return
	}
	part := func(text string) object { return object{"type": "output_text", "text": text, "annotations": []any{}} }
	item := object{"type": "message", "id": p.id("msg_"), "role": "assistant", "status": "in_progress", "content": []object{}}
	response := object{
		"id": p.id("resp_"), "object": "response", "created_at": p.Now().Unix(), "status": "in_progress", "model": q.model, "output": []object{},
		"error": nil, "incomplete_details": nil, "instructions": asked.Instructions, "metadata": object{}, "tools": []any{}, "usage": nil,
	}
	finish := func() {
		item["status"], item["content"] = "completed", []object{part(answer.text)}
		response["status"], response["output"] = "completed", []object{item}
		if answer.cut {
			response["status"], response["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
		}
		response["usage"] = object{
			"input_tokens": q.input(), "input_tokens_details": object{"cached_tokens": 0},
			"output_tokens": answer.output(), "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": q.input() + answer.output(),
		}
	}
	if !asked.Stream {
		finish()
		write(w, http.StatusOK, response)
		return
	}
	s := p.stream(w, r, true)
	serial := 0
	send := func(kind string, event object) {
		event["type"], event["sequence_number"] = kind, serial
		serial++
		s.send(event)
	}
	at := func(event object) object {
		event["item_id"], event["output_index"], event["content_index"] = item["id"], 0, 0
		return event
	}
	send("response.created", object{"response": response})
	send("response.output_item.added", object{"output_index": 0, "item": item})
	send("response.content_part.added", at(object{"part": part("")}))
	for _, piece := range answer.pieces() {
		if !s.wait() {
			return
		}
		send("response.output_text.delta", at(object{"delta": piece}))
	}
	send("response.output_text.done", at(object{"text": answer.text}))
	send("response.content_part.done", at(object{"part": part(answer.text)}))
	finish()
	send("response.output_item.done", object{"output_index": 0, "item": item})
	if answer.cut {
		send("response.incomplete", object{"response": response})
		return
	}
	send("response.completed", object{"response": response})
}
