package toolpin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAboutOf(t *testing.T) {
	for entry, want := range map[string]About{
		`{"name":"x","title":"Delete","description":"Deletes it","annotations":{"destructiveHint":true,"readOnlyHint":false,"title":"not this one"},"icons":[]}`: {
			Title: "Delete", Description: "Deletes it", Hints: map[string]bool{"destructiveHint": true, "readOnlyHint": false},
		},
		`{"name":"x","annotations":{"title":"This one","readOnlyHint":"yes","idempotentHint":1,"openWorldHint":null}}`: {Title: "This one", Hints: map[string]bool{}},
		`{"name":"x","description":7,"annotations":[]}`:                                                                {Hints: map[string]bool{}},
		`{"name":"x","Description":"another member","Annotations":{"readOnlyHint":true}}`:                              {Hints: map[string]bool{}},
		`{"name":"x","description":"` + strings.Repeat("long", 1<<16) + `"}`:                                           {Hints: map[string]bool{}},
	} {
		tool, err := Read("x", []byte(entry))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, AboutOf(tool.kept(64<<10))); diff != "" {
			t.Errorf("%.200s: %s", entry, diff)
		}
	}
	if got := AboutOf([]byte(`{"torn`)); got.Hints["readOnlyHint"] || got.Description != "" {
		t.Errorf("%+v", got)
	}
}
