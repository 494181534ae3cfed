package doctor

import (
	"strings"
	"testing"
)

func TestApprovals(t *testing.T) {
	if got := Approvals(nil, false); len(got) != 0 {
		t.Errorf("nothing asks: %+v", got)
	}
	got := Approvals([]string{"a", "b", "c", "d", "e", "f", "g"}, false)
	if len(got) != 1 || got[0].Severity != Warning || !strings.Contains(got[0].Found, "a, b, c, d, e and 2 more") || !strings.Contains(got[0].Mend, "login_client") {
		t.Errorf("%+v", got)
	}
	if got := Approvals([]string{"a"}, true); len(got) != 1 || got[0].Severity != Note {
		t.Errorf("%+v", got)
	}
}
