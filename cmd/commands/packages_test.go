package commands

import (
	"errors"
	"testing"

	"github.com/spf13/cobra"
)

func TestBinarySwappersAreReplaced(t *testing.T) {
	for _, name := range binarySwappers {
		t.Run(name, func(t *testing.T) {
			ran := false
			root := &cobra.Command{Use: "durward", SilenceErrors: true, SilenceUsage: true}
			root.AddCommand(&cobra.Command{
				Use:  name + " <packages...>",
				RunE: func(*cobra.Command, []string) error { ran = true; return nil },
			})
			replaceBinarySwappers(root)

			root.SetArgs([]string{name, "example.com/plugin"})
			if err := root.Execute(); !errors.Is(err, errBinarySwap) {
				t.Errorf("%s answered %v, want the explanation", name, err)
			}
			if ran {
				t.Errorf("%s ran Caddy's own command", name)
			}
		})
	}
}

func TestOtherCommandsAreLeftAlone(t *testing.T) {
	ran := false
	root := &cobra.Command{Use: "durward"}
	root.AddCommand(&cobra.Command{Use: "run", RunE: func(*cobra.Command, []string) error { ran = true; return nil }})
	replaceBinarySwappers(root)

	root.SetArgs([]string{"run"})
	if err := root.Execute(); err != nil || !ran {
		t.Errorf("run: ran=%v, err=%v", ran, err)
	}
}
