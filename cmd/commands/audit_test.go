package commands

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// TestVerifyErrors checks that a verification reports, in plain words, its findings and the errors that prevent it.
func TestVerifyErrors(t *testing.T) {
	var out, errs strings.Builder
	cmd := auditVerifyCommand()
	cmd.SilenceUsage = true
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs([]string{"--data", t.TempDir()})
	if err := cmd.Execute(); err == nil || !strings.HasPrefix(errs.String(), "Error: ") || strings.Contains(errs.String(), "{") || out.Len() > 0 {
		t.Errorf("%v\n%s%s", err, &out, &errs)
	}
	for n, want := range map[int]string{1: "1 finding", 2: "2 findings"} {
		errs.Reset()
		cmd = &cobra.Command{RunE: func(cmd *cobra.Command, _ []string) error { return tampered(cmd, n) }, SilenceUsage: true}
		cmd.SetErr(&errs)
		cmd.SetArgs([]string{})
		err := cmd.Execute()
		if diff := cmp.Diff("Error: the audit log is not what was written: "+want+"\n", errs.String()); diff != "" {
			t.Error(diff)
		}
		if err == nil || err.Error() != "exiting with status 2" {
			t.Errorf("%v", err)
		}
	}
	if diff := cmp.Diff("0 records, 1 record", counted(int64(0), "record")+", "+counted(1, "record")); diff != "" {
		t.Error(diff)
	}
}
