// Package mutants shows that the tests would notice (design.md section 13): each
// file in testdata makes one line of the real code wrong, names the promise that
// this breaks and the test that must fail for it.
//
// That each still fits the code is tested always. Under the build tag mutants
// each is compiled in by `go test -overlay`, with its test alone: one that
// survives, does not build, or whose test fails without it too, is a failure.
//
// It must not know how a test catches a mutant: only which does.
package mutants

//go:generate go test -run TestTheMutantsPageIsInStep -update .
