package smart

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var changed = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// model returns a smart model of three slots. From 1,000 tokens on requests do not go to the first one, from 10,000 on
// only to the last.
func model() *storage.SmartModel {
	return &storage.SmartModel{
		ID: "m", OrganizationID: "o", Alias: "smart", Enabled: true, DeterminerAlias: "judge",
		Slots:       []storage.ModelSlot{{Alias: "small", Label: "small talk"}, {Alias: "middle", Label: "questions"}, {Alias: "large", Label: "proofs"}},
		Breakpoints: []int{1000, 10000}, DeterminerInputMaxChars: 100, DefaultSlot: 1, UpdatedAt: changed,
	}
}

// says returns an Asker that always gives the same answer.
func says(text string) Asker {
	return func(context.Context, string, Prompt) (string, error) { return text, nil }
}

func fails(err error) Asker {
	return func(context.Context, string, Prompt) (string, error) { return "1", err }
}

func neverAsked(t *testing.T) Asker {
	return func(context.Context, string, Prompt) (string, error) {
		t.Error("the determiner was asked")
		return "0", nil
	}
}

var noErr = cmpopts.IgnoreFields(Decision{}, "Err")

func TestRoute(t *testing.T) {
	timeout := timeoutError{}
	for name, c := range map[string]struct {
		tokens int64
		change func(*storage.SmartModel)
		ask    Asker // nil: must not be asked
		want   Decision
	}{
		"the answer":               {0, nil, says("0"), Decision{Alias: "small", Slot: 0, Answer: 0, Reason: ByDeterminer}},
		"white space around":       {0, nil, says("\r\n 2\t\n"), Decision{Alias: "large", Slot: 2, Answer: 2, Reason: ByDeterminer}},
		"below a breakpoint":       {999, nil, says("0"), Decision{Alias: "small", Slot: 0, Answer: 0, Reason: ByDeterminer}},
		"at a breakpoint":          {1000, nil, says("0"), Decision{Alias: "middle", Slot: 1, Floor: 1, Answer: 0, Reason: ByFloor}},
		"the floor itself":         {1000, nil, says("1"), Decision{Alias: "middle", Slot: 1, Floor: 1, Answer: 1, Reason: ByDeterminer}},
		"above the floor":          {9999, nil, says("2"), Decision{Alias: "large", Slot: 2, Floor: 1, Answer: 2, Reason: ByDeterminer}},
		"the last slot":            {10000, nil, nil, Decision{Alias: "large", Slot: 2, Floor: 2, Answer: NoAnswer, Reason: ByFloor}},
		"an endless request":       {1 << 62, nil, nil, Decision{Alias: "large", Slot: 2, Floor: 2, Answer: NoAnswer, Reason: ByFloor}},
		"an error":                 {0, nil, fails(errors.New("no")), Decision{Alias: "middle", Slot: 1, Answer: NoAnswer, Reason: ByError}},
		"a time-out of the asker":  {0, nil, fails(timeout), Decision{Alias: "middle", Slot: 1, Answer: NoAnswer, Reason: ByTimeout}},
		"a word":                   {0, nil, says("slot 2"), Decision{Alias: "middle", Slot: 1, Answer: NoAnswer, Reason: ByGarbage}},
		"no text":                  {0, nil, says(""), Decision{Alias: "middle", Slot: 1, Answer: NoAnswer, Reason: ByGarbage}},
		"out of range":             {0, nil, says("3"), Decision{Alias: "middle", Slot: 1, Answer: NoAnswer, Reason: ByRange}},
		"the default below":        {1000, func(m *storage.SmartModel) { m.DefaultSlot = 0 }, says("?"), Decision{Alias: "small", Slot: 0, Floor: 1, Answer: NoAnswer, Reason: ByGarbage}},
		"a default that is none":   {0, func(m *storage.SmartModel) { m.DefaultSlot = 7 }, says("?"), Decision{Alias: "large", Slot: 2, Answer: NoAnswer, Reason: ByGarbage}},
		"one slot":                 {1 << 40, func(m *storage.SmartModel) { m.Slots, m.DeterminerAlias = m.Slots[:1], "" }, nil, Decision{Alias: "small", Answer: NoAnswer, Reason: BySingle}},
		"more breakpoints":         {10000, func(m *storage.SmartModel) { m.Slots = m.Slots[:2] }, nil, Decision{Alias: "middle", Slot: 1, Floor: 1, Answer: NoAnswer, Reason: ByFloor}},
		"no breakpoints":           {1 << 40, func(m *storage.SmartModel) { m.Breakpoints = nil }, says("0"), Decision{Alias: "small", Answer: 0, Reason: ByDeterminer}},
		"sticky without a caller":  {0, func(m *storage.SmartModel) { m.Sticky = true }, says("0"), Decision{Alias: "small", Answer: 0, Reason: ByDeterminer}},
		"an answer below the rest": {5000, func(m *storage.SmartModel) { m.DefaultSlot = 2 }, says("-1"), Decision{Alias: "large", Slot: 2, Floor: 1, Answer: NoAnswer, Reason: ByGarbage}},
	} {
		t.Run(name, func(t *testing.T) {
			m := model()
			if c.change != nil {
				c.change(m)
			}
			ask := c.ask
			if ask == nil {
				ask = neverAsked(t)
			} else {
				c.want.PromptVersion = PromptVersion
			}
			got, err := New(nil).Route(t.Context(), "o", m, Request{Estimate: c.tokens, LastUser: "hello"}, ask)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, noErr); diff != "" {
				t.Error(diff)
			}
			if (got.Err != nil) != got.Reason.Failed() {
				t.Errorf("reason %s with error %v", got.Reason, got.Err)
			}
		})
	}
}

type timeoutError struct{}

func (timeoutError) Error() string { return "too slow" }
func (timeoutError) Timeout() bool { return true }

func TestNoSlots(t *testing.T) {
	if _, err := New(nil).Route(t.Context(), "o", &storage.SmartModel{}, Request{}, neverAsked(t)); !errors.Is(err, ErrNoSlots) {
		t.Error(err)
	}
}

func TestTimeout(t *testing.T) {
	for name, answer := range map[string]Asker{
		"that ends with its time": func(ctx context.Context, _ string, _ Prompt) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		},
		"that answers too late": func(ctx context.Context, _ string, _ Prompt) (string, error) {
			<-ctx.Done()
			return "2", nil
		},
		"that fails otherwise": func(ctx context.Context, _ string, _ Prompt) (string, error) {
			<-ctx.Done()
			return "", errors.New("connection closed")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				got, err := New(nil).Route(t.Context(), "o", model(), Request{}, answer)
				if err != nil || got.Reason != ByTimeout || got.Slot != 1 || !errors.Is(got.Err, context.DeadlineExceeded) {
					t.Errorf("%+v, %v", got, err)
				}
				if took := time.Since(began); took != Timeout {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

func TestClientGone(t *testing.T) {
	gone := errors.New("gone")
	t.Run("before", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		if got, err := New(nil).Route(ctx, "o", model(), Request{}, neverAsked(t)); !errors.Is(err, gone) || got != (Decision{}) {
			t.Errorf("%+v, %v", got, err)
		}
	})
	for name, answer := range map[string]string{"an answer": "2", "garbage": "?"} {
		t.Run("during "+name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			got, err := New(nil).Route(ctx, "o", model(), Request{}, func(context.Context, string, Prompt) (string, error) {
				cancel(gone)
				return answer, nil
			})
			if !errors.Is(err, gone) || got != (Decision{}) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// TestErrorHidesTheAnswer checks that an error does not contain the answer, which may be the user's text: no log may
// hold that.
func TestErrorHidesTheAnswer(t *testing.T) {
	for _, answer := range []string{"secret", "4711", strings.Repeat("9", 30)} {
		got, err := New(nil).Route(t.Context(), "o", model(), Request{}, says(answer))
		if err != nil || got.Err == nil || strings.Contains(got.Err.Error(), answer) {
			t.Errorf("%v, %v", got.Err, err)
		}
	}
}

func TestAskedOf(t *testing.T) {
	m := model()
	_, err := New(nil).Route(t.Context(), "o", m, Request{LastUser: "hello"}, func(_ context.Context, alias string, p Prompt) (string, error) {
		if alias != "judge" || p != NewPrompt(m, "hello") {
			t.Errorf("%s was asked %+v", alias, p)
		}
		return "0", nil
	})
	if err != nil {
		t.Error(err)
	}
}
