package rig

import (
	"os"
	"testing"
	"time"
)

// Strict: figures are taken, of tests that have the machine to themselves. Otherwise tests share it, as in CI.
func Strict() bool { return os.Getenv("DURWARD_TEST_STRICT") != "" }

// Within is the bound of a figure: what is promised when figures are taken, ten times that in CI.
func Within(promised time.Duration) time.Duration {
	if Strict() {
		return promised
	}
	return 10 * promised
}

// Figures has a test with figures run by itself when those are taken, and beside others otherwise.
func Figures(t *testing.T) {
	t.Helper()
	if !Strict() {
		t.Parallel()
	}
}
