package models

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// reply is the answer of a model: a text, or the call of a tool.
type reply struct {
	text      string
	tool      string          // the name of the called one; "" for a text
	arguments json.RawMessage // of the call
	cut       bool            // the whole answer was longer than allowed
}

// output returns the number of tokens of the reply.
func (r reply) output() int { return tokens(r.text) + tokens(r.tool) + tokens(string(r.arguments)) }

// pieces returns the parts in which a reply streams.
func (r reply) pieces() []string {
	const words = 3
	var parts []string
	n := 0
	for word := range strings.SplitAfterSeq(r.text+string(r.arguments), " ") {
		if n%words == 0 {
			parts = append(parts, "")
		}
		parts[len(parts)-1] += word
		n++
	}
	return parts
}

// answer returns the model's answer. ok is false when there is no such model.
func (p *prompt) answer() (r reply, ok bool) {
	say, ok := strengths[p.model]
	if !ok {
		return reply{}, false
	}
	text, result := p.user()
	if slots, asked := slotsOf(p.system); asked {
		return reply{text: strconv.Itoa(slot(text, slots))}.within(p.most), true
	}
	if t := p.toolFor(text, result); t != nil {
		return reply{tool: t.name, arguments: arguments(t.schema, text)}, true
	}
	topic := quoted(text)
	if result {
		topic = "what the tool says, " + topic
	}
	return reply{text: say(topic)}.within(p.most), true
}

func (r reply) within(most int) reply {
	if most > 0 && r.output() > most {
		r.text, r.cut = strings.ToValidUTF8(r.text[:4*most], ""), true
	}
	return r
}

// strengths holds the answers of the models about a topic.
var strengths = map[string]func(topic string) string{
	Small: func(topic string) string { return "In short, about " + topic + ": it depends." },
	Medium: func(topic string) string {
		return "You ask about " + topic + ". There are two sides to it: what it gives you, and what it costs. Begin with the one that " +
			"cannot be undone, try it on something small, and look at what came of it before you go on."
	},
	Large: func(topic string) string {
		return "You ask about " + topic + ". Let us take it apart.\n\n" +
			"1. What is given. Write down what you know for certain, and beside it what you only believe; most mistakes are made between the two.\n" +
			"2. What is wanted. Say how you would recognise that it is done. If two people would look for different signs, there are two questions here.\n" +
			"3. What stands in the way. Of everything that could go wrong, take the part that you know least about first, while it is cheap to change the plan.\n" +
			"4. What follows. Solve the smallest case completely, then ask what changes when it grows: sizes, numbers of people, time.\n\n" +
			"Then check it from the other end: assume that the result is wrong, and look for the first step that could be to blame. " +
			"A demo model cannot do that for you. A strong one would go on for several pages from here."
	},
}

// quoted returns the beginning of a text, between quotation marks.
func quoted(text string) string {
	const most = 60
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most]) + "..."
	}
	return `"` + text + `"`
}

// slotText is the end of the determiner's instructions.
var slotText = regexp.MustCompile(`Answer with one number from 0 to (\d{1,2})\.\s*\z`)

// slotsOf returns the number of slots to choose from, when the model is asked to choose.
func slotsOf(system string) (slots int, asked bool) {
	found := slotText.FindStringSubmatch(system)
	if found == nil {
		return 0, false
	}
	last, err := strconv.Atoi(found[1])
	return last + 1, err == nil
}

// These are words that suggest a strong model, and a model that is not weak.
var (
	hard   = []string{"prove", "proof", "plan", "design", "architecture", "refactor", "derive", "algorithm", "optimize", "migrate", "migration", "theorem", "debug"}
	middle = []string{"explain", "summarize", "summary", "compare", "why", "function", "code", "write", "analyze", "review"}
)

// slot chooses among the slots, from the weakest to the strongest, by the length of a text and the words in it.
func slot(text string, slots int) int {
	words := wordsOf(text)
	has := func(known []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(known, w) })
	}
	level := 0
	switch {
	case has(hard) || len(text) > 1500:
		level = 2
	case has(middle) || len(text) > 300:
		level = 1
	}
	return level * (slots - 1) / 2
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
}

// toolFor returns the tool that the model calls: the required one, or else one whose name has a word of the user's
// message.
func (p *prompt) toolFor(text string, result bool) *tool {
	if p.choice == "none" || result {
		return nil
	}
	said := wordsOf(text)
	for i := range p.tools {
		t := &p.tools[i]
		if t.name == p.choice || slices.ContainsFunc(wordsOf(t.name), func(w string) bool { return len(w) > 3 && slices.Contains(said, w) }) {
			return t
		}
	}
	if p.choice == "any" && len(p.tools) > 0 {
		return &p.tools[0]
	}
	return nil
}

var number = regexp.MustCompile(`-?\d+(\.\d+)?`)

// arguments makes arguments for a tool from the user's message. Its texts are the last word with a capital, or the
// whole message; its numbers are those of the message, in their order.
func arguments(schema json.RawMessage, text string) json.RawMessage {
	var wanted struct {
		Properties map[string]struct {
			Type any   `json:"type"`
			Enum []any `json:"enum"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(schema, &wanted) // a tool without a schema takes nothing
	numbers := number.FindAllString(text, -1)
	made := make(object)
	for _, name := range slices.Sorted(maps.Keys(wanted.Properties)) {
		property := wanted.Properties[name]
		kind := fmt.Sprint(property.Type)
		switch {
		case len(property.Enum) > 0:
			made[name] = property.Enum[0]
		case kind == "number" || kind == "integer":
			made[name] = json.Number("0")
			if len(numbers) > 0 {
				made[name], numbers = json.Number(numbers[0]), numbers[1:]
			}
		case kind == "boolean":
			made[name] = true
		case kind == "string":
			made[name] = subject(text)
		}
	}
	encoded, err := json.Marshal(made)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return encoded
}

// subject returns the last word of a text that begins with a capital and is not its first, such as a place; otherwise
// the text.
func subject(text string) string {
	words := strings.FieldsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsPunct(c) })
	for i := len(words) - 1; i > 0; i-- {
		if first, _ := utf8.DecodeRuneInString(words[i]); unicode.IsUpper(first) {
			return words[i]
		}
	}
	return text
}
