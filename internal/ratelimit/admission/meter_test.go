package admission

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/storage"
)

// result is an answer whose text counts as 11 tokens: 44 bytes with the type.
const result = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"0123456789012345678901234567890123456789"}]}}`

// TestMeteredAnswers checks that results of tools count on every way on which they come, and that the tokens of a call
// which did not come are given back (T07).
func TestMeteredAnswers(t *testing.T) {
	task := `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t","status":"completed","result":{"content":[{"type":"text","text":"0123456789012345678901234567890123456789"}]}}}`
	for _, tc := range []struct {
		name, text string
		kind       forward.Kind
		whole      bool
		results    int64
		tokens     int64
	}{
		{"a result", result, forward.JSON, false, 1, 11},
		{"a result that was read", result, forward.JSON, true, 1, 11},
		{"an event", "data: " + result + "\n\n", forward.Events, false, 1, 11},
		{"a batch", "[" + result + "," + result + "]", forward.JSON, true, 2, 22},
		{"more results than were asked for", "[" + result + "," + result + "]", forward.JSON, true, 1, 22},
		{"a task that has ended", "data: " + task + "\n\n", forward.Events, false, 1, 11},
		{"an answer that broke off", result[:80], forward.JSON, false, 1, 20},
		{"an error", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}`, forward.JSON, true, 1, 0},
		{"plain text", "0123456789", forward.Other, false, 1, 0},
	} {
		t.Run("T07 "+tc.name, func(t *testing.T) {
			g := newGate(t, rate(everybody, 0, 10_000))
			c := counted()
			if refused, err := g.Charge(t.Context(), c, Work{Requests: tc.results, Results: tc.results}); refused != nil || err != nil {
				t.Fatal(refused, err)
			}
			if _, reserved := g.used(t); reserved != 256*tc.results {
				t.Errorf("%d tokens were reserved", reserved)
			}
			answer := &forward.Response{Kind: tc.kind, Body: strings.NewReader(tc.text)}
			if tc.whole {
				answer.SetBody([]byte(tc.text))
			}
			done := g.MeterAnswer(t.Context(), c, answer, 500)
			if !tc.whole {
				if passed, err := io.ReadAll(answer.Body); err != nil || string(passed) != tc.text {
					t.Errorf("%q, %v passed", passed, err)
				}
			}
			done()
			c.State.Settle()
			if _, tokens := g.used(t); tokens != tc.tokens {
				t.Errorf("%d tokens are counted, want %d", tokens, tc.tokens)
			}
		})
	}
}

// TestUnmeteredAnswers checks that an answer stays unchanged when no limit counts its tokens, or when the limits cannot
// be read any more.
func TestUnmeteredAnswers(t *testing.T) {
	for _, tc := range []struct {
		name  string
		limit storage.RateLimit
		mark  func(*State)
		err   error
	}{
		{"no limit on tokens", rate(everybody, 10, 0), (*State).Count, nil},
		{"limits are off", rate(everybody, 0, 10), (*State).Exempt, nil},
		{"limits that cannot be read", rate(everybody, 0, 10), (*State).Count, errors.New("away")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newGate(t, tc.limit)
			g.err = tc.err
			c := counted()
			*c.State = State{}
			tc.mark(c.State)
			body := strings.NewReader(result)
			answer := &forward.Response{Kind: forward.JSON, Body: body}
			g.MeterAnswer(t.Context(), c, answer, 500)()
			g.MeterText(t.Context(), c, []byte(result))
			if answer.Body != io.Reader(body) {
				t.Error("the answer is read")
			}
			g.err = nil
			if _, tokens := g.used(t); tokens != 0 {
				t.Errorf("%d tokens are counted", tokens)
			}
		})
	}
}

// TestResultsOfOtherCalls checks that a result counts on the stream of a call that asked for none, in the limits of that
// moment.
func TestResultsOfOtherCalls(t *testing.T) {
	g := newGate(t)
	c := counted()
	if refused, err := g.Charge(t.Context(), c, Work{Requests: 1}); refused != nil || err != nil {
		t.Fatal(refused, err)
	}
	g.set(rate(everybody, 0, 100))
	g.MeterText(t.Context(), c, []byte(result))
	if _, tokens := g.used(t); tokens != 11 {
		t.Errorf("%d tokens are counted", tokens)
	}
}

// TestLimitsUnreadAfterCharge checks that a result counts by the limits that counted its call, or that counted its stream
// before, when the limits cannot be read any more. Nothing of the reservation is given back for a result that came.
func TestLimitsUnreadAfterCharge(t *testing.T) {
	for _, results := range []int64{1, 0} {
		g := newGate(t, rate(everybody, 0, 1000))
		c := counted()
		if refused, err := g.Charge(t.Context(), c, Work{Requests: 1, Results: results}); refused != nil || err != nil {
			t.Fatal(refused, err)
		}
		g.err = errors.New("away")
		g.epochs.Bump(acme)
		answer := &forward.Response{Kind: forward.JSON}
		answer.SetBody([]byte(result))
		g.MeterAnswer(t.Context(), c, answer, 500)()
		c.State.Settle()
		g.err = nil
		if _, tokens := g.used(t); tokens != 11 {
			t.Errorf("%d tokens are counted", tokens)
		}
	}
}

// TestLimitMadeDuringAStream checks that results on a stream which waits for events count from the moment on when a limit
// counts tokens, and no longer than that.
func TestLimitMadeDuringAStream(t *testing.T) {
	g := newGate(t)
	const event = "data: " + result + "\n\n"
	at := func(change func()) io.Reader {
		return io.MultiReader(readerFunc(func([]byte) (int, error) { change(); return 0, io.EOF }), strings.NewReader(event))
	}
	limited := func() { g.set(rate(everybody, 0, 1000)) }
	for _, exempt := range []bool{false, true} {
		g.set()
		answer := &forward.Response{Kind: forward.Events, Body: io.MultiReader(
			strings.NewReader(event), at(limited), strings.NewReader(event), at(func() { g.set() }), at(limited))}
		c := counted()
		if exempt {
			*c.State = State{}
			c.State.Exempt()
		}
		g.MeterStream(t.Context(), c, answer, 500)
		if passed, err := io.ReadAll(answer.Body); err != nil || string(passed) != strings.Repeat(event, 5) {
			t.Errorf("%q, %v passed", passed, err)
		}
		if _, tokens := g.used(t); tokens != 33 { // only of the stream that counts
			t.Errorf("exempt %v: %d tokens are counted", exempt, tokens)
		}
	}
}

type readerFunc func(p []byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
