package smart

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/storage"
)

func score() *Score {
	slots := model().Slots
	slots[2].Label = "proofs\x1b[2J\n" + strings.Repeat("x", 100)
	s := NewScore(slots)
	line := 0
	add := func(n, want, slot int, reason Reason) {
		for range n {
			line++
			s.Add(Example{Line: line, Want: want}, slot, reason)
		}
	}
	add(50, 0, 0, ByDeterminer)
	add(4, 0, 1, ByTimeout)
	add(1, 0, 2, ByFloor)
	add(30, 1, 1, ByDeterminer)
	add(5, 1, 0, ByDeterminer)
	add(8, 2, 2, ByFloor)
	add(2, 2, 1, ByGarbage)
	return s
}

var evaluated = Evaluated{PolicyID: "0193", Alias: "smart", PromptVersion: "1", DefaultSlot: 1}

func TestScoreText(t *testing.T) {
	var out strings.Builder
	if err := score().WriteText(&out, evaluated); err != nil {
		t.Fatal(err)
	}
	want := `Smart model smart (0193), 3 slots, 100 examples, prompt version 1

  88.0 %  went where they should (88)
   7.0 %  went to a lower slot (7)
   5.0 %  went to a higher slot (5)
   6.0 %  had no answer from the determiner (6)
          and went to slot 1, the default

Where they went, a row for each slot that they should go to:
                                                    → 0      → 1      → 2   recall
  0 small "small talk"                               50        4        1   90.9 %
  1 middle "questions"                                5       30        0   85.7 %
  2 large "proofs\x1b[2J\nxxxxxxxxxxxxxxxxxxx"        0        2        8   80.0 %
  precision                                      90.9 %   83.3 %   88.9 %

Always the same slot instead:
  55.0 %  0 small "small talk"  the best of these
  35.0 %  1 middle "questions"
  10.0 %  2 large "proofs\x1b[2J\nxxxxxxxxxxxxxxxxxxx"

What chose:
       2  default:garbage
       4  default:timeout
      85  determiner
       9  floor

What went elsewhere:
  line 51: slot 1 in place of 0 (default:timeout)
  line 52: slot 1 in place of 0 (default:timeout)
  line 53: slot 1 in place of 0 (default:timeout)
  line 54: slot 1 in place of 0 (default:timeout)
  line 55: slot 2 in place of 0 (floor)
  line 86: slot 0 in place of 1 (determiner)
  line 87: slot 0 in place of 1 (determiner)
  line 88: slot 0 in place of 1 (determiner)
  line 89: slot 0 in place of 1 (determiner)
  line 90: slot 0 in place of 1 (determiner)
  and 2 more

This policy gets 33 more right than always taking slot 0.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		slots []int // slots of examples that should go to 0, 1, 1
		want  string
		worse bool
	}{
		{[]int{0, 1, 1}, "This policy gets 1 more right than always taking slot 1.", false},
		{[]int{0, 1, 2}, "This policy is no better than always taking slot 1.", false},
		{[]int{0, 2, 2}, "This policy is worse than always taking slot 1.", true},
	} {
		s := NewScore(model().Slots)
		for i, slot := range c.slots {
			s.Add(Example{Line: i + 1, Want: min(i, 1)}, slot, ByDeterminer)
		}
		if got := s.verdict(); got != c.want || s.Worse() != c.worse {
			t.Errorf("%v: %s, worse %v", c.slots, got, s.Worse())
		}
	}
}

func TestScoreJSON(t *testing.T) {
	s := NewScore(model().Slots[:2])
	s.Add(Example{Line: 7, Want: 0}, 1, ByRange)
	s.Add(Example{Line: 3, Want: 0}, 1, ByDeterminer)
	var out strings.Builder
	if err := s.WriteJSON(&out, evaluated); err != nil {
		t.Fatal(err)
	}
	want := `{"policy_id":"0193","model_alias":"smart","prompt_version":"1","examples":2,"right":0,"low":0,"high":2,"failed":1,"accuracy":0,` +
		`"slots":[{"model_alias":"small","label":"small talk","wanted":2,"chosen":0,"precision":null,"recall":0,"baseline":1},` +
		`{"model_alias":"middle","label":"questions","wanted":0,"chosen":2,"precision":0,"recall":null,"baseline":0}],` +
		`"confusion":[[0,2],[0,0]],"best_baseline_slot":0,"worse_than_baseline":true,"reasons":{"default:range":1,"determiner":1},` +
		`"missed":[{"line":3,"want":0,"slot":1,"reason":"determiner"},{"line":7,"want":0,"slot":1,"reason":"default:range"}]}` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// TestScoreAddsUp checks that the sums agree, for any examples in any order.
func TestScoreAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "slots")
		s := NewScore(make([]storage.ModelSlot, n))
		slot := rapid.IntRange(0, n-1)
		lines := rapid.SliceOfDistinct(rapid.IntRange(1, 100), func(n int) int { return n }).Draw(t, "lines")
		for _, line := range lines {
			s.Add(Example{Line: line, Want: slot.Draw(t, "want")}, slot.Draw(t, "slot"), ByDeterminer)
		}
		wanted, chosen := 0, 0
		for i := range n {
			wanted += s.Wanted(i)
			chosen += s.Chosen(i)
			if s.Wanted(i) > s.Wanted(s.Baseline()) {
				t.Fatal("the best baseline is not")
			}
		}
		if total := len(lines); s.Examples() != total || wanted != total || chosen != total || s.Right()+s.Low()+s.High() != total || len(s.Missed) != total-s.Right() {
			t.Fatalf("%+v does not add up to %d", s, total)
		}
		for i := 1; i < len(s.Missed); i++ {
			if s.Missed[i-1].Line >= s.Missed[i].Line {
				t.Fatal("not in the order of lines")
			}
		}
		var out strings.Builder
		if err := s.WriteJSON(&out, evaluated); err != nil || !json.Valid([]byte(out.String())) {
			t.Fatal(err, out.String())
		}
	})
}
