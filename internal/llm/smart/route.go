package smart

import (
	"context"
	"errors"
	"sort"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// Timeout is the time that the determiner may take.
const Timeout = 3 * time.Second

// ErrNoSlots says that a smart model has no slot to route to. No store saves such a model.
var ErrNoSlots = errors.New("the smart model has no slots")

// Request holds the input of a decision.
type Request struct {
	Estimate  int64  // prompt tokens, as limit.Estimate counts them
	LastUser  string // the last user input. At most DeterminerInputMaxChars of it are sent out
	FirstUser string // the first user message, which tells conversations apart
	// Caller names the caller, in a spelling that no two callers share. Where it is "", nothing is remembered, as for
	// previews.
	Caller string
}

// Asker sends a prompt to the model of an alias, and returns the text of its answer unchanged. It must return soon
// after ctx ends, and need not watch the clock itself. The model's usage counts against the caller's tokens. The Asker
// must see to that, because it knows the caller and the answer's own figures. It charges no request.
type Asker func(ctx context.Context, alias string, prompt Prompt) (answer string, err error)

// Reason says what chose the slot, in a word that fits a header, a log and a metric's label.
type Reason string

// Reasons for the choice of a slot.
const (
	ByDeterminer Reason = "determiner"      // its answer
	ByFloor      Reason = "floor"           // the length: the answer, if there was one, is below it
	BySticky     Reason = "sticky"          // an earlier answer in the same conversation
	BySingle     Reason = "single"          // there is only one slot
	ByTimeout    Reason = "default:timeout" // from here on the default slot: no answer in time
	ByError      Reason = "default:error"   // no answer
	ByGarbage    Reason = "default:garbage" // the answer is not a number
	ByRange      Reason = "default:range"   // the answer is not a slot's number
)

// Failed reports whether the determiner was asked and failed.
func (r Reason) Failed() bool {
	switch r {
	case ByTimeout, ByError, ByGarbage, ByRange:
		return true
	}
	return false
}

// NoAnswer is the Answer of a decision without an answer of the determiner.
const NoAnswer = -1

// Decision says where a request goes.
type Decision struct {
	Alias  string // of the slot
	Slot   int    // its index
	Floor  int    // the lowest slot that its length allows
	Answer int    // the determiner's answer, now or earlier in the conversation; NoAnswer: it was not asked, or failed
	Reason Reason
	// PromptVersion is the version of the determiner's prompt; "" when it was not asked.
	PromptVersion string
	// Err is the error of the determiner, for logs; nil unless Reason.Failed. It contains nothing of its answer.
	Err error
}

// Router decides, and remembers its decisions for conversations of sticky models. It is safe for concurrent use.
type Router struct {
	now    func() time.Time
	sticky memory
}

// New makes a Router with a memory of its own. now is the clock of that memory; nil is time.Now.
func New(now func() time.Time) *Router {
	if now == nil {
		now = time.Now
	}
	return &Router{now: now, sticky: memory{most: remembered}}
}

// Route chooses a slot of m, which belongs to organization and is enabled. Its error is that of ctx, when ctx ended
// before there was a decision (the caller has gone, so nothing must be sent), or ErrNoSlots.
func (r *Router) Route(ctx context.Context, organization string, m *storage.SmartModel, q Request, ask Asker) (Decision, error) {
	if len(m.Slots) == 0 {
		return Decision{}, ErrNoSlots
	}
	if err := ctx.Err(); err != nil {
		return Decision{}, context.Cause(ctx)
	}
	last := len(m.Slots) - 1
	floor := min(Floor(m.Breakpoints, q.Estimate), last)
	decide := func(reason Reason, answer int, version string, err error) (Decision, error) {
		slot := max(floor, answer)
		switch {
		case reason.Failed(): // the default wins over the floor: it was set on purpose
			slot = min(max(m.DefaultSlot, 0), last)
		case answer != NoAnswer && answer < floor:
			reason = ByFloor
		}
		return Decision{Alias: m.Slots[slot].Alias, Slot: slot, Floor: floor, Answer: answer, Reason: reason, PromptVersion: version, Err: err}, nil
	}
	switch {
	case last == 0:
		return decide(BySingle, NoAnswer, "", nil)
	case floor == last: // for any answer
		return decide(ByFloor, NoAnswer, "", nil)
	}
	var conversation conversationKey
	sticky := m.Sticky && q.Caller != "" && q.FirstUser != ""
	if sticky {
		conversation = conversationOf(organization, m, q)
		if answer, ok := r.sticky.recall(conversation, r.now()); ok && answer <= last {
			return decide(BySticky, answer, "", nil)
		}
	}
	text, err := r.ask(ctx, m, q, ask)
	if ctx.Err() != nil {
		return Decision{}, context.Cause(ctx)
	}
	if err != nil {
		reason := ByError
		if timedOut(err) {
			reason = ByTimeout
		}
		return decide(reason, NoAnswer, PromptVersion, err)
	}
	answer, reason, err := ParseAnswer(text, len(m.Slots))
	if err != nil {
		return decide(reason, NoAnswer, PromptVersion, err)
	}
	if sticky {
		answer = r.sticky.keep(conversation, answer, r.now())
	}
	return decide(ByDeterminer, answer, PromptVersion, nil)
}

// ask bounds the determiner's time.
func (r *Router) ask(ctx context.Context, m *storage.SmartModel, q Request, ask Asker) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	text, err := ask(ctx, m.DeterminerAlias, NewPrompt(m, q.LastUser))
	if late := ctx.Err(); late != nil && !errors.Is(err, late) {
		return "", errors.Join(late, err) // an answer after the deadline does not count
	}
	return text, err
}

func timedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// Floor returns the lowest slot that a request of so many tokens may go to: the number of breakpoints that it reaches.
// breakpoints ascend.
func Floor(breakpoints []int, tokens int64) int {
	return sort.Search(len(breakpoints), func(i int) bool { return int64(breakpoints[i]) > tokens })
}
