package gitlab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gl "gitlab.com/gitlab-org/api/client-go/v2"
)

// walk calls every method of every service of the client.
type walk struct {
	t    *testing.T
	word string // what stands in every parameter that is a text

	called, refused int
	passed          []string // methods whose request got out
	silent          []string // methods that asked for nothing
}

// everything walks the services of c and counts what became of each call; sent
// is how many requests have arrived so far.
func (w *walk) everything(c *gl.Client, sent func() int) {
	services := reflect.ValueOf(c).Elem()
	for i := range services.NumField() {
		field := services.Type().Field(i)
		if !field.IsExported() || field.Type.Kind() != reflect.Interface || services.Field(i).IsNil() {
			continue
		}
		for m := range field.Type.NumMethod() {
			w.one(field.Name+"."+field.Type.Method(m).Name, services.Field(i).Method(m), sent)
		}
	}
}

func (w *walk) one(name string, method reflect.Value, sent func() int) {
	w.called++
	before := sent()
	err := w.call(method)
	after := sent()
	_, refused := errors.AsType[*RefusedError](err)
	switch {
	case refused && after != before:
		w.t.Errorf("%s was refused, and sent all the same", name)
	case refused:
		w.refused++
	case after > before:
		w.passed = append(w.passed, name)
	default:
		w.silent = append(w.silent, name) // or not with what it was given
	}
}

// call yields the method's error; a method that cannot bear its parameters has
// sent nothing.
func (w *walk) call(method reflect.Value) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	var in []reflect.Value
	for i := range method.Type().NumIn() {
		if method.Type().IsVariadic() && i == method.Type().NumIn()-1 {
			break
		}
		in = append(in, w.value(method.Type().In(i), 0))
	}
	for _, out := range method.Call(in) {
		if e, ok := out.Interface().(error); ok {
			err = e
		}
	}
	return err
}

// value makes a parameter: the word, 7, or whatever the type can hold.
func (w *walk) value(t reflect.Type, depth int) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.String:
		v.SetString(w.word)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
	case reflect.Slice:
		if depth == 0 && t.Elem().Kind() != reflect.Interface {
			v.Set(reflect.Append(v, w.value(t.Elem(), 1)))
		}
	case reflect.Interface:
		for _, candidate := range []any{w.word, bytes.NewReader([]byte("x")), w.t.Context()} {
			if reflect.TypeOf(candidate).Implements(t) {
				v.Set(reflect.ValueOf(candidate))
				break
			}
		}
	default:
	}
	return v
}

// recorder is a GitLab that keeps what it was sent, and sends everybody away.
type recorder struct {
	mu   sync.Mutex
	sent []string
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	_, _ = io.Copy(io.Discard, req.Body)
	r.mu.Lock()
	r.sent = append(r.sent, req.Method+" "+req.URL.EscapedPath())
	r.mu.Unlock()
	w.Header().Set("Location", "/api/v4/runners/8/followed")
	w.WriteHeader(http.StatusTemporaryRedirect)
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sent)
}

// distinct lists what arrived, each once.
func (r *recorder) distinct() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.Clone(r.sent)
	slices.Sort(list)
	return slices.Compact(list)
}

// listen starts a recorder and yields the configuration of a client of it.
func listen(t *testing.T) (Config, *recorder) {
	t.Helper()
	r := &recorder{}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return Config{URL: server.URL, Token: "glpat-x", Now: time.Now, Rate: 1e9}, r
}

func recorded(t *testing.T) (*Instance, *recorder) {
	t.Helper()
	cfg, r := listen(t)
	in, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return in, r
}

// callable lists the methods of the client library that get a request out of an
// instance, whatever word stands in their parameters.
func callable(t *testing.T, in *Instance, server *recorder) []string {
	t.Helper()
	passed := map[string]bool{}
	for _, word := range []string{"7", "managers", "self", "verify", "all", "reset_authentication_token", "../runners/7", "7?_method=delete", "x/y"} {
		for _, client := range []*gl.Client{in.user, in.runner} {
			w := &walk{t: t, word: word}
			w.everything(client, server.count)
			if w.called < 1000 || len(w.silent) > 12 {
				t.Errorf("with %q, %d methods were called and these asked for nothing: %v: this test sees too little", word, w.called, w.silent)
			}
			for _, name := range w.passed {
				passed[name] = true
			}
			t.Logf("with %q: %d methods, %d refused, %d passed, %d without a request", word, w.called, w.refused, len(w.passed), len(w.silent))
		}
	}
	return slices.Sorted(maps.Keys(passed))
}

// design.md, promise 2: of every method that the client library has, with every
// word in its parameters that means something below /runners, these alone get a
// request out. Everything else is refused before a byte is sent, and no redirect
// is followed.
func TestOfEveryMethodOfTheClientLibraryTheseAloneCanBeCalled(t *testing.T) {
	reader, readerAsks := recorded(t)
	cfg, writerAsks := listen(t)
	writer, err := NewWriter(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		in      *Instance
		server  *recorder
		methods []string
		sent    []string
	}{
		"by the reader": {
			reader, readerAsks,
			[]string{
				"Jobs.GetJob", "Jobs.GetTraceFile", "Jobs.ListPipelineJobs", "Metadata.GetMetadata",
				"PersonalAccessTokens.GetSinglePersonalAccessToken", "Projects.ListProjectHooks", "Projects.ListProjects",
				"Runners.GetRunnerDetails", "Runners.ListRunnerJobs", "Runners.ListRunnerManagers", "Users.CurrentUser",
			},
			[]string{
				"GET /api/v4/metadata",
				"GET /api/v4/personal_access_tokens/self",
				"GET /api/v4/projects",
				"GET /api/v4/projects/7/hooks",
				"GET /api/v4/projects/7/jobs/7",
				"GET /api/v4/projects/7/jobs/7/trace",
				"GET /api/v4/projects/7/pipelines/7/jobs",
				"GET /api/v4/runners/7",
				"GET /api/v4/runners/7/jobs",
				"GET /api/v4/runners/7/managers",
				"GET /api/v4/user",
			},
		},
		"by the writer": {
			writer.in, writerAsks,
			[]string{"Jobs.CancelJob", "Jobs.CancelJobWithOptions", "Jobs.RetryJob", "PersonalAccessTokens.GetSinglePersonalAccessToken", "Projects.ListProjects"},
			[]string{
				"GET /api/v4/personal_access_tokens/self",
				"GET /api/v4/projects",
				"POST /api/v4/projects/7/jobs/7/cancel",
				"POST /api/v4/projects/7/jobs/7/retry",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := callable(t, c.in, c.server); !slices.Equal(got, c.methods) {
				t.Errorf("these methods can be called:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(c.methods, "\n"))
			}
			if got := c.server.distinct(); !slices.Equal(got, c.sent) {
				t.Errorf("these requests were sent:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(c.sent, "\n"))
			}
		})
	}
}

// The capability to remove an entry is no way around: it sends one request, of
// its own entry, once; whatever else it is asked for first uses it up.
func TestTheCapabilityToRemoveAnEntryIsGoodForThatOneRequestAlone(t *testing.T) {
	in, server := recorded(t)
	fresh := func() *removal {
		return &removal{in: in, token: "glpat-w", id: 12, what: "remove 12", unmodifiedSince: time.Now()}
	}
	request := func(method, path, body string) *http.Request {
		req, err := http.NewRequestWithContext(t.Context(), method, in.base.String()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body == "" {
			req.Body = nil
		}
		return req
	}
	refused := func(r *removal, req *http.Request) {
		t.Helper()
		resp, err := r.RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		if _, ok := errors.AsType[*RefusedError](err); !ok {
			t.Errorf("%s %s: %v", req.Method, req.URL, err)
		}
	}
	elsewhere := request(http.MethodDelete, "/api/v4/runners/12", "")
	elsewhere.Host = "other.example"
	redirected := request(http.MethodDelete, "/api/v4/runners/12", "")
	redirected.Response = &http.Response{}
	for _, req := range []*http.Request{
		request(http.MethodDelete, "/api/v4/runners/13", ""),
		request(http.MethodDelete, "/api/v4/runners", ""),
		request(http.MethodDelete, "/api/v4/runners/12?x=1", ""),
		request(http.MethodDelete, "/api/v4/runners/12/managers", ""),
		request(http.MethodPost, "/api/v4/runners/12/reset_authentication_token", ""),
		request(http.MethodPut, "/api/v4/runners/12", ""),
		request(http.MethodGet, "/api/v4/runners/12", ""),
		request(http.MethodDelete, "/api/v4/runners/12", `{"token":"t"}`),
		elsewhere, redirected,
	} {
		r := fresh()
		refused(r, req)
		refused(r, request(http.MethodDelete, "/api/v4/runners/12", ""))
	}
	if n := server.count(); n != 0 {
		t.Fatalf("%d requests were sent: %v", n, server.distinct())
	}
	r := fresh()
	if err := r.send(t.Context()); err == nil {
		t.Error("a redirect was taken for done")
	}
	for range 3 {
		if err := r.send(t.Context()); err == nil {
			t.Error("it was used twice")
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := fresh().send(ended); err == nil {
		t.Error("it was sent for somebody who had gone")
	}
	if got := server.distinct(); server.count() != 1 || !slices.Equal(got, []string{"DELETE /api/v4/runners/12"}) {
		t.Errorf("sent %d: %v", server.count(), got)
	}
}
