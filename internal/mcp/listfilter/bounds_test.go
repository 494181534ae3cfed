package listfilter

import (
	"errors"
	"strings"
	"testing"
)

// TestOtherShapes checks that a value of an unexpected type is neither taken for a list nor refused.
func TestOtherShapes(t *testing.T) {
	for in, want := range map[string]string{
		`{"id":1,"result":[1,2]}`: "",
		`{"id":1,"result":5}`:     "",
		`[{"result":5},{"result":{"tools":[` + tool("secret") + `]}}]`:                    `[{"result":5},{"result":{"tools":[]}}]`,
		`{"method":5,"result":{"tools":[` + tool("secret") + `]}}`:                        `{"method":5,"result":{"tools":[]}}`,
		`{"x":"notifications/resources/updated","params":{"uri":"secret"}}`:               "",
		`{"result":{"tools":[],"taskId":5,"resultType":7}}`:                               "",
		`{"result":{"tools":[],"task":{"taskId":5}}}`:                                     "",
		`{"method":"notifications/resources/updated","params":{"uri":5}}`:                 "hidden",
		`{"result":{"tools":[],"NEXTCURSOR":null}}`:                                       "",
		`{"result":{"tools":[],"nextCursor":["secret"]}}`:                                 "",
		`{"result":{"tools":[` + tool("a") + `],"cacheScope":"private","nextCursor":""}}`: "",
	} {
		got, err := (&Filter{View: visible, Created: func(task Task) { t.Errorf("%s made the task %q", in, task.ID) }}).Message([]byte(in))
		switch {
		case want == "":
			want = in
		case want == "hidden":
			want = ""
		}
		if err != nil || string(got) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", in, err, got, want)
		}
	}
}

// TestNothingCreated checks that only the right kind of answer makes a task, and that a task has an id.
func TestNothingCreated(t *testing.T) {
	for _, in := range []string{
		`{"result":{"resultType":"complete","x":"task","taskId":"t"}}`, `{"result":{"resultType":"task"}}`, `{"result":{"resultType":"task","taskId":""}}`,
	} {
		if _, err := (&Filter{View: visible, Created: func(task Task) { t.Errorf("%s made the task %q", in, task.ID) }}).Message([]byte(in)); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// TestNobodyHearsOfTasks checks that an answer which makes a task passes where nobody wants to know of it.
func TestNobodyHearsOfTasks(t *testing.T) {
	in := `{"result":{"task":{"taskId":"t"}}}`
	if got, err := (&Filter{View: visible}).Message([]byte(in)); err != nil || string(got) != in {
		t.Errorf("%s, %v", got, err)
	}
}

// TestUnchangedText checks that Message returns a text itself when nothing is removed.
func TestUnchangedText(t *testing.T) {
	in := []byte(`{"result":{"tools":[` + tool("a") + `],"cacheScope":"private"}}`)
	if got, err := (&Filter{View: visible, Private: true}).Message(in); err != nil || &got[0] != &in[0] {
		t.Errorf("%v: %s is a copy", err, got)
	}
}

// TestViewOnce checks that the view is asked once for each text, also when it fails.
func TestViewOnce(t *testing.T) {
	const news = `{"method":"notifications/resources/updated","params":{"uri":"a"}}`
	list := `{"result":{"tools":[` + tool("a") + `],"prompts":[]}}`
	away := errors.New("away")
	for _, in := range []string{news, list, `[` + news + `,` + list + `,` + news + `,` + list + `]`, `[` + list + `,` + news + `]`} {
		for _, fails := range []error{nil, away} {
			asked := 0
			filter := &Filter{View: func() (Keep, error) {
				asked++
				if fails != nil {
					return nil, fails
				}
				return visible()
			}}
			if _, err := filter.Message([]byte(in)); !errors.Is(err, fails) || asked != 1 {
				t.Errorf("%s: %v, asked %d times", in, err, asked)
			}
		}
	}
}

// TestM11OddCursors checks that a cursor that only some readers see counts as none, whatever comes after it.
func TestM11OddCursors(t *testing.T) {
	filter := &Filter{View: visible, Cursor: func(List, string) (string, error) { return "sealed", nil }}
	for _, in := range []string{`{"result":{"tools":[],"NEXTCURSOR":null}}`, `{"result":{"tools":[],"NextCursor":"secret","nextCursor":null}}`} {
		if got, err := filter.Message([]byte(in)); !errors.Is(err, ErrUnreadable) {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
	same := &Filter{View: visible, Cursor: func(List, string) (string, error) { return "sealed", nil }}
	if got, changed := same.Event([]byte(`{"result":{"tools":[],"nextCursor":"secret"}}`)); !changed || string(got) != `{"result":{"tools":[],"nextCursor":"sealed"}}` {
		t.Errorf("a cursor of the same length: %s, %v", got, changed)
	}
}

// TestHiddenWithItsList checks that the cuts in a hidden message go with it.
func TestHiddenWithItsList(t *testing.T) {
	hidden := `{"method":"notifications/resources/updated","params":{"uri":"secret"},"result":{"tools":[` + tool("secret") + `,` + tool("a") + `]}}`
	shown := `{"result":{"tools":[` + tool("secret") + `,` + tool("b") + `]}}`
	got, err := (&Filter{View: visible}).Message([]byte(`[` + hidden + `,` + shown + `,` + hidden + `]`))
	if want := `[{"result":{"tools":[` + tool("b") + `]}}]`; err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
}

// TestStrayNews checks that in the answer to another request every text passes that no server wrote for a list.
func TestStrayNews(t *testing.T) {
	for _, in := range []string{`{"x":"updated",}`, `{"a":"resources/updated",}`, `{"a":"others","b":"updated",}`} {
		if got, err := (&Filter{View: visible, Stray: true}).Message([]byte(in)); err != nil || string(got) != in {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
}

func TestNamesList(t *testing.T) {
	for text, want := range map[string]bool{
		`"tools"`: true, `{"a":["others"],"prompts":[]}`: true, `"others"`: false, `"xs"s"tools"`: true, `s"`: false, ``: false, `tools"`: false,
		strings.Repeat(`s"`, 9) + `"tasks"`: true,
	} {
		if got := namesList([]byte(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
