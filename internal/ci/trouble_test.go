package ci_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	junit "github.com/joshdk/go-junit"

	"gitlab.com/sluice-runners/sluice/internal/ci"
	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/outcome"
	"gitlab.com/sluice-runners/sluice/test/component/stage"
)

// awaitPhase waits until an operation is in a phase. It asks no more often than a
// caller may (access.Throttle).
func awaitPhase(t *testing.T, s *stage.Stage, id, phase string) {
	t.Helper()
	c, err := client.New(client.Options{URL: s.URL, Token: stage.Token})
	if err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(2 * time.Minute); ; {
		op, err := c.Operation(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if string(op.Phase) == phase {
			return
		}
		if op.Finished || time.Now().After(limit) {
			t.Fatalf("%s never was in %s: %s", id, phase, op.Phase)
		}
		select {
		case <-t.Context().Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func TestAControllerThatRestartsInMidFollowIsFollowedOn(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, stage.Options{MinJob: 4 * time.Second, MaxJob: 5 * time.Second})
	j := newJob(t, s.URL, "runner-01")
	ended := make(chan int, 1)
	go func() { ended <- j.run() }()
	j.log.await(t, "intake is stopped")
	s.Restart(t)
	if status := <-ended; status != 0 {
		t.Fatalf("exit status %d", status)
	}
	j.says("recreate succeeded")
	sections(t, j.log.String(), "runner-01")
	if err := s.World.DamageTo("runner-01"); err != nil {
		t.Error(err)
	}
}

func TestAStreamThatIsCutIsTakenUpWithoutALineTwice(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, stage.Options{MinJob: 4 * time.Second, MaxJob: 5 * time.Second})
	j := newJob(t, s.URL, "runner-01")
	ended := make(chan int, 1)
	go func() { ended <- j.run() }()
	j.log.await(t, "intake is stopped")
	if s.Cut() == 0 {
		t.Error("there was no stream to cut")
	}
	if status := <-ended; status != 0 {
		t.Fatalf("exit status %d", status)
	}
	if s.Calls("GET events") < 2 {
		t.Error("the stream was not taken up again")
	}
	j.says("is online", "recreate succeeded")
	sections(t, j.log.String(), "runner-01")
}

func TestAProxyThatLetsNoStreamThroughIsPolled(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, stage.Options{})
	inner := s.Inner()
	s.Instead(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, "<h1>Bad Gateway</h1>")
			return
		}
		inner.ServeHTTP(w, r)
	})
	j := newJob(t, s.URL, "runner-01")
	if status := j.run(); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	j.says("intake is stopped", "is online", "recreate succeeded")
	sections(t, j.log.String(), "runner-01")
}

func TestAControllerThatComesLateIsWaitedForWithOneLineForEachReason(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, stage.Options{})
	s.Shut(true)
	j := newJob(t, s.URL, "runner-01")
	ended := make(chan int, 1)
	go func() { ended <- j.run() }()
	j.log.await(t, "no answer yet")
	for limit := time.Now().Add(2 * time.Minute); s.Calls("POST operations") < 3; <-time.After(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%d requests", s.Calls("POST operations"))
		}
	}
	s.Shut(false)
	if status := <-ended; status != 0 {
		t.Fatalf("exit status %d", status)
	}
	j.says("the controller answers again")
	if n := strings.Count(j.log.String(), "no answer yet"); n != 1 {
		t.Errorf("the same reason was told %d times", n)
	}
	if s.Keys() != 1 {
		t.Errorf("%d Idempotency-Keys, want 1", s.Keys())
	}
}

func TestAControllerThatNeverAnswersFailsTheJobWithItsURLAndReports(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, stage.Options{})
	s.Shut(true)
	j := newJob(t, s.URL, "runner-01", "runner-02")
	j.Patience = 2 * time.Second
	if status := j.run(); status != 1 {
		t.Fatalf("exit status %d, want 1", status)
	}
	j.says("NO ANSWER FROM "+s.URL, "next: does "+s.URL+" run")
	j.want(junit.StatusError, "runner-01", "runner-02")
	if text := j.cases()["runner-01"].Error.Error(); !strings.Contains(text, s.URL) {
		t.Errorf("JUnit does not name the URL: %q", text)
	}
	if v := j.variables(); v["SLUICE_STATE"] != "not_asked" || v["SLUICE_URL"] != s.URL {
		t.Errorf("dotenv: %v", v)
	}
	if j.links()["Sluice controller"] != s.URL {
		t.Errorf("annotations: %v", j.links())
	}
}

func TestAControllerThatIsLostForGoodFailsTheJobAndSaysThatItGoesOn(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, stage.Options{MinJob: 4 * time.Second, MaxJob: 5 * time.Second})
	j := newJob(t, s.URL, "runner-01")
	j.Patience = 2 * time.Second
	ended := make(chan int, 1)
	go func() { ended <- j.run() }()
	j.log.await(t, "intake is stopped")
	s.Shut(true)
	if status := <-ended; status != 1 {
		t.Errorf("exit status %d, want 1", status)
	}
	j.says("the controller goes on", "sluice op watch op-")
	j.want(junit.StatusError, "runner-01")
	if v := j.variables(); v["SLUICE_STATE"] != "running" || v["SLUICE_OPERATIONS"] == "" {
		t.Errorf("dotenv: %v", v)
	}
}

func TestEveryRefusalIsShownWhole(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, stage.Options{})
	for name, c := range map[string]struct {
		change func(*pipelineJob)
		status int
		says   []string
	}{
		"an unknown fleet": {func(j *pipelineJob) { j.Order.Fleet = "shraed" }, 2, []string{"shraed", "code: not_found", "next: ", "shared"}},
		"an unknown VM":    {func(j *pipelineJob) { j.Order.VMs = []string{"runner-1"} }, 2, []string{"runner-1", "code: not_found", "next: "}},
		"no VM":            {func(j *pipelineJob) { j.Order.VMs = nil }, 2, []string{"no VM was named", "next: set the component's input `vms`"}},
		"a VM named twice": {func(j *pipelineJob) { j.Order.VMs = []string{"runner-01", "runner-01"} }, 2, []string{"named twice", "next: "}},
		"a name with a variable that is not there": {func(j *pipelineJob) { j.Order.Fleet = "$FLEET" }, 2, []string{`"$FLEET" is no name`, "next: "}},
		"a cap that is none":                       {func(j *pipelineJob) { j.Order.Cap = "10" }, 2, []string{`cap "10" is no length of time`, "next: write 45s"}},
		"a policy that is none":                    {func(j *pipelineJob) { j.Order.OnOverrun = "kill" }, 2, []string{`"kill" is not known`, "next: "}},
		"an image too long":                        {func(j *pipelineJob) { j.Order.Image = strings.Repeat("x", 2000) }, 2, []string{"image: ", "code: invalid"}},
		"a token that is not known":                {func(j *pipelineJob) { j.Token = "sluice_other" }, 2, []string{"NOT LET IN", "code: unauthorized", "no id_token"}},
		"no token":                                 {func(j *pipelineJob) { j.Token = "" }, 2, []string{"SLUICE_ID_TOKEN is empty", "next: give the job id_tokens"}},
		"no controller":                            {func(j *pipelineJob) { j.Server = "" }, 2, []string{"no controller was named", "next: "}},
		"a controller that is no URL":              {func(j *pipelineJob) { j.Server = "sluice.example.com" }, 2, []string{"is not an http(s) URL", "next: "}},
		"no URL at all":                            {func(j *pipelineJob) { j.Server = "127.0.0.1:8420" }, 2, []string{"--server is not a URL", "next: write https://"}},
		"no GitLab job":                            {func(j *pipelineJob) { j.Place.Pipeline = "" }, 2, []string{"CI_PIPELINE_ID", "next: "}},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t, s.URL, "runner-01")
			c.change(j)
			if status := j.run(); status != c.status {
				t.Errorf("exit status %d, want %d", status, c.status)
			}
			j.says(c.says...)
			j.want(junit.StatusError, j.Order.VMs...)
			want := map[int]string{2: "not_asked", 4: "refused"}[c.status]
			if state := j.variables()["SLUICE_STATE"]; state != want && len(j.Order.VMs) > 0 {
				t.Errorf("dotenv: %s", state)
			}
			j.links()
		})
	}
	t.Run("another operation is in the way", func(t *testing.T) {
		first := newJob(t, s.URL, "runner-01")
		first.Detach = true
		if status := first.run(); status != 0 {
			t.Fatalf("exit status %d", status)
		}
		j := newJob(t, s.URL, "runner-01")
		j.Order.Image, j.Place.Job = "other", "other"
		if status := j.run(); status != outcome.Refused {
			t.Errorf("exit status %d", status)
		}
		j.says("has an unfinished operation already", "with the fleet's own image", "code: conflict", "next: ")
		if state := j.variables()["SLUICE_STATE"]; state != "refused" {
			t.Errorf("dotenv: %s", state)
		}
	})
	if s.Calls("POST operations") > 7 {
		t.Errorf("%d requests: a refusal was repeated", s.Calls("POST operations"))
	}
}

// It was reached: what it says is worth more than a guess about the network.
func TestAControllerThatCannotServeNowIsQuotedWithItsHint(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"code":"unavailable","detail":"the keys of https://gitlab.example.com cannot be read","hint":"see that the server reaches it"}`)
	}))
	t.Cleanup(server.Close)
	j := newJob(t, server.URL, "runner-01")
	j.Patience = 0
	if status := j.run(); status != outcome.Failed {
		t.Errorf("exit status %d", status)
	}
	j.says("NOT SERVED NOW BY "+server.URL+": the keys of", "next: see that the server reaches it")
	if strings.Contains(j.log.String(), "network") {
		t.Errorf("it guesses:\n%s", j.log.String())
	}
}

func TestAPasswordInTheControllersURLIsRefusedAndWrittenNowhere(t *testing.T) {
	t.Parallel()
	const password = "s3cret-pw"
	j := newJob(t, "https://ci:"+password+"@sluice.example.com", "runner-01")
	if status := j.run(); status != outcome.Usage {
		t.Errorf("exit status %d", status)
	}
	j.says("is not an http(s) URL")
	texts := []string{j.log.String()}
	for _, name := range []string{ci.DotenvFile, ci.JUnitFile, ci.AnnotationsFile} {
		text, err := os.ReadFile(filepath.Join(j.Reports, name))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	if strings.Contains(strings.Join(texts, ""), password) {
		t.Errorf("the password is in %q", texts)
	}
}

func TestACertificateThatNobodyTrustsIsExplainedAtOnce(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	server.Config.ErrorLog = nil
	t.Cleanup(server.Close)
	j := newJob(t, server.URL, "runner-01")
	j.Patience = time.Hour // were it used, the test would not end
	if status := j.run(); status != 1 {
		t.Errorf("exit status %d, want 1", status)
	}
	j.says("certificate signed by unknown authority", "SSL_CERT_FILE")
	j.want(junit.StatusError, "runner-01")
}

func TestPlainHTTPWhereTLSIsSpokenIsExplained(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	j := newJob(t, strings.Replace(server.URL, "http:", "https:", 1), "runner-01")
	if status := j.run(); status != 1 {
		t.Errorf("exit status %d, want 1", status)
	}
	j.says("there is no TLS at that port")
}

func TestATokenThatGoesOverANetworkInPlainTextIsWarnedOf(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, stage.Options{})
	const warning = "is not https: whoever listens on the way can use this job's token"
	for address, warned := range map[string]bool{"127.0.0.1": false, "0.0.0.0": true} { // both are this machine
		j := newJob(t, strings.Replace(s.URL, "127.0.0.1", address, 1), "runner-99")
		j.run()
		if strings.Contains(j.log.String(), warning) != warned {
			t.Errorf("%s: %s", address, j.log.String())
		}
	}
}

// idToken has the claims of one, and is signed by nobody.
func idToken(issued time.Time, lifetime time.Duration) string {
	body := fmt.Sprintf(`{"iss":"https://gitlab.example.com","aud":"sluice","iat":%d,"exp":%d}`, issued.Unix(), issued.Add(lifetime).Unix())
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"RS256"}`)) + "." + part([]byte(body)) + "." + part([]byte("secret-signature"))
}

func TestClocksThatDifferAreExplained(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, stage.Options{})
	for name, c := range map[string]struct {
		issued   time.Time
		lifetime time.Duration
		clock    time.Duration
		says     string
	}{
		"this job's clock is behind": {time.Now(), time.Hour, -5 * time.Minute, "this job's clock is behind GitLab's by "},
		"the token has expired":      {time.Now().Add(-10 * time.Minute), 5 * time.Minute, 0, "the token has expired by this job's clock"},
		"the controller is ahead":    {time.Now().Add(-10 * time.Minute), time.Hour, -3 * time.Minute, " ahead of this job's: set the clocks"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t, s.URL, "runner-01")
			j.Token = idToken(c.issued, c.lifetime)
			j.Now = func() time.Time { return time.Now().Add(c.clock) }
			if status := j.run(); status != 2 {
				t.Errorf("exit status %d, want 2", status)
			}
			j.says(c.says, "issuer https://gitlab.example.com", `audience "sluice"`)
			if strings.Contains(j.log.String(), j.Token) || strings.Contains(j.log.String(), "secret-signature") {
				t.Error("the log holds the token")
			}
		})
	}
}

// answering lets the controller answer, and changes its answer to a POST.
func answering(s *stage.Stage, change func(*client.Asked)) {
	inner := s.Inner()
	s.Instead(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			inner.ServeHTTP(w, r)
			return
		}
		record := httptest.NewRecorder()
		inner.ServeHTTP(record, r)
		var asked client.Asked
		body, _ := io.ReadAll(record.Body)
		if err := json.Unmarshal(body, &asked); err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
			return
		}
		change(&asked)
		var out bytes.Buffer
		_ = json.NewEncoder(&out).Encode(asked)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(record.Code)
		_, _ = w.Write(out.Bytes())
	})
}

// Case T65: the job that asks runs on the pool that it asks to replace.
func TestAJobOnItsOwnVMHandsOverAfterTheOthers(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, stage.Options{MinJob: 4 * time.Second, MaxJob: 5 * time.Second})
	answering(s, func(a *client.Asked) {
		a.SelfDrain = &client.SelfDrain{Sure: true, Vm: new("runner-02"), Reason: "job 7 runs there"}
	})
	j := newJob(t, s.URL, "runner-01", "runner-02")
	if status := j.run(); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	j.says("This job runs on shared/runner-02", "job 7 runs there", "recreate succeeded", "sluice op watch op-")
	j.want(junit.StatusPassed, "runner-01")
	j.want(junit.StatusSkipped, "runner-02")
	if state := j.variables()["SLUICE_STATE"]; state != "running" {
		t.Errorf("dotenv: %s", state)
	}
}

func TestAJobThatMayRunOnItsOwnFleetHandsOverAtOnce(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, stage.Options{MinJob: 4 * time.Second, MaxJob: 5 * time.Second})
	answering(s, func(a *client.Asked) { a.SelfDrain = &client.SelfDrain{Reason: "its VM was not found"} })
	j := newJob(t, s.URL, "runner-01")
	if status := j.run(); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	j.says("may run on one of these VMs", "its VM was not found", s.URL+"/api/v1/operations/op-")
	j.want(junit.StatusSkipped, "runner-01")
	if s.Calls("GET events") != 0 || s.Calls("GET operations/ID") != 0 {
		t.Error("it followed")
	}
}

func TestTheFollowTokenIsUsedForFollowing(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, stage.Options{MinJob: 3 * time.Second, MaxJob: 4 * time.Second})
	answering(s, func(a *client.Asked) { a.Follow = &client.Follow{Token: "follow-me", Until: time.Now().Add(time.Hour)} })
	j := newJob(t, s.URL, "runner-01")
	if status := j.run(); status != 1 { // the stage does not know the token
		t.Errorf("exit status %d, want 1", status)
	}
	j.says("LOST THE CONTROLLER", "the controller goes on")
}

func TestAnAnswerAboutSomethingElseIsRefused(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, stage.Options{})
	for name, change := range map[string]func(*client.Asked){
		"too few":    func(a *client.Asked) { a.Operations = nil },
		"another VM": func(a *client.Asked) { a.Operations[0].Vm = "runner-02" },
		"no id":      func(a *client.Asked) { a.Operations[0].Id = "" },
	} {
		t.Run(name, func(t *testing.T) {
			answering(s, change)
			j := newJob(t, s.URL, "runner-01")
			if status := j.run(); status != 1 {
				t.Errorf("exit status %d, want 1", status)
			}
			j.says("NOT UNDERSTOOD: "+s.URL, "next: look at the controller")
			j.want(junit.StatusError, "runner-01")
		})
	}
}
