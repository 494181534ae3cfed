package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/llm/smart"
	"github.com/durward-gateway/durward/storage"
)

// MaxEvalExamples is the number of examples of one evaluation.
const MaxEvalExamples = 1000

// askedAtOnce is the number of questions to a determiner that one evaluation has open.
const askedAtOnce = 4

// EvalInput holds labelled examples.
type EvalInput struct {
	Examples []EvalExample `json:"examples"`
}

// EvalExample holds the parts of a request that decide where it goes, and the slot that it should go to.
type EvalExample struct {
	Want     int    `json:"want"`
	Estimate int64  `json:"estimate"`
	LastUser string `json:"last_user"`
}

// EvalResult tells where examples went.
type EvalResult struct {
	Alias string              `json:"model_alias"`
	Slots []storage.ModelSlot `json:"slots"`
	// Examples are in the order of the request.
	Examples []EvalDecision `json:"examples"`
	Right    int            `json:"right"`
	Low      int            `json:"low"`    // went to a slot below the expected one
	High     int            `json:"high"`   // went above it
	Asked    int            `json:"asked"`  // for which the determiner was asked; nothing was sent for the others
	Failed   int            `json:"failed"` // of those: the determiner failed
	// Confusion counts examples by their expected slot, then by the slot that they went to.
	Confusion [][]int              `json:"confusion"`
	Reasons   map[smart.Reason]int `json:"reasons"`
	// Baseline is the slot that does best when it is always chosen.
	Baseline int  `json:"baseline_slot"`
	Worse    bool `json:"worse_than_baseline"`
}

// EvalDecision is the decision on an example.
type EvalDecision struct {
	Want   int          `json:"want"`
	Slot   int          `json:"slot"`
	Alias  string       `json:"target_model_alias"`
	Floor  int          `json:"floor"`
	Answer *int         `json:"answer"` // null: the determiner was not asked, or failed
	Reason smart.Reason `json:"reason"`
}

// SmartModels is the store's part with smart models.
type SmartModels interface {
	SmartModel(ctx context.Context, organization, id string) (storage.SmartModel, error)
}

// Asker has a model answer a prompt on the account of the user who asked for a job.
type Asker func(ctx context.Context, j *storage.Job, alias string, prompt smart.Prompt) (string, error)

// Eval returns the work that decides about examples as a smart model does that is stored now, enabled or not. nobody is the
// error of ask when there is nobody to ask.
func Eval(store SmartModels, ask Asker, nobody error, now func() time.Time) Work {
	return func(ctx context.Context, j *storage.Job, input []byte, tell func(done, total int64)) (any, error) {
		var asked EvalInput
		if err := json.Unmarshal(input, &asked); err != nil {
			return nil, fmt.Errorf("reading the input: %w", err)
		}
		m, err := store.SmartModel(ctx, j.OrganizationID, j.Subject)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			return nil, &Problem{"The smart model is not there any more."}
		case err != nil:
			return nil, fmt.Errorf("reading the smart model: %w", err)
		}
		for i, e := range asked.Examples {
			if e.Want >= len(m.Slots) {
				return nil, &Problem{fmt.Sprintf("The smart model was changed: it has no slot %d any more, which example %d should go to.", e.Want, i)}
			}
		}
		e := evaluation{model: &m, nobody: nobody, router: smart.New(now), decisions: make([]smart.Decision, len(asked.Examples))}
		e.ask = func(ctx context.Context, alias string, prompt smart.Prompt) (string, error) {
			e.asked.Add(1)
			return ask(ctx, j, alias, prompt)
		}
		err = e.decide(ctx, asked.Examples, func(done int64) { tell(done, int64(len(asked.Examples))) })
		switch {
		case errors.Is(err, nobody):
			return nil, &Problem{"No site of this gateway serves models (durward_llm), so there is nobody to ask the determiner."}
		case err != nil:
			return nil, err
		}
		return e.result(asked.Examples), nil
	}
}

// evaluation is one run over all examples.
type evaluation struct {
	model     *storage.SmartModel
	router    *smart.Router
	ask       smart.Asker
	asked     atomic.Int64
	nobody    error // of ask, when there is nobody to ask
	decisions []smart.Decision
}

// decide decides about all examples, some at a time. It returns the first error of one that no decision can be made with.
func (e *evaluation) decide(ctx context.Context, examples []EvalExample, tell func(done int64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	var next, done atomic.Int64
	for range askedAtOnce {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(examples)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				request := smart.Request{Estimate: examples[i].Estimate, LastUser: examples[i].LastUser}
				d, err := e.router.Route(ctx, e.model.OrganizationID, e.model, request, e.ask)
				if err == nil && errors.Is(d.Err, e.nobody) {
					err = e.nobody
				}
				if err != nil {
					cancel(err)
					return
				}
				e.decisions[i] = d
				tell(done.Add(1))
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func (e *evaluation) result(examples []EvalExample) EvalResult {
	score := smart.NewScore(e.model.Slots)
	r := EvalResult{Alias: e.model.Alias, Slots: e.model.Slots, Examples: make([]EvalDecision, len(examples)), Asked: int(e.asked.Load())}
	for i, d := range e.decisions {
		score.Add(smart.Example{Line: i, Want: examples[i].Want}, d.Slot, d.Reason)
		one := EvalDecision{Want: examples[i].Want, Slot: d.Slot, Alias: d.Alias, Floor: d.Floor, Reason: d.Reason}
		if d.Answer != smart.NoAnswer {
			one.Answer = &d.Answer
		}
		r.Examples[i] = one
	}
	r.Right, r.Low, r.High, r.Failed = score.Right(), score.Low(), score.High(), score.Failed()
	r.Confusion, r.Reasons, r.Baseline, r.Worse = score.Confusion, score.Reasons, score.Baseline(), score.Worse()
	return r
}
