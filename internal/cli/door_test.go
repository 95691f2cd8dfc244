package cli_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// hookExamples holds payloads of webhooks, by kind.
var hookExamples, _ = filepath.Abs("../hooks/testdata")

var listens = regexp.MustCompile(`msg=listening address=(\S+)`)

// address points SLUICE_SERVER and SLUICE_TOKEN at a server by its log:
// address server.log.
func address(ts *testscript.TestScript, _ bool, args []string) {
	found := listens.FindStringSubmatch(ts.ReadFile(args[0]))
	if found == nil {
		ts.Fatalf("%s names no address", args[0])
	}
	ts.Setenv("SLUICE_SERVER", "http://"+found[1])
	ts.Setenv("SLUICE_TOKEN", doorToken)
}

// deliver sends GitLab's example of an event to the server, as the webhook KEY:
// deliver KIND KEY STATUS [OLD NEW]….
func deliver(ts *testscript.TestScript, _ bool, args []string) {
	body, err := os.ReadFile(filepath.Join(hookExamples, args[0]+".json"))
	ts.Check(err)
	for i := 3; i < len(args); i += 2 {
		body = bytes.ReplaceAll(body, []byte(args[i]), []byte(args[i+1]))
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, ts.Getenv("SLUICE_SERVER")+"/webhooks/gitlab", bytes.NewReader(body))
	ts.Check(err)
	request.Header.Set("X-Gitlab-Token", ts.Getenv("SLUICE_TOKEN"))
	request.Header.Set("Idempotency-Key", args[1])
	answer, err := http.DefaultClient.Do(request)
	ts.Check(err)
	ts.Check(answer.Body.Close())
	if !strings.HasPrefix(answer.Status, args[2]) {
		ts.Fatalf("%s was answered with %s, want %s", args[0], answer.Status, args[2])
	}
}

// listed runs a command again and again until its output fits: listed REGEXP
// command….
func listed(ts *testscript.TestScript, _ bool, args []string) {
	want := regexp.MustCompile(args[0])
	limit := time.Now().Add(90 * time.Second)
	for tick := time.NewTicker(200 * time.Millisecond); ; <-tick.C {
		ts.Check(ts.Exec(args[1], args[2:]...))
		if want.MatchString(ts.ReadFile("stdout")) {
			tick.Stop()
			return
		}
		if time.Now().After(limit) {
			ts.Fatalf("%q never came", args[0])
		}
	}
}
