//go:build race

package wire_test

// The race detector makes sync.Pool forget on purpose, which costs allocations.
const raceDetector = true
