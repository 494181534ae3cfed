// Package llmwire is the wire formats of the LLM runtime: requests, answers, streams and errors of /chat/completions,
// /responses and /embeddings as OpenAI has them, and of /messages as Anthropic has it.
//
// What decides (which model, whether the answer is a stream, what is reserved) is read strictly, and what leaves is the
// client's own bytes: of a request only the value of model is replaced, and the wish for usage is put into streamed chat
// completions. What only counts (usage, text of answers) is read leniently: an answer that nobody can count is still the
// client's answer.
package llmwire
