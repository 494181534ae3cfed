package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/llm/smart"
	"github.com/durward-gateway/durward/storage"
)

// oneModel is a store with one smart model, or none.
type oneModel struct{ model *storage.SmartModel }

func (o oneModel) SmartModel(context.Context, string, string) (storage.SmartModel, error) {
	if o.model == nil {
		return storage.SmartModel{}, storage.ErrNotFound
	}
	return *o.model, nil
}

var errNobody = errors.New("nobody to ask")

func TestEval(t *testing.T) {
	model := &storage.SmartModel{
		OrganizationID: "o", Alias: "smart", DeterminerAlias: "judge", DeterminerInputMaxChars: 100, Breakpoints: []int{1000, 2000}, DefaultSlot: 1,
		Slots: []storage.ModelSlot{{Alias: "small", Label: "easy"}, {Alias: "middle"}, {Alias: "large"}},
	}
	var asked atomic.Int32
	ask := func(_ context.Context, j *storage.Job, alias string, p smart.Prompt) (string, error) {
		asked.Add(1)
		if j.UserID != "u" || alias != "judge" {
			t.Errorf("%s is asked for %s", alias, j.UserID)
		}
		switch {
		case strings.Contains(p.User, "away"):
			return "", errNobody
		case strings.Contains(p.User, "broken"):
			return "", errors.New("an error")
		case strings.Contains(p.User, "hard"):
			return "2", nil
		}
		return "0", nil
	}
	run := func(model *storage.SmartModel, examples ...EvalExample) (any, error) {
		asked.Store(0)
		input, err := json.Marshal(EvalInput{examples})
		if err != nil {
			t.Fatal(err)
		}
		told := int64(0)
		result, err := Eval(oneModel{model}, ask, errNobody, time.Now)(t.Context(), &storage.Job{OrganizationID: "o", UserID: "u", Subject: "s"}, input, func(_, total int64) { atomic.StoreInt64(&told, total) })
		if err == nil && told != int64(len(examples)) {
			t.Errorf("told of %d", told)
		}
		return result, err
	}
	answer := func(n int) *int { return &n }
	got, err := run(model, EvalExample{0, 10, "easy"}, EvalExample{2, 10, "hard"}, EvalExample{0, 10, "hard"}, EvalExample{1, 10, "broken"}, EvalExample{2, 5000, "long"}, EvalExample{0, 1500, "easy"})
	if err != nil {
		t.Fatal(err)
	}
	want := EvalResult{
		Alias: "smart", Slots: model.Slots, Right: 4, High: 2, Asked: 5, Failed: 1, Confusion: [][]int{{1, 1, 1}, {0, 1, 0}, {0, 0, 2}},
		Reasons: map[smart.Reason]int{smart.ByDeterminer: 3, smart.ByError: 1, smart.ByFloor: 2}, Baseline: 0,
		Examples: []EvalDecision{
			{0, 0, "small", 0, answer(0), smart.ByDeterminer}, {2, 2, "large", 0, answer(2), smart.ByDeterminer}, {0, 2, "large", 0, answer(2), smart.ByDeterminer},
			{1, 1, "middle", 0, nil, smart.ByError}, {2, 2, "large", 2, nil, smart.ByFloor}, {0, 1, "middle", 1, answer(0), smart.ByFloor},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if asked.Load() != 5 {
		t.Errorf("the determiner was asked %d times", asked.Load())
	}
	single := *model
	single.Slots, single.Breakpoints, single.DefaultSlot = model.Slots[:1], nil, 0
	if got, err := run(&single, EvalExample{0, 10, "away"}); err != nil || got.(EvalResult).Asked != 0 || asked.Load() != 0 {
		t.Errorf("something was sent for a model of one slot: %+v, %v", got, err)
	}
	for text, try := range map[string]func() (any, error){
		"not there any more":     func() (any, error) { return run(nil, EvalExample{}) },
		"no slot 1 any more":     func() (any, error) { return run(&single, EvalExample{0, 1, "x"}, EvalExample{1, 1, "x"}) },
		"nobody to ask the dete": func() (any, error) { return run(model, EvalExample{0, 10, "easy"}, EvalExample{0, 10, "away"}) },
	} {
		var problem *Problem
		if _, err := try(); !errors.As(err, &problem) || !strings.Contains(problem.Text, text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Eval(oneModel{model}, ask, errNobody, time.Now)(ctx, &storage.Job{}, []byte(`{"examples":[{}]}`), func(int64, int64) {}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
