package wire

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
)

func requestOf(size int) []byte {
	return []byte(`{"model":"fast","stream":true,"messages":[{"role":"system","content":"You help."},{"role":"user","content":"` +
		strings.Repeat("word ", size/5) + `"}],"max_tokens":100,"temperature":0.7}`)
}

var sizes = []struct {
	name string
	size int
}{{"220B", 100}, {"2KB", 1900}, {"10KB", 9900}}

func BenchmarkParseRequest(b *testing.B) {
	for _, s := range sizes {
		body := requestOf(s.size)
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseRequest(limit.ChatCompletions, body, 16<<20); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkBody(b *testing.B) {
	for _, s := range sizes {
		r := parse(b, limit.ChatCompletions, string(requestOf(s.size)))
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Body("gpt-4o-mini")
			}
		})
	}
}

func BenchmarkLastUser(b *testing.B) {
	r := parse(b, limit.ChatCompletions, string(requestOf(9900)))
	b.ReportAllocs()
	for b.Loop() {
		r.LastUser()
	}
}

func BenchmarkAnswerUsage(b *testing.B) {
	for name, body := range map[string]string{
		"chat": chatAnswer, "messages": messagesAnswer,
		"chat10KB":      strings.Replace(chatAnswer, "Hello!", strings.Repeat("word ", 2000), 1),
		"embeddings30K": strings.Replace(embeddingsAnswer, "0.0023064255", strings.TrimSuffix(strings.Repeat("-0.009327292,", 2300), ","), 1),
	} {
		answer := []byte(body)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(answer)))
			b.ReportAllocs()
			for b.Loop() {
				if !AnswerUsage(limit.ChatCompletions, answer).Known {
					b.Fatal("unknown")
				}
			}
		})
	}
}

// BenchmarkStream reads one event in the middle of a stream, alone.
func BenchmarkStream(b *testing.B) {
	for _, s := range []struct {
		name     string
		endpoint limit.Endpoint
		event    string
	}{
		{"chat", limit.ChatCompletions, chatHello},
		{"responses", limit.Responses, responsesStream[strings.Index(responsesStream, "event: response.output_text.delta"):][:strings.Index(responsesStream, "event: response.output_item")]},
		{"messages", limit.Messages, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"Okay\"}}\n\n"},
	} {
		event := []byte(s.event)
		if i := bytes.Index(event, []byte("\n\n")); i > 0 {
			event = event[:i+2]
		}
		b.Run(s.name, func(b *testing.B) {
			stream := NewStream(parse(b, s.endpoint, streamed), &eventReader{event})
			p := make([]byte, 4<<10)
			b.SetBytes(int64(len(event)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := stream.Read(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// eventReader gives one event with each read.
type eventReader struct{ event []byte }

func (r *eventReader) Read(p []byte) (int, error) { return copy(p, r.event), nil }

// BenchmarkWholeStream reads a stream of 50 chunks from start to end.
func BenchmarkWholeStream(b *testing.B) {
	r := parse(b, limit.ChatCompletions, streamed)
	in := chatStart + strings.Repeat(chatHello, 48) + chatStop + chatUsage + chatDone
	p := make([]byte, 4<<10)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		s := NewStream(r, strings.NewReader(in))
		for {
			if _, err := s.Read(p); err == io.EOF {
				break
			}
		}
		if !s.Used().Known {
			b.Fatal(fmt.Sprint(s.Used()))
		}
	}
}
