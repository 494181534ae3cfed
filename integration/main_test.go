package integration

import (
	"fmt"
	"os"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

func TestMain(m *testing.M) {
	code := pgtest.Main{M: m}.Run()
	if err := rig.RemoveBinary(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}
