package app_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Main{M: m}) }
