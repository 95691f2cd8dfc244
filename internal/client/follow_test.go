package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// last is the newest event of every journal here.
const last = 5

var errDone = errors.New("seen the last")

// far is a server as a follower sees it, with what lies between.
type far struct {
	stream func(w http.ResponseWriter, r *http.Request, after int64)
	poll   func(w http.ResponseWriter, r *http.Request, after int64)
	asked  []string // "stream" or "poll", in order
}

func (f *far) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	kind, answer := "poll", f.poll
	if r.Header.Get("Accept") == "text/event-stream" {
		kind, answer = "stream", f.stream
	}
	f.asked = append(f.asked, kind)
	answer(w, r, after)
}

func event(id int64) []byte {
	body, _ := json.Marshal(map[string]any{"id": id, "at": "2030-01-01T12:00:00Z", "kind": "note", "text": fmt.Sprint("event ", id)})
	return body
}

// whole is a stream with everything after an id.
func whole(after int64) string {
	text := "retry: 1000\n: hello\n\n"
	for id := after + 1; id <= last; id++ {
		text += fmt.Sprintf("id: %d\ndata: %s\n\n", id, event(id))
	}
	return text
}

func streamed(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text)
}

func polled(w http.ResponseWriter, r *http.Request, after int64) { news(w, r, after, last) }

// still is a journal in which nothing is written.
func still(w http.ResponseWriter, r *http.Request, after int64) { news(w, r, after, after) }

func news(w http.ResponseWriter, r *http.Request, after, newest int64) {
	piece := struct {
		Events []json.RawMessage `json:"events"`
		Next   int64             `json:"next"`
	}{Events: []json.RawMessage{}, Next: max(after, newest)}
	for id := after + 1; id <= newest; id++ {
		piece.Events = append(piece.Events, event(id))
	}
	if len(piece.Events) == 0 {
		wait, _ := strconv.Atoi(r.URL.Query().Get("wait"))
		select {
		case <-time.After(time.Duration(wait) * time.Second):
		case <-r.Context().Done():
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(piece)
}

func unused(w http.ResponseWriter, _ *http.Request, _ int64) {
	http.Error(w, "no", http.StatusBadGateway)
}

// follow follows f until the last event was told, and yields what was told.
func follow(t *testing.T, f *far, what client.Following) ([]int64, error) {
	t.Helper()
	c, err := client.New(client.Options{Handler: f})
	if err != nil {
		t.Fatal(err)
	}
	var told []int64
	err = c.Follow(t.Context(), what, func(e client.Event) error {
		told = append(told, e.Id)
		if e.Id == last {
			return errDone
		}
		return nil
	})
	return told, err
}

var everything = []int64{1, 2, 3, 4, 5}

func TestEachEventIsToldOnceWhereverTheStreamIsCut(t *testing.T) {
	for cut := range len(whole(0)) {
		synctest.Test(t, func(t *testing.T) {
			first := true
			f := &far{stream: func(w http.ResponseWriter, _ *http.Request, after int64) {
				text := whole(after)
				if first {
					text, first = text[:cut], false
				}
				streamed(w, text)
			}, poll: unused}
			told, err := follow(t, f, client.Following{})
			if !errors.Is(err, errDone) || !slices.Equal(told, everything) {
				t.Errorf("cut after %d bytes: %v, %v", cut, told, err)
			}
		})
	}
}

func TestAFollowerPollsWhereStreamsAreHeldBack(t *testing.T) {
	for name, stream := range map[string]func(http.ResponseWriter, *http.Request, int64){
		"nothing comes": func(_ http.ResponseWriter, r *http.Request, _ int64) { <-r.Context().Done() },
		"only the headers come": func(w http.ResponseWriter, r *http.Request, _ int64) {
			streamed(w, "")
			<-r.Context().Done()
		},
		"it is cut at its beginning":     func(w http.ResponseWriter, _ *http.Request, _ int64) { streamed(w, ": hello\n\n") },
		"a gateway refuses":              func(w http.ResponseWriter, _ *http.Request, _ int64) { http.Error(w, "no", http.StatusBadGateway) },
		"a server knows no streams":      polled,
		"what comes is none of Sluice's": func(w http.ResponseWriter, _ *http.Request, _ int64) { streamed(w, "data: hello\n\n") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &far{stream: stream, poll: polled}
				begun := time.Now()
				told, err := follow(t, f, client.Following{})
				if !errors.Is(err, errDone) || !slices.Equal(told, everything) {
					t.Errorf("%v, %v", told, err)
				}
				if took := time.Since(begun); took > 11*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

func TestAFollowerThatPollsTriesAStreamAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{poll: still}
		f.stream = func(w http.ResponseWriter, r *http.Request, after int64) {
			if len(f.asked) == 1 {
				unused(w, r, after)
				return
			}
			streamed(w, whole(after))
		}
		told, err := follow(t, f, client.Following{})
		if !errors.Is(err, errDone) || !slices.Equal(told, everything) {
			t.Errorf("%v, %v", told, err)
		}
		if want := []string{"stream", "poll", "poll", "stream"}; !slices.Equal(f.asked, want) {
			t.Errorf("asked %v, want %v", f.asked, want)
		}
	})
}

func TestASilentStreamIsTakenForDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{poll: unused}
		f.stream = func(w http.ResponseWriter, r *http.Request, after int64) {
			if len(f.asked) > 1 {
				streamed(w, whole(after))
				return
			}
			streamed(w, fmt.Sprintf(": hello\n\ndata: %s\n\n", event(1)))
			<-r.Context().Done()
		}
		told, err := follow(t, f, client.Following{})
		if !errors.Is(err, errDone) || !slices.Equal(told, everything) {
			t.Errorf("%v, %v", told, err)
		}
	})
}

func TestAServerMayBeAwayForAsLongAsPatienceSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := time.Now().Add(9 * time.Minute)
		f := &far{poll: unused}
		f.stream = func(w http.ResponseWriter, r *http.Request, after int64) {
			if time.Now().Before(back) {
				unused(w, r, after)
				return
			}
			streamed(w, whole(after))
		}
		var troubles []error
		told, err := follow(t, f, client.Following{Trouble: func(err error) { troubles = append(troubles, err) }})
		if !errors.Is(err, errDone) || !slices.Equal(told, everything) {
			t.Errorf("%v, %v", told, err)
		}
		if len(troubles) != 2 || fleet.CodeOf(troubles[0]) != fleet.CodeUnavailable || troubles[1] != nil {
			t.Errorf("told of %v", troubles)
		}
		if len(f.asked) < 100 || len(f.asked) > 600 {
			t.Errorf("asked %d times in 9 min", len(f.asked))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		told, err := follow(t, &far{stream: unused, poll: unused}, client.Following{Patience: time.Minute})
		if len(told) != 0 || fleet.CodeOf(err) != fleet.CodeUnavailable {
			t.Errorf("%v, %v", told, err)
		}
		if took := time.Since(began); took < time.Minute || took > time.Minute+10*time.Second {
			t.Errorf("it gave up after %s", took)
		}
	})
}

func TestWhatAskingAgainWouldNotMendIsSaidAtOnce(t *testing.T) {
	for status, code := range map[int]fleet.Code{
		http.StatusForbidden: fleet.CodeForbidden, http.StatusNotFound: fleet.CodeNotFound,
		http.StatusUnauthorized: client.CodeUnauthorized, http.StatusUnprocessableEntity: fleet.CodeInvalid,
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &far{poll: unused, stream: func(w http.ResponseWriter, _ *http.Request, _ int64) {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(status)
				_, _ = fmt.Fprintf(w, `{"status":%d,"code":%q,"detail":"no"}`, status, code)
			}}
			began := time.Now()
			if _, err := follow(t, f, client.Following{}); fleet.CodeOf(err) != code || time.Since(began) != 0 {
				t.Errorf("%d: %v after %s", status, err, time.Since(began))
			}
		})
	}
}

func TestFollowingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := client.New(client.Options{Handler: &far{poll: unused, stream: func(w http.ResponseWriter, r *http.Request, _ int64) {
			streamed(w, ": hello\n\n")
			<-r.Context().Done()
		}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		err = c.Follow(ctx, client.Following{}, func(client.Event) error { return nil })
		if fleet.CodeOf(err) != fleet.CodeCanceled {
			t.Errorf("got %v", err)
		}
	})
}
