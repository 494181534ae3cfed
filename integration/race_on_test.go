//go:build race

package integration

// raceDetector: the tests run with it, and then so does the binary under test.
const raceDetector = true
