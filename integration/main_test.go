package integration

import (
	"fmt"
	"os"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(probed); url != "" {
		if err := probeFor(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(rig.Run(pgtest.Main{M: m}))
}
