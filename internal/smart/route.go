package smart

import (
	"context"
	"errors"
	"sort"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// Timeout is how long the determiner may take.
const Timeout = 3 * time.Second

// ErrNoSlots: a smart model has nothing to route to, which no store lets be saved.
var ErrNoSlots = errors.New("the smart model has no slots")

// Request is what a decision is made from.
type Request struct {
	Estimate  int64  // tokens of the prompt, as limit.Estimate has them
	LastUser  string // the last user input. At most DeterminerInputMaxChars of it leave
	FirstUser string // the first user message, which conversations are told apart by
	// Caller is who asks, spelled so that no two callers share it. Where it is "", nothing is remembered: so do previews.
	Caller string
}

// Asker has the model of an alias answer a prompt, and returns the text of its answer as it is. It must return soon after
// ctx ends, and need not look at the clock itself. What the model used counts against the caller's tokens, which the Asker
// sees to: it knows who calls, and the answer's own figures. It charges no request.
type Asker func(ctx context.Context, alias string, prompt Prompt) (answer string, err error)

// Reason says what chose the slot, in a word that fits a header, a log and a metric's label.
type Reason string

// Reasons.
const (
	ByDeterminer Reason = "determiner"      // its answer
	ByFloor      Reason = "floor"           // the length: the answer, if there was one, is below it
	BySticky     Reason = "sticky"          // an earlier answer in the same conversation
	BySingle     Reason = "single"          // there is but one slot
	ByTimeout    Reason = "default:timeout" // the rest is the default slot: no answer in time
	ByError      Reason = "default:error"   // no answer
	ByGarbage    Reason = "default:garbage" // an answer that is no number
	ByRange      Reason = "default:range"   // an answer that is no slot's number
)

// Failed reports whether the determiner was asked in vain.
func (r Reason) Failed() bool {
	switch r {
	case ByTimeout, ByError, ByGarbage, ByRange:
		return true
	}
	return false
}

// NoAnswer is the Answer of a decision that the determiner gave none for.
const NoAnswer = -1

// Decision is where a request goes.
type Decision struct {
	Alias  string // of the slot
	Slot   int    // its index
	Floor  int    // the least slot that its length allows
	Answer int    // what the determiner said, now or earlier in the conversation; NoAnswer: it was not asked, or failed
	Reason Reason
	// PromptVersion is that of the prompt which the determiner got; "" when it was not asked.
	PromptVersion string
	// Err is why the determiner failed, for logs; nil unless Reason.Failed. Nothing of its answer is in it.
	Err error
}

// Router decides, and remembers what it decided for conversations of sticky models. It is safe for concurrent use.
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

// Route chooses a slot of m, which belongs to organization and is enabled. Its error is that of ctx, when it ended before
// there was a decision (whoever called has gone, so nothing is to be sent), or ErrNoSlots.
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
		case reason.Failed(): // not the floor: whoever set a default meant it
			slot = min(max(m.DefaultSlot, 0), last)
		case answer != NoAnswer && answer < floor:
			reason = ByFloor
		}
		return Decision{Alias: m.Slots[slot].Alias, Slot: slot, Floor: floor, Answer: answer, Reason: reason, PromptVersion: version, Err: err}, nil
	}
	switch {
	case last == 0:
		return decide(BySingle, NoAnswer, "", nil)
	case floor == last: // whatever the answer
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
		return "", errors.Join(late, err) // an answer after its time is none
	}
	return text, err
}

func timedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// Floor is the least slot that a request of so many tokens may go to: the number of breakpoints, which ascend, that it
// reaches.
func Floor(breakpoints []int, tokens int64) int {
	return sort.Search(len(breakpoints), func(i int) bool { return int64(breakpoints[i]) > tokens })
}
