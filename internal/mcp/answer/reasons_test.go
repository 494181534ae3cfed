package answer

import (
	"slices"
	"testing"

	"github.com/durward-gateway/durward/internal/proxy/sse"
)

// TestReasons checks that Dropped gets the reason for every dropped message.
func TestReasons(t *testing.T) {
	const (
		mine    = `{"jsonrpc":"2.0","id":1,"result":{}}`
		other   = `{"jsonrpc":"2.0","id":2,"result":{}}`
		asks    = `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}`
		command = `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`
	)
	message := func(texts ...string) func(*Answers) {
		return func(a *Answers) {
			for _, text := range texts {
				a.Message([]byte(text))
			}
		}
	}
	event := func(e sse.Event) func(*Answers) { return func(a *Answers) { a.Event(&e) } }
	refusal := func(text string) func(*Answers) { return func(a *Answers) { a.Refusal([]byte(text)) } }
	for name, tc := range map[string]struct {
		send func(*Answers)
		want []Reason
	}{
		"the answer":                    {message(mine), nil},
		"no JSON":                       {message("x"), []Reason{Unreadable}},
		"a member twice":                {message(`{"jsonrpc":"2.0","id":1,"result":{},"result":{}}`), []Reason{Unreadable}},
		"no notification's name":        {message(`{"jsonrpc":"2.0","method":"tools/call"}`), []Reason{Unreadable}},
		"an empty array":                {message("[]"), []Reason{Unreadable}},
		"another id":                    {message(other), []Reason{OtherID}},
		"two answers, and one more":     {message(mine, mine, mine), []Reason{Second, Second}},
		"a command to the client":       {message(command), []Reason{Request}},
		"each element of an array":      {message(`[` + other + `,` + mine + `,` + mine + `,` + command + `,3]`), []Reason{OtherID, Second, Request, Unreadable}},
		"an event of another name":      {event(sse.Event{Name: "endpoint", Data: []byte("/mcp/other"), HasData: true}), []Reason{EventName}},
		"an event that no reader knows": {event(sse.Event{Strange: true}), []Reason{Unreadable}},
		"an error's body that asks":     {refusal(asks), []Reason{Request}},
		"an error's body for another":   {refusal(other), []Reason{OtherID}},
		"an error's body, read twice":   {refusal(`{"id":1,"method":"x","method":"y"}`), []Reason{Unreadable}},
	} {
		t.Run(name, func(t *testing.T) {
			var told []Reason
			a := Answers{Asks: true, Batches: true, Mark: slices.Clone[[]byte], Dropped: func(why Reason) { told = append(told, why) }}
			a.Expect([]byte("1"))
			if tc.send(&a); !slices.Equal(told, tc.want) {
				t.Errorf("told %q, want %q", told, tc.want)
			}
		})
	}
	a := Answers{} // servers ask nothing of a client of 2026-07-28
	a.Dropped = func(why Reason) {
		if why != Request {
			t.Errorf("told %q", why)
		}
	}
	if a.Message([]byte(asks)) != nil {
		t.Error("a question passed")
	}
}
