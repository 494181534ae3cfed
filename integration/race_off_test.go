//go:build !race

package integration

// raceDetector: the tests run without it, and then so does the binary under test.
const raceDetector = false
