package smart

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Evaluated names the subject of a score.
type Evaluated struct {
	PolicyID      string
	Alias         string
	PromptVersion string // "" when the determiner was never asked
	DefaultSlot   int
}

// shownMisses is the number of lines that the text names.
const shownMisses = 10

// WriteText writes a score for people.
func (s *Score) WriteText(out io.Writer, of Evaluated) error {
	var b strings.Builder
	examples := s.Examples()
	fmt.Fprintf(&b, "Smart model %s (%s), %s, %s", of.Alias, of.PolicyID, counted(len(s.Slots), "slot"), counted(examples, "example"))
	if of.PromptVersion != "" {
		fmt.Fprintf(&b, ", prompt version %s", of.PromptVersion)
	}
	b.WriteString("\n\n")
	for _, line := range []struct {
		what string
		n    int
	}{{"went where they should", s.Right()}, {"went to a lower slot", s.Low()}, {"went to a higher slot", s.High()}, {"had no answer from the determiner", s.Failed()}} {
		fmt.Fprintf(&b, "%8s  %s (%d)\n", share(line.n, examples), line.what, line.n)
	}
	if s.Failed() > 0 {
		fmt.Fprintf(&b, "          and went to slot %d, the default\n", of.DefaultSlot)
	}

	b.WriteString("\nWhere they went, a row for each slot that they should go to:\n")
	s.writeConfusion(&b)

	b.WriteString("\nAlways the same slot instead:\n")
	best := s.Baseline()
	for slot := range s.Slots {
		mark := ""
		if slot == best {
			mark = "  the best of these"
		}
		fmt.Fprintf(&b, "%8s  %s%s\n", share(s.Wanted(slot), examples), s.name(slot), mark)
	}

	b.WriteString("\nWhat chose:\n")
	for _, reason := range slices.Sorted(maps.Keys(s.Reasons)) {
		fmt.Fprintf(&b, "%8d  %s\n", s.Reasons[reason], reason)
	}
	if len(s.Missed) > 0 {
		b.WriteString("\nWhat went elsewhere:\n")
	}
	for i, m := range s.Missed {
		if i == shownMisses {
			fmt.Fprintf(&b, "  and %d more\n", len(s.Missed)-i)
			break
		}
		fmt.Fprintf(&b, "  line %d: slot %d in place of %d (%s)\n", m.Line, m.Slot, m.Want, m.Reason)
	}

	b.WriteString("\n" + s.verdict() + "\n")
	_, err := io.WriteString(out, b.String())
	return err
}

func (s *Score) verdict() string {
	best := s.Baseline()
	switch right, baseline := s.Right(), s.Wanted(best); {
	case right < baseline:
		return fmt.Sprintf("This policy is worse than always taking slot %d.", best)
	case right == baseline:
		return fmt.Sprintf("This policy is no better than always taking slot %d.", best)
	default:
		return fmt.Sprintf("This policy gets %d more right than always taking slot %d.", right-baseline, best)
	}
}

// writeConfusion writes the table with the totals of each slot's row and column.
func (s *Score) writeConfusion(b *strings.Builder) {
	width := len("precision")
	for slot := range s.Slots {
		width = max(width, len([]rune(s.name(slot))))
	}
	row := func(name string, cells []string) {
		fmt.Fprintf(b, "  %-*s", width, name)
		for _, cell := range cells {
			fmt.Fprintf(b, " %8s", cell)
		}
		b.WriteByte('\n')
	}
	var head, foot []string
	for slot := range s.Slots {
		head = append(head, fmt.Sprint("→ ", slot))
		foot = append(foot, share(s.Confusion[slot][slot], s.Chosen(slot)))
	}
	row("", append(head, "recall"))
	for want := range s.Slots {
		var cells []string
		for _, n := range s.Confusion[want] {
			cells = append(cells, fmt.Sprint(n))
		}
		row(s.name(want), append(cells, share(s.Confusion[want][want], s.Wanted(want))))
	}
	row("precision", foot)
}

// name returns a slot's name for people. Labels are free text of an administrator.
func (s *Score) name(slot int) string {
	name := fmt.Sprintf("%d %s", slot, s.Slots[slot].Alias)
	if label := s.Slots[slot].Label; label != "" {
		name += fmt.Sprintf(" %.30q", label)
	}
	return name
}

func share(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// WriteJSON writes a score as one JSON object.
func (s *Score) WriteJSON(out io.Writer, of Evaluated) error {
	type slotScore struct {
		Alias     string   `json:"model_alias"`
		Label     string   `json:"label"`
		Wanted    int      `json:"wanted"`
		Chosen    int      `json:"chosen"`
		Precision *float64 `json:"precision"` // null: no example went there
		Recall    *float64 `json:"recall"`    // null: no example should
		Baseline  *float64 `json:"baseline"`  // the accuracy of always choosing it
	}
	fraction := func(n, of int) *float64 {
		if of == 0 {
			return nil
		}
		f := float64(n) / float64(of)
		return &f
	}
	report := struct {
		PolicyID      string         `json:"policy_id"`
		Alias         string         `json:"model_alias"`
		PromptVersion string         `json:"prompt_version,omitempty"`
		Examples      int            `json:"examples"`
		Right         int            `json:"right"`
		Low           int            `json:"low"`
		High          int            `json:"high"`
		Failed        int            `json:"failed"`
		Accuracy      *float64       `json:"accuracy"`
		Slots         []slotScore    `json:"slots"`
		Confusion     [][]int        `json:"confusion"`
		BestBaseline  int            `json:"best_baseline_slot"`
		Worse         bool           `json:"worse_than_baseline"`
		Reasons       map[Reason]int `json:"reasons"`
		Missed        []Miss         `json:"missed"`
	}{
		of.PolicyID, of.Alias, of.PromptVersion, s.Examples(), s.Right(), s.Low(), s.High(), s.Failed(), fraction(s.Right(), s.Examples()),
		nil, s.Confusion, s.Baseline(), s.Worse(), s.Reasons, slices.Concat([]Miss{}, s.Missed),
	}
	for i, slot := range s.Slots {
		report.Slots = append(report.Slots, slotScore{
			slot.Alias, slot.Label, s.Wanted(i), s.Chosen(i), fraction(s.Confusion[i][i], s.Chosen(i)), fraction(s.Confusion[i][i], s.Wanted(i)),
			fraction(s.Wanted(i), s.Examples()),
		})
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(report)
}
