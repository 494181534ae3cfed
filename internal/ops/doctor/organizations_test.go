package doctor

import (
	"strings"
	"testing"
)

func TestOrganizations(t *testing.T) {
	if got := Organizations(nil, nil); len(got) != 0 {
		t.Errorf("none: %+v", got)
	}
	got := Organizations([]string{"gamil (1)", "2"}, nil)
	if len(got) != 1 || got[0].Severity != Warning || !strings.Contains(got[0].Found, "gamil (1), 2") || !strings.Contains(got[0].Mend, "`organization`") {
		t.Errorf("%+v", got)
	}
	got = Organizations(nil, []string{"acme (1)"})
	if len(got) != 1 || got[0].Severity != Warning || !strings.Contains(got[0].Found, "acme (1)") || !strings.Contains(got[0].Mend, "`organization`") {
		t.Errorf("%+v", got)
	}
}
