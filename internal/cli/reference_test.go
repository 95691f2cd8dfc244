package cli

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

//go:generate go test -run TestTheReferencePageIsInStep -update .

var update = flag.Bool("update", false, "write the generated page anew")

const page = "../../docs/reference/cli.md"

func tree() *cobra.Command {
	return Command(Env{Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv})
}

func reference() string {
	var b strings.Builder
	root := tree()
	b.WriteString("# Command line\n\nGenerated from the commands; `sluice COMMAND --help` says the same.\n\n")
	b.WriteString("| exit status | means |\n| --- | --- |\n| 0 | done |\n| 1 | failed |\n| 2 | usage or configuration |\n| 3 | done, but a job was cut |\n| 4 | refused by a safety rule; nothing was touched |\n| 5 | held: a person has to correct something, then `sluice op resume` |\n| 130 | interrupted |\n\n")
	b.WriteString("| environment | is |\n| --- | --- |\n| `SLUICE_CONFIG` | the configuration file |\n| `SLUICE_SERVER`, `SLUICE_TOKEN` | a server's URL, and the token for it |\n| `SLUICE_ID_TOKEN` | of `ci recreate`: the job's id_token |\n| `NO_COLOR` | no colour at a terminal |\n\nFlags of every command:\n\n")
	flags(&b, root.PersistentFlags())
	for _, cmd := range root.Commands() {
		describe(&b, cmd)
	}
	return b.String()
}

func describe(b *strings.Builder, cmd *cobra.Command) {
	if cmd.Name() == "help" || cmd.Hidden || cmd.Parent().Name() == "completion" {
		return
	}
	fmt.Fprintf(b, "## %s\n\n%s\n\n", cmd.UseLine(), cmd.Short+".")
	if cmd.Name() == "completion" {
		return
	}
	if cmd.Long != "" {
		fmt.Fprintf(b, "```text\n%s\n```\n\n", strings.TrimSpace(cmd.Long))
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "```sh\n%s\n```\n\n", unindent(cmd.Example))
	}
	if cmd.LocalNonPersistentFlags().HasFlags() {
		flags(b, cmd.LocalNonPersistentFlags())
	}
	for _, child := range cmd.Commands() {
		describe(b, child)
	}
}

func flags(b *strings.Builder, set *pflag.FlagSet) {
	b.WriteString("| flag | default | says |\n| --- | --- | --- |\n")
	set.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		fallback := f.DefValue
		if fallback == "false" || fallback == "0" || fallback == "0s" {
			fallback = ""
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", strings.TrimSpace("--"+f.Name+" "+value), fallback, usage)
	})
	b.WriteString("\n")
}

func unindent(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

func TestTheReferencePageIsInStep(t *testing.T) {
	want := reference()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is out of step: run go test ./internal/cli -run Reference -update", page)
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Name() == "completion" || cmd.Name() == "help" {
			return
		}
		if cmd.Example == "" {
			t.Errorf("%s has none", cmd.CommandPath())
		}
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	walk(tree())
}
