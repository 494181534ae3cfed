// Package wire reads and writes the wire formats of the LLM runtime. These are the requests, answers, streams and
// errors of /chat/completions, /responses and /embeddings in OpenAI's format, and of /messages in Anthropic's.
//
// Members that decide something are read strictly: the model, whether the answer is a stream, the reservation. The
// client's own bytes are sent on. In a request only the value of model is replaced, and streamed chat completions get
// the request for usage. Members that are only counted (usage, text of answers) are read leniently: an answer that
// nobody can count is still the client's answer.
package wire
