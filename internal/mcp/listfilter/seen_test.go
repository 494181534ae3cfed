package listfilter

import (
	"errors"
	"slices"
	"testing"
)

// TestSeen checks that Seen can make a text be decided on once more, and that it is not called for a text without a
// list and for one that cannot be read.
func TestSeen(t *testing.T) {
	text := `{"result":{"tools":[{"name":"a"},{"name":"b"}]}}`
	var asked []string
	hidden, again := "", true
	filter := Filter{
		View: func() (Keep, error) {
			asked = append(asked, "view")
			return func(_ List, name string, definition []byte) bool {
				asked = append(asked, string(definition))
				return name != hidden
			}, nil
		},
		Seen: func() (bool, error) {
			asked = append(asked, "seen")
			hidden = "b"
			defer func() { again = false }()
			return again, nil
		},
	}
	got, err := filter.Message([]byte(text))
	if want := `{"result":{"tools":[{"name":"a"}]}}`; err != nil || string(got) != want {
		t.Errorf("%v %s", err, got)
	}
	round := []string{"view", `{"name":"a"}`, `{"name":"b"}`, "seen"}
	if !slices.Equal(asked, append(round, round...)) {
		t.Errorf("asked %q", asked)
	}
	asked = nil
	for _, text := range []string{`{"result":{"content":[]}}`, `[]`, `x`} {
		if got, err := filter.Message([]byte(text)); err != nil || string(got) != text {
			t.Errorf("%v %s", err, got)
		}
	}
	if _, err := filter.Message([]byte(`{"result":{"tools":[{"name":"a"}],"tools":[]}}`)); !errors.Is(err, ErrUnreadable) || slices.Contains(asked, "seen") {
		t.Errorf("%v, asked %q", err, asked)
	}
	away := errors.New("away")
	filter.Seen = func() (bool, error) { return true, away }
	if _, err := filter.Message([]byte(text)); !errors.Is(err, away) {
		t.Error(err)
	}
}
