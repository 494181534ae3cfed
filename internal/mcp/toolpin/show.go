package toolpin

import (
	"fmt"
	"strings"

	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/api/webpage"
)

// Text returns a definition in a form for people to judge: one member a line, with hidden characters made visible. For
// a definition that was too long to store it returns the beginning, and says so.
func Text(definition []byte) string {
	if text, size, is := beginning(definition); is {
		return visible.Text(text) + fmt.Sprintf("\n[The definition has %d bytes; the rest is not kept. Its hash is that of all of it.]", size)
	}
	pieces, _ := webpage.JSON(definition, 1<<30)
	var out strings.Builder
	for _, p := range pieces {
		out.WriteString(p.Text)
	}
	return out.String()
}

// context is the number of lines that are shown around a difference.
const context = 3

// Diff shows the changes of a text, as `diff -u` does: lines with - were removed, lines with + were added. Long texts
// inside strings are broken at their own line ends. It is empty when nothing changed.
func Diff(before, after string) string {
	if before == after {
		return ""
	}
	a, b := lines(before), lines(after)
	edits := compare(a, b)
	var out strings.Builder
	for from := 0; from < len(edits); {
		if edits[from].sign == ' ' {
			from++
			continue
		}
		begin, end := max(from-context, 0), from
		for quiet := 0; end < len(edits) && quiet <= 2*context; end++ {
			if quiet++; edits[end].sign != ' ' {
				quiet = 0
			}
		}
		last := end
		for edits[last-1].sign == ' ' {
			last--
		}
		last = min(last+context, len(edits))
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", span(edits, begin, last, '+'), span(edits, begin, last, '-'))
		for _, e := range edits[begin:last] {
			out.WriteByte(e.sign)
			out.WriteString(e.line)
			out.WriteByte('\n')
		}
		from = last
	}
	return out.String()
}

// span returns the position of edits in one of the texts. Edits of the other text do not count.
func span(edits []edit, from, to int, other byte) string {
	at, count := 1, 0
	for i, e := range edits[:to] {
		switch {
		case e.sign == other:
		case i < from:
			at++
		default:
			count++
		}
	}
	if count == 0 {
		at--
	}
	return fmt.Sprintf("%d,%d", at, count)
}

// lines breaks a text at its line ends, and at each \n in a JSON string.
func lines(text string) []string {
	var all []string
	for line := range strings.SplitSeq(text, "\n") {
		start := 0
		for i := 0; i+1 < len(line); i++ {
			if line[i] != '\\' {
				continue
			}
			i++
			if line[i] == 'n' && i+1 < len(line) && line[i+1] != '"' {
				all = append(all, line[start:i+1])
				start = i + 1
			}
		}
		all = append(all, line[start:])
	}
	return all
}

// edit is a line that was removed (-), added (+) or stayed.
type edit struct {
	sign byte
	line string
}

// maxWork bounds the line-by-line comparison. Beyond it, everything between the first and the last difference is shown
// as replaced.
const maxWork = 1 << 20

// compare finds a longest common subsequence of lines.
func compare(a, b []string) []edit {
	var edits []edit
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		edits = append(edits, edit{' ', a[head]})
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	edits = append(edits, between(a[head:len(a)-tail], b[head:len(b)-tail])...)
	for _, line := range a[len(a)-tail:] {
		edits = append(edits, edit{' ', line})
	}
	return edits
}

func between(a, b []string) (edits []edit) {
	// common[i][j] is the number of lines that a[i:] and b[j:] have in common.
	var common [][]int32
	if len(a)*len(b) <= maxWork {
		common = make([][]int32, len(a)+1)
		for i := len(a); i >= 0; i-- {
			common[i] = make([]int32, len(b)+1)
			for j := len(b) - 1; j >= 0 && i < len(a); j-- {
				if a[i] == b[j] {
					common[i][j] = common[i+1][j+1] + 1
				} else {
					common[i][j] = max(common[i+1][j], common[i][j+1])
				}
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case common != nil && i < len(a) && j < len(b) && a[i] == b[j]:
			edits = append(edits, edit{' ', a[i]})
			i, j = i+1, j+1
		case i < len(a) && (common == nil || j == len(b) || common[i+1][j] >= common[i][j+1]):
			edits = append(edits, edit{'-', a[i]})
			i++
		default:
			edits = append(edits, edit{'+', b[j]})
			j++
		}
	}
	return edits
}
