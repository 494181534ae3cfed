package world

import (
	"fmt"
	"os"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// Forms of the lab, in DURWARD_WORLD. Without one its tests skip: `make test` runs them in a step of their own.
const (
	short  = "short"  // the form that CI runs
	all    = "all"    // the pinned list
	newest = "newest" // the newest version of everything
)

var form = os.Getenv("DURWARD_WORLD")

func TestMain(m *testing.M) {
	if form == "" {
		os.Exit(m.Run())
	}
	code := rig.Run(m)
	if err := writeReport(os.Getenv("DURWARD_WORLD_REPORT")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// lab checks whether a test that starts other projects' software may run, and comes first in it. A test of the long
// form names that form.
func lab(t *testing.T, forms ...string) {
	t.Helper()
	if form == "" {
		t.Skip("the lab runs with `make world` and `make world FORM=short`")
	}
	for _, f := range forms {
		if f == form {
			return
		}
	}
	if len(forms) > 0 {
		t.Skipf("not part of the %s form", form)
	}
}
