//go:build !race

package rig

// raceDetector: these tests run with it, and so do their gateways.
const raceDetector = false
