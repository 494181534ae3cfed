package main

import "strings"

// switches returns a file for the package: functions that change their argument when their number is switched on. A
// number is switched on by DURWARD_MUTANT. The numbers that a run has reached are written to the file
// DURWARD_MUTANT_REACHED, a line each, when its process ends by itself: appended at once, as nothing tells the end.
func switches(packageName string) []byte {
	return []byte(strings.Replace(switchesText, "package switches", "package "+packageName, 1))
}

const switchesText = `package switches

import (
	"cmp"
	"os"
	"strconv"
	"sync/atomic"
)

var mutantNumber, _ = strconv.Atoi(os.Getenv("DURWARD_MUTANT"))

var mutantFile = func() *os.File {
	path := os.Getenv("DURWARD_MUTANT_REACHED")
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	return file
}()

// mutantReached is an array and not a map: some tests count what is allocated.
var mutantReached [1 << 14]atomic.Bool

func mutantOn(number int) bool {
	if mutantFile != nil && !mutantReached[number].Swap(true) {
		mutantFile.WriteString(strconv.Itoa(number) + "\n")
	}
	return number == mutantNumber
}

func mutantNot[B ~bool](number int, value B) B {
	if mutantOn(number) {
		return !value
	}
	return value
}

func mutantOr[B ~bool](number int, value B) B { return B(mutantOn(number)) || value }

func mutantAnd[B ~bool](number int, value B) B { return !B(mutantOn(number)) && value }

func mutantLess[T cmp.Ordered](number int, a, b T) bool {
	if mutantOn(number) {
		return a <= b
	}
	return a < b
}

func mutantLessOrEqual[T cmp.Ordered](number int, a, b T) bool {
	if mutantOn(number) {
		return a < b
	}
	return a <= b
}

func mutantGreater[T cmp.Ordered](number int, a, b T) bool {
	if mutantOn(number) {
		return a >= b
	}
	return a > b
}

func mutantGreaterOrEqual[T cmp.Ordered](number int, a, b T) bool {
	if mutantOn(number) {
		return a > b
	}
	return a >= b
}
`
