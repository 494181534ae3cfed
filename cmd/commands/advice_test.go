package commands

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestStartErrorsSayWhatToDo: whatever keeps a gateway from starting, the last line is plain and says what to do.
func TestStartErrorsSayWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens at once
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, inUse := net.Listen("tcp", taken.Addr().String()) //nolint:noctx // it fails at once
	_, absent := os.Open("/nonexistent/file")
	for want, failure := range map[string]error{
		"another program listens":      fmt.Errorf("loading new config: %w", inUse),
		"make that file or directory":  absent,
		"ports below 1024":             errors.New("listening on :443: listen tcp :443: bind: permission denied"),
		"correct the Caddyfile":        errors.New("adapting config using caddyfile: Caddyfile:7: unrecognized directive: durwrad"),
		"put the secret":               errors.New("master_key: {env.KEY} does not resolve"),
		"`durward doctor --config /x`": errors.New("something else"),
	} {
		start := &cobra.Command{Use: "run", RunE: func(*cobra.Command, []string) error { return failure }}
		start.Flags().String("config", "/x", "")
		root := &cobra.Command{Use: "durward"}
		root.AddCommand(start)
		adviseOnStart(root)
		adviseOnStart(root) // cobra may ask twice
		var text strings.Builder
		start.SetErr(&text)
		got := start.RunE(start, nil)
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		if !errors.Is(got, failure) || len(lines) != 1 || !strings.HasPrefix(lines[0], "Error: "+failure.Error()+". What to do: ") || !strings.Contains(lines[0], want) {
			t.Errorf("%v ends in %q, %v", failure, text.String(), got)
		}
	}
	fine := &cobra.Command{Use: "run", RunE: func(*cobra.Command, []string) error { return nil }}
	root := &cobra.Command{Use: "durward"}
	root.AddCommand(fine)
	adviseOnStart(root)
	if err := fine.RunE(fine, nil); err != nil {
		t.Error(err)
	}
}
