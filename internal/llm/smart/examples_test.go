package smart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var labels = []string{"easy", "hard", "twin", "twin"}

func TestReadExamples(t *testing.T) {
	got, err := ReadExamples(strings.NewReader(`{"text":"hi \"you\"","slot":0}

 {"messages":[{"role":"user","content":"prove it"}],"system":"s","tools":[],"label":"hard"}`+"\r\n"+`{"label":"easy","input":"x","instructions":"i"}
{"input":[],"slot":3}`), labels)
	want := []Example{
		{1, 0, []byte(`"messages":[{"role":"user","content":"hi \"you\""}]`)},
		{3, 1, []byte(`"messages":[{"role":"user","content":"prove it"}],"system":"s","tools":[]`)},
		{4, 0, []byte(`"input":"x","instructions":"i"`)},
		{5, 3, []byte(`"input":[]`)},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestReadExamplesRefuses(t *testing.T) {
	for line, want := range map[string]string{
		`{"text":"x"}`:                                  "one of slot and label",
		`{"text":"x","slot":0,"label":"easy"}`:          "one of slot and label",
		`{"slot":0}`:                                    "one of messages, input and text",
		`{"text":"x","input":"x","slot":0}`:             "one of messages, input and text",
		`{"text":1,"slot":0}`:                           "text is not a string",
		`{"messages":"x","slot":0}`:                     "messages is not a list",
		`{"input":{},"slot":0}`:                         "input is not a list",
		`{"text":"x","slot":4}`:                         "slot 4 is none of 0 to 3",
		`{"text":"x","slot":-1}`:                        "slot -1 is none",
		`{"text":"x","slot":-0}`:                        "slot -0 is none",
		`{"text":"x","slot":1.0}`:                       "slot 1.0 is none",
		`{"text":"x","slot":99999999999999999999999}`:   "slot 99999999999999999999 is none",
		`{"text":"x","slot":"0"}`:                       "slot is not a number",
		`{"text":"x","slot":null}`:                      "slot is not a number",
		`{"text":"x","label":"Easy"}`:                   `no slot has the label "Easy"`,
		`{"text":"x","label":"twin"}`:                   `slots 2 and 3 both have the label "twin"`,
		`{"text":"x","label":0}`:                        "label is not a string",
		`{"text":"x","lable":"easy","slot":0}`:          `"lable" is no member`,
		`{"text":"x","\u001b[2J\nx":"easy","slot":0}`:   `"\x1b[2J\nx" is no member`,
		`{"text":"x","Slot":0}`:                         `"Slot" is no member`,
		`{"text":"x","slot":0,"slot":1}`:                "byte",
		`["x",0]`:                                       "not a JSON object",
		`{"text":"x","slot":0} {"text":"x","slot":0}`:   "byte",
		`{"text":"x","slot":0`:                          "byte",
		"\ufeff" + `{"text":"x","slot":0}`:              "byte",
		"{\"text\":\"\xff\",\"slot\":0}":                "byte",
		`{"text":"` + strings.Repeat("x", 1<<20) + `"}`: "more than 1047552 bytes",
	} {
		got, err := ReadExamples(strings.NewReader("{\"text\":\"x\",\"slot\":0}\n\n"+line+"\n"), labels)
		if err == nil || !strings.HasPrefix(err.Error(), "line 3: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, %v", line, got, err)
		}
	}
	if _, err := ReadExamples(strings.NewReader("\n \n"), labels); err == nil {
		t.Error("an empty file has examples")
	}
	_, err := ReadExamples(strings.NewReader(strings.Repeat("{}\n", 100)), labels)
	if n := strings.Count(err.Error(), "\n") + 1; n != shownProblems {
		t.Errorf("%d problems", n)
	}
	one := []byte(`{"text":"x","slot":0}` + "\n")
	if got, err := ReadExamples(bytes.NewReader(bytes.Repeat(one, MaxExamples)), labels); len(got) != MaxExamples || err != nil {
		t.Error(len(got), err)
	}
	if _, err := ReadExamples(bytes.NewReader(bytes.Repeat(one, MaxExamples+1)), labels); err == nil {
		t.Error("too many were read")
	}
}

func FuzzReadExamples(f *testing.F) {
	for _, seed := range []string{
		`{"text":"x","slot":0}`, `{"messages":[],"label":"easy"}` + "\n" + `{"input":"x","slot":3,"tools":null}`, `{"slot":1}`, "{}\n\n[]", `{"text":"\ud800","slot":0}`,
		`{"text":"x","lable":"easy"}`, "\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		examples, err := ReadExamples(bytes.NewReader(file), labels)
		if err != nil {
			return
		}
		lines := bytes.Count(file, []byte("\n")) + 1
		last := 0
		for _, e := range examples {
			if e.Want < 0 || e.Want >= len(labels) || e.Line <= last || e.Line > lines {
				t.Errorf("line %d after %d of %d, slot %d", e.Line, last, lines, e.Want)
			}
			last = e.Line
			var members map[string]json.RawMessage
			if err := json.Unmarshal(fmt.Appendf(nil, "{%s}", e.Request), &members); err != nil {
				t.Errorf("%s: %v", e.Request, err)
			}
			for name := range members {
				if !requestMembers[name] {
					t.Errorf("%q is asked with", name)
				}
			}
		}
	})
}
