// Command tally reads the stream of `go test -json` and prints what a person
// wants of it: a line per package, the whole output of what failed, the
// numbers that tests report, and a sum that says how many passed.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	name := flag.String("name", "go test", "what the sum is called")
	sum := flag.String("sum", "", "append \"NAME PASSED FAILED SKIPPED\" to this file")
	flag.Parse()
	t := newTally(os.Stdout)
	err := t.read(os.Stdin)
	_, _ = fmt.Fprintf(os.Stdout, "%s: %s\n", *name, t.total)
	if err == nil && *sum != "" {
		err = t.total.appendTo(*sum, *name)
	}
	switch {
	case err != nil:
		_, _ = fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	case t.broken():
		os.Exit(1)
	}
}
