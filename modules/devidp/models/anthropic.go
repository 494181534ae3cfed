package models

import (
	"encoding/json"
	"net/http"
)

// complainAnthropic answers an error as Anthropic does.
func complainAnthropic(w http.ResponseWriter, status int, kind, message string) {
	write(w, status, object{"type": "error", "error": object{"type": kind, "message": message}})
}

// messages answers POST /v1/messages.
func (p *provider) messages(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Model     string    `json:"model"`
		System    content   `json:"system"`
		Messages  []message `json:"messages"`
		MaxTokens int       `json:"max_tokens"`
		Stream    bool      `json:"stream"`
		Tools     []struct {
			Name        string          `json:"name"`
			InputSchema json.RawMessage `json:"input_schema"`
		} `json:"tools"`
		ToolChoice json.RawMessage `json:"tool_choice"`
	}
	if !read(w, r, &asked, complainAnthropic) {
		return
	}
	if asked.MaxTokens < 1 {
		complainAnthropic(w, http.StatusBadRequest, "invalid_request_error", "max_tokens: a number of 1 or more is required")
		return
	}
	q := prompt{model: asked.Model, system: asked.System.text, messages: asked.Messages, choice: choiceOf(asked.ToolChoice), most: asked.MaxTokens}
	for _, t := range asked.Tools {
		q.tools = append(q.tools, tool{t.Name, t.InputSchema})
	}
	answer, ok := q.answer()
	if !ok {
		complainAnthropic(w, http.StatusNotFound, "not_found_error", "The demo provider has no model "+q.model+".")
		return
	}
	stop := "end_turn"
	switch {
	case answer.tool != "":
		stop = "tool_use"
	case answer.cut:
		stop = "max_tokens"
	}
	usage := func(output int) object {
		return object{"input_tokens": q.input(), "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": output}
	}
	whole := object{
		"id": p.id("msg_"), "type": "message", "role": "assistant", "model": q.model, "content": []object{}, "stop_reason": nil, "stop_sequence": nil,
	}
	block := object{"type": "text", "text": ""}
	if answer.tool != "" {
		block = object{"type": "tool_use", "id": p.id("toolu_"), "name": answer.tool, "input": object{}}
	}
	if !asked.Stream {
		if answer.tool != "" {
			block["input"] = answer.arguments
		} else {
			block["text"] = answer.text
		}
		whole["content"], whole["stop_reason"], whole["usage"] = []object{block}, stop, usage(answer.output())
		write(w, http.StatusOK, whole)
		return
	}
	s := p.stream(w, r, true)
	whole["usage"] = usage(1)
	s.send(object{"type": "message_start", "message": whole})
	s.send(object{"type": "content_block_start", "index": 0, "content_block": block})
	for _, piece := range answer.pieces() {
		if !s.wait() {
			return
		}
		delta := object{"type": "text_delta", "text": piece}
		if answer.tool != "" {
			delta = object{"type": "input_json_delta", "partial_json": piece}
		}
		s.send(object{"type": "content_block_delta", "index": 0, "delta": delta})
	}
	s.send(object{"type": "content_block_stop", "index": 0})
	s.send(object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": answer.output()}})
	s.send(object{"type": "message_stop"})
}
