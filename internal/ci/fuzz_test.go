package ci

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode"

	junit "github.com/joshdk/go-junit"

	"gitlab.com/sluice-runners/sluice/internal/client"
)

var dotenvLine = regexp.MustCompile(`^[A-Z][A-Z0-9_]*=[^\s"'$\\]*$`)

// An operation comes from the network: whatever it says, the reports are what
// GitLab reads, and the log has no control character in it.
func FuzzReports(f *testing.F) {
	f.Add([]byte(`{"id":"op-1","fleet":"shared","vm":"runner-01","kind":"recreate","phase":"failed","finished":true,"failure":{"code":"unavailable","message":"the new VM did not serve","hint":"look at it"}}`))
	f.Add([]byte(`{"id":"op\n1","fleet":"a\u001b[0K","vm":"x y","phase":"succeeded","finished":true,"cut_jobs":[{"id":1,"url":"javascript:alert(1)"},{"id":2,"name":"\u202e","url":"https://gitlab.example.com/-/jobs/2"}]}`))
	f.Add([]byte(`{"id":"","held":true,"waiting":"]]><x>","old":{"instance":"\u0000"},"created_at":"2030-01-01T00:00:00Z","finished_at":"1999-01-01T00:00:00Z","finished":true}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var op client.Operation
		if json.Unmarshal(body, &op) != nil {
			return
		}
		for _, broken := range [][]string{nil, {"the job was canceled"}} {
			r := reported("https://sluice.example.com", "shared", []client.Operation{op}, broken)
			checkJUnit(t, r)
			checkDotenv(t, r)
			checkAnnotations(t, r)
		}
		for _, line := range append(reasons(&op), headline(&op), title(&op)) {
			if strings.ContainsFunc(line, unicode.IsControl) {
				t.Errorf("a control character in %q", line)
			}
		}
	})
}

func checkJUnit(t *testing.T, r Report) {
	t.Helper()
	text, err := r.junit()
	if err != nil {
		t.Fatal(err)
	}
	suites, err := junit.Ingest(text)
	if err != nil {
		t.Fatalf("JUnit: %v\n%s", err, text)
	}
	if len(suites) != 1 || len(suites[0].Tests) != 1 {
		t.Errorf("JUnit: %v", suites)
	}
}

func checkDotenv(t *testing.T, r Report) {
	t.Helper()
	text := string(r.dotenv())
	if len(text) > maxDotenv || strings.Count(text, "\n") > maxVariables || !strings.HasPrefix(text, "SLUICE_STATE=") {
		t.Errorf("dotenv: %q", text)
	}
	for line := range strings.Lines(text) {
		if !dotenvLine.MatchString(strings.TrimSuffix(line, "\n")) {
			t.Errorf("dotenv: %q", line)
		}
	}
}

func checkAnnotations(t *testing.T, r Report) {
	t.Helper()
	text, err := r.annotations()
	if err != nil {
		t.Fatal(err)
	}
	var links map[string][]map[string]struct{ Label, URL string }
	if err := json.Unmarshal(text, &links); err != nil {
		t.Fatal(err)
	}
	if len(links["Sluice"]) == 0 {
		t.Error("no link")
	}
	for _, entry := range links["Sluice"] {
		if l := entry["external_link"]; !strings.HasPrefix(l.URL, "http://") && !strings.HasPrefix(l.URL, "https://") {
			t.Errorf("annotations: %q", l.URL)
		}
	}
}

// Text from the network becomes one line of a log that GitLab shows as it is.
func FuzzClean(f *testing.F) {
	for _, text := range []string{"plain", "two\nlines", "\x1b[0Ksection_start:1:x\r\x1b[0K", "\u202edesrever", "\xff\xfe", strings.Repeat("x", 2*longest)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := clean(text)
		if strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q → %q", text, got)
		}
		if len(got) > longest+10 {
			t.Errorf("%d bytes", len(got))
		}
		if clean(got) != got && len(got) <= longest {
			t.Errorf("%q is not clean yet", got)
		}
	})
}

// An id_token is read here for people alone, when the controller has refused
// it; nothing of it but its claims is shown.
func FuzzTokenLines(f *testing.F) {
	f.Add("a.b.c")
	f.Add("eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJodHRwczovL2dpdGxhYi5leGFtcGxlLmNvbSIsImF1ZCI6WyJhIl0sImlhdCI6OTk5OTk5OTk5OTksImV4cCI6LTF9.c2ln")
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		lines := tokenLines(token, noon)
		if len(lines) == 0 {
			t.Error("says nothing")
		}
		for _, line := range lines {
			if strings.ContainsFunc(line, unicode.IsControl) {
				t.Errorf("a control character in %q", line)
			}
			if signature := token[strings.LastIndex(token, ".")+1:]; len(signature) > 20 && strings.Contains(line, signature) {
				t.Errorf("the signature is shown: %q", line)
			}
		}
	})
}
