package smart

import (
	"strconv"
	"strings"
	"testing"
)

func TestParseAnswer(t *testing.T) {
	for text, want := range map[string]struct {
		slot   int
		reason Reason
	}{
		"0": {0, ByDeterminer}, "2": {2, ByDeterminer}, "11": {11, ByDeterminer}, " 1 ": {1, ByDeterminer}, "\n\n1\r\n": {1, ByDeterminer},
		"12": {NoAnswer, ByRange}, "99999999999999999999999": {NoAnswer, ByRange},
		"": {NoAnswer, ByGarbage}, "  \n": {NoAnswer, ByGarbage}, "-1": {NoAnswer, ByGarbage}, "+1": {NoAnswer, ByGarbage}, "01": {NoAnswer, ByGarbage}, "00": {NoAnswer, ByGarbage},
		"1.": {NoAnswer, ByGarbage}, "1.0": {NoAnswer, ByGarbage}, "1e0": {NoAnswer, ByGarbage}, "0x1": {NoAnswer, ByGarbage}, "1 2": {NoAnswer, ByGarbage}, "1\n2": {NoAnswer, ByGarbage},
		`{"slot":1}`: {NoAnswer, ByGarbage}, `"1"`: {NoAnswer, ByGarbage}, "slot 1": {NoAnswer, ByGarbage}, "1 because": {NoAnswer, ByGarbage}, "**1**": {NoAnswer, ByGarbage},
		"１": {NoAnswer, ByGarbage}, "١": {NoAnswer, ByGarbage}, "1\x00": {NoAnswer, ByGarbage}, "1\u00a0": {NoAnswer, ByGarbage}, "\ufeff1": {NoAnswer, ByGarbage}, "one": {NoAnswer, ByGarbage},
	} {
		slot, reason, err := ParseAnswer(text, 12)
		if slot != want.slot || reason != want.reason || (err != nil) != want.reason.Failed() {
			t.Errorf("%q: %d, %s, %v", text, slot, reason, err)
		}
	}
}

func FuzzParseAnswer(f *testing.F) {
	for _, seed := range []string{"0", " 3\n", "12", "-1", "01", `{"slot": 1}`, "slot 1", "1 2", "", "\xff"} {
		f.Add(seed, 4)
	}
	f.Fuzz(func(t *testing.T, text string, slots int) {
		slot, reason, err := ParseAnswer(text, slots)
		switch {
		case err != nil:
			if slot != NoAnswer || !reason.Failed() {
				t.Errorf("%q: %d, %s, %v", text, slot, reason, err)
			}
		case slot < 0 || slot >= slots || reason != ByDeterminer || strings.Trim(text, " \t\r\n") != strconv.Itoa(slot):
			t.Errorf("%q was read as %d of %d, %s", text, slot, slots, reason)
		}
	})
}
