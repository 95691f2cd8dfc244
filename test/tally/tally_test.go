package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const stream = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestGood"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"    x_test.go:9: Decide: 7 combinations walked\n"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"    x_test.go:10: chatter | of pipes |, too\n"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"        | a row | of a table |\n"}
{"Action":"pass","Package":"p","Test":"TestGood","Elapsed":0.1}
{"Action":"output","Package":"p","Test":"TestLater","Output":"    x_test.go:3: needs root\n"}
{"Action":"skip","Package":"p","Test":"TestLater","Elapsed":0}
{"Action":"output","Package":"p","Output":"exit to delete: p50 80ms\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p","Elapsed":0.1}
`

func tallied(t *testing.T, text string) (*tally, string) {
	t.Helper()
	var out strings.Builder
	got := newTally(&out)
	if err := got.read(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return got, out.String()
}

func TestGoodPackageIsOneLineWithItsNumbers(t *testing.T) {
	got, out := tallied(t, stream)
	want := "      x_test.go:9: Decide: 7 combinations walked\n      | a row | of a table |\n    x_test.go:3: needs root\n      exit to delete: p50 80ms\nok    p 0.1s (1 passed, 0 failed, 1 skipped)\n"
	if out != want || got.broken() {
		t.Errorf("broken %t, got\n%swant\n%s", got.broken(), out, want)
	}
}

func TestFailureIsShownWhole(t *testing.T) {
	got, out := tallied(t, strings.ReplaceAll(strings.ReplaceAll(stream, `"pass"`, `"fail"`), "TestGood", "TestBad"))
	if !got.broken() || got.total.failed != 1 || !strings.Contains(out, "chatter") || !strings.Contains(out, "FAIL  p") {
		t.Errorf("total %s, got\n%s", got.total, out)
	}
}

func TestPackageThatDoesNotBuildFails(t *testing.T) {
	got, out := tallied(t, `{"ImportPath":"p [p.test]","Action":"build-output","Output":"x.go:1: undefined: y\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p [p.test]"}
`)
	if !got.broken() || got.total.failed != 1 || !strings.Contains(out, "undefined: y") {
		t.Errorf("total %s, got\n%s", got.total, out)
	}
}

func TestTestThatNeverEndedIsNamed(t *testing.T) {
	got, out := tallied(t, `{"Action":"output","Package":"p","Test":"TestHung","Output":"=== RUN   TestHung\n"}
{"Action":"output","Package":"p","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"p","Elapsed":600}
`)
	if !got.broken() || !strings.Contains(out, "not ended: TestHung") || !strings.Contains(out, "timed out") {
		t.Errorf("total %s, got\n%s", got.total, out)
	}
}

func TestOtherLinesArePassedOn(t *testing.T) {
	if _, out := tallied(t, "go: downloading x\n{}\n"); out != "go: downloading x\n{}\n" {
		t.Errorf("got %q", out)
	}
}

func TestSumIsAppended(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sum")
	for range 2 {
		if err := (counts{3, 2, 1}).appendTo(path, "race"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != "race 3 2 1\nrace 3 2 1\n" {
		t.Errorf("got %q, %v", got, err)
	}
}
