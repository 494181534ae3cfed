package storage

import (
	"encoding/json"
	"testing"
)

// TestRuleApproval checks both stored forms of a rule's demand, and that an unreadable one is no demand for the caller.
func TestRuleApproval(t *testing.T) {
	for text, want := range map[string]RuleApproval{
		`"out_of_band"`: {Channel: ChannelOutOfBand},
		`{"by":["group:leads","user:1"],"channel":"out_of_band"}`: {Channel: ChannelOutOfBand, By: []string{"group:leads", "user:1"}},
	} {
		var got RuleApproval
		if err := json.Unmarshal([]byte(text), &got); err != nil || !got.Equal(want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if back, err := json.Marshal(want); err != nil || string(back) != text {
			t.Errorf("%s, %v", back, err)
		}
	}
	for _, text := range []string{`{}`, `{"by":[]}`, `{"by":"group:leads"}`, `["group:leads"]`, `7`} {
		var got RuleApproval
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s is read as %+v", text, got)
		}
	}
	if text, err := json.Marshal(Rule{Name: "r"}); err != nil || string(text) != `{"name":"r","active":false,"authorized":false,"actions":null,"roles_groups":null}` {
		t.Errorf("%s, %v", text, err)
	}
	if (RuleApproval{By: []string{"a"}}).Equal(RuleApproval{By: []string{"b"}}) || (RuleApproval{Channel: ChannelOutOfBand}).Equal(RuleApproval{}) {
		t.Error("different demands are equal")
	}
}
