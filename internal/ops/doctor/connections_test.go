package doctor

import (
	"strings"
	"testing"
)

func TestConnections(t *testing.T) {
	if got := Connections(nil); len(got) != 0 {
		t.Errorf("no server needs an account: %+v", got)
	}
	if got := Connections([]string{"Tracker"}); len(got) != 1 || got[0].Severity != Warning || !strings.Contains(got[0].Found, "Tracker") || !strings.Contains(got[0].Mend, "login_client") {
		t.Errorf("%+v", got)
	}
}
