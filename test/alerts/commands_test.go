package alerts

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/cli"
)

// command finds what a person would type: in code, from the word sluice to
// the end of the command.
var (
	inline  = regexp.MustCompile("`((?:[A-Z_]+=\\S+ )*sluice [^`]+)`")
	block   = regexp.MustCompile(`(?m)^    ((?:[A-Z_]+=\S+ )*sluice [^\n]+)$`)
	trailer = regexp.MustCompile(`(  |\s[|>#]).*$`) // explanation, pipe, comment
)

func commands(text string) (list []string) {
	for _, expression := range []*regexp.Regexp{inline, block} {
		for _, match := range expression.FindAllStringSubmatch(text, -1) {
			_, line, _ := strings.Cut(match[1], "sluice ")
			list = append(list, trailer.ReplaceAllString(line, ""))
		}
	}
	return list
}

// tried parses a command as the program would, and runs nothing.
func tried(line string) error {
	root := cli.Command(cli.Env{Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" }})
	cmd, rest, err := root.Find(strings.Fields(line))
	if err != nil {
		return err
	}
	if cmd == root || (cmd.HasSubCommands() && len(rest) > 0) {
		return fmt.Errorf("there is no command %q", line)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

func TestRunbooksNameCommandsThatExist(t *testing.T) {
	for _, path := range runbookFiles(t) {
		list := commands(read(t, path))
		for _, line := range list {
			if err := tried(line); err != nil {
				t.Errorf("%s: sluice %s: %v", path, line, err)
			}
		}
		if len(list) == 0 {
			t.Errorf("%s names no command", path)
		}
	}
}

func TestACommandThatDoesNotExistIsSeen(t *testing.T) {
	text := "Use `sluice op show ID` and\n\n    SLUICE_TOKEN=x sluice op list --fleet lab   the newest first\n    sluice doctor lab | less\n"
	if got := commands(text); len(got) != 3 || got[0] != "op show ID" || got[1] != "op list --fleet lab" || got[2] != "doctor lab" {
		t.Errorf("found %q", got)
	}
	for line, want := range map[string]bool{
		"op show ID": true, "op list --fleet lab": true, "doctor lab": true, "recreate lab/runner-01 --cap 30m": true,
		"op shows ID": false, "op show": false, "op list --fleets lab": false, "heal": false, "recreate": false, "op extend ID 10m": false,
	} {
		if err := tried(line); (err == nil) != want {
			t.Errorf("sluice %s: %v", line, err)
		}
	}
}
