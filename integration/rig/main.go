package rig

import (
	"fmt"
	"os"
)

// Run builds the gateway, runs the tests and removes the gateway. It is for TestMain. No test's time counts the build.
func Run(tests interface{ Run() int }) (code int) {
	if _, err := buildBinary(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code = tests.Run()
	if err := os.RemoveAll(builtIn); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}
