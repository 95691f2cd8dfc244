package cli_test

import (
	"bytes"
	"fmt"
	"regexp"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/cli"
	"gitlab.com/sluice-runners/sluice/internal/config"
)

// What is printed is what the server takes: the entry goes into a file, the
// token into a request, until it is over.
func TestAPrintedTokenIsWhatTheServerTakesUntilItIsOver(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	var out, errs bytes.Buffer
	status := cli.Main(t.Context(), cli.Env{
		Args: []string{"token", "create", "null", "--expires", "90d"}, Stdout: &out, Stderr: &errs,
		Getenv: func(string) string { return "" }, Now: func() time.Time { return now },
	})
	printed := regexp.MustCompile(`(?s)^token \(shown once\):  (sluice_\S+)\nserver.tokens entry: (- \{.*\})\n$`).FindStringSubmatch(out.String())
	if status != 0 || printed == nil {
		t.Fatalf("status %d: %s%s", status, out.String(), errs.String())
	}
	file := fmt.Sprintf(`fleets:
  gcp:
    vms: {names: [runner-01]}
    provider: {exec: {list: [l], describe: [d], prepare: ["true"], create: [c], delete: [x]}}
    host: {user: fedora, key: {file: /nowhere/key}}
server:
  tokens:
    %s
`, printed[2])
	c, err := config.Parse("sluice.yaml", []byte(file), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	entry := c.Server.Tokens[0]
	for at, want := range map[time.Duration]bool{0: true, 90*24*time.Hour - time.Second: true, 90 * 24 * time.Hour: false} {
		tokens, err := access.NewTokens([]access.Token{{Name: entry.Name, SHA256: entry.SHA256, Expires: entry.Expires}}, fixed(now.Add(at)))
		if err != nil {
			t.Fatal(err)
		}
		if name, err := tokens.Authenticate(printed[1]); (err == nil && name == "null") != want {
			t.Errorf("after %s: %q, %v", at, name, err)
		}
	}
}

type fixed time.Time

func (f fixed) Now() time.Time { return time.Time(f) }
