package smart

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// Bounds of a file of examples. A request may be as large as in a preview.
const (
	MaxExamples    = 100_000
	maxExampleLine = 1<<20 - 1<<10 // bytes: a preview takes 1 MiB, the policy's id included
	shownProblems  = 20
)

// Example is a request with its expected slot.
type Example struct {
	Line int // in the file, from 1
	Want int // the slot's index
	// Request holds the members of a request, each with its name, without the braces around them. A preview is asked
	// with them and the policy.
	Request []byte
}

// requestMembers lists the members that an example may have: those that decide where a request goes.
var requestMembers = map[string]bool{"messages": true, "input": true, "system": true, "instructions": true, "tools": true}

// ReadExamples reads one JSON object on each line. It holds a request: messages or input (and system, instructions and
// tools where they count) as it would be sent to the gateway, or text alone. It also holds the expected slot: slot by
// its index, or label by the label that exactly one slot has. Blank lines are skipped. labels are those of the policy's
// slots. Anything else is an error, which names the line and its problem, for up to 20 lines.
func ReadExamples(r io.Reader, labels []string) ([]Example, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxExampleLine)
	var examples []Example
	var problems []error
	n := 0
	for lines.Scan() && len(problems) < shownProblems {
		n++
		if len(bytes.Trim(lines.Bytes(), " \t\r")) == 0 {
			continue
		}
		if len(examples) == MaxExamples {
			return nil, fmt.Errorf("line %d: more than %d examples", n, MaxExamples)
		}
		e, err := readExample(lines.Bytes(), labels)
		if err != nil {
			problems = append(problems, fmt.Errorf("line %d: %w", n, err))
			continue
		}
		e.Line = n
		examples = append(examples, e)
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("it has more than %d bytes", maxExampleLine)
		}
		problems = append(problems, fmt.Errorf("line %d: %w", n+1, err))
	}
	if len(problems) == 0 && len(examples) == 0 {
		return nil, errors.New("there are no examples in it")
	}
	return examples, errors.Join(problems...)
}

func readExample(line []byte, labels []string) (e Example, err error) {
	v, err := strictjson.Parse(line, strictjson.Limits{MaxBytes: maxExampleLine})
	if err != nil {
		return e, err
	}
	if v.Kind() != strictjson.Object {
		return e, errors.New("this is not a JSON object")
	}
	var prompts, slots int
	var request bytes.Buffer
	member := func(name string, value []byte) {
		if request.Len() > 0 {
			request.WriteByte(',')
		}
		request.WriteString(`"` + name + `":`)
		request.Write(value)
	}
	for _, m := range v.Members() {
		switch {
		case m.Name == "slot":
			slots++
			e.Want, err = readSlot(m.Value, len(labels))
		case m.Name == "label":
			slots++
			e.Want, err = findLabel(m.Value, labels)
		case m.Name == "text":
			if prompts++; m.Value.Kind() != strictjson.String {
				return e, errors.New("text is not a string")
			}
			member("messages", append(append([]byte(`[{"role":"user","content":`), m.Value.Raw()...), "}]"...))
		case !requestMembers[m.Name]:
			return e, fmt.Errorf("%.60q is no member of an example; there are messages, input, text, system, instructions, tools, slot and label", m.Name)
		default:
			kind := m.Value.Kind()
			if m.Name == "messages" || m.Name == "input" {
				if prompts++; kind != strictjson.Array && (m.Name != "input" || kind != strictjson.String) {
					return e, fmt.Errorf("%s is not a list", m.Name)
				}
			}
			member(m.Name, m.Value.Raw())
		}
		if err != nil {
			return e, err
		}
	}
	switch {
	case prompts != 1:
		return e, errors.New("an example has one of messages, input and text")
	case slots != 1:
		return e, errors.New("an example has one of slot and label")
	}
	e.Request = request.Bytes()
	return e, nil
}

func readSlot(v strictjson.Value, slots int) (int, error) {
	if v.Kind() != strictjson.Number {
		return 0, errors.New("slot is not a number; they are counted from 0")
	}
	slot, err := strconv.Atoi(v.Num())
	if err != nil || slot < 0 || slot >= slots || strconv.Itoa(slot) != v.Num() {
		return 0, fmt.Errorf("slot %.20s is none of 0 to %d", v.Num(), slots-1)
	}
	return slot, nil
}

func findLabel(v strictjson.Value, labels []string) (int, error) {
	if v.Kind() != strictjson.String {
		return 0, errors.New("label is not a string")
	}
	found := -1
	for i, label := range labels {
		if label != v.Str() {
			continue
		}
		if found >= 0 {
			return 0, fmt.Errorf("slots %d and %d both have the label %.60q; say which with slot", found, i, label)
		}
		found = i
	}
	if found < 0 {
		return 0, fmt.Errorf("no slot has the label %.60q", v.Str())
	}
	return found, nil
}
