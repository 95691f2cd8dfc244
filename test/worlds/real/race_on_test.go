//go:build race

package real

const raceDetector = true
