package exec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// wireVersion is the version of the protocol in docs/providers/exec.md.
const wireVersion = 1

// request is what a command gets on stdin.
type request struct {
	Version   int             `json:"version"`
	Verb      Verb            `json:"verb"`
	Fleet     string          `json:"fleet"`
	VM        string          `json:"vm,omitempty"`
	Instance  string          `json:"instance,omitempty"`
	Image     string          `json:"image,omitempty"`
	Operation string          `json:"operation,omitempty"`
	Attempt   int             `json:"attempt,omitempty"`
	Token     string          `json:"token,omitempty"`
	Spec      json.RawMessage `json:"spec,omitempty"`
}

// answer is what a command may say on stdout. Which field belongs to which
// verb, the caller knows.
type answer struct {
	Version   int             `json:"version"`
	Instances []wireInstance  `json:"instances"`
	Instance  *wireInstance   `json:"instance"`
	Image     string          `json:"image"`
	Spec      json.RawMessage `json:"spec"`
	Remains   []string        `json:"remains"`
	Error     string          `json:"error"`
	Hint      string          `json:"hint"`
}

// wireInstance is fleet.Instance as the protocol spells it.
type wireInstance struct {
	ID        string            `json:"id"`
	VM        string            `json:"vm"`
	Presence  fleet.Presence    `json:"presence"`
	Ready     bool              `json:"ready"`
	Address   string            `json:"address"`
	HostKeys  []string          `json:"host_keys"`
	Image     string            `json:"image"`
	Labels    map[string]string `json:"labels"`
	CreatedAt time.Time         `json:"created_at"`
	Detail    string            `json:"detail"`
}

// errEmpty says that a command answered nothing at all.
var errEmpty = errors.New("it printed nothing on stdout")

// parse reads exactly one JSON document with known fields only.
func parse(out []byte) (answer, error) {
	var a answer
	if len(bytes.TrimSpace(out)) == 0 {
		return a, errEmpty
	}
	decoder := json.NewDecoder(bytes.NewReader(out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&a); err != nil {
		return answer{}, fmt.Errorf("its stdout is not the expected JSON: %w; it begins %s", err, excerpt(out))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return answer{}, fmt.Errorf("its stdout has something after the JSON document: %s", excerpt(out[decoder.InputOffset():]))
	}
	if a.Version != 0 && a.Version != wireVersion {
		return answer{}, fmt.Errorf("it speaks version %d of the protocol, and not %d", a.Version, wireVersion)
	}
	return a, nil
}

// instances checks and converts a list. A nil list is an error: only a list
// that is there and empty says that nothing is there.
func (a answer) instances() ([]fleet.Instance, error) {
	if a.Instances == nil {
		return nil, errors.New(`its answer has no "instances" (absence is {"instances": []})`)
	}
	seen := map[string]bool{}
	list := make([]fleet.Instance, 0, len(a.Instances))
	for _, wire := range a.Instances {
		if err := wire.check(); err != nil {
			return nil, err
		}
		if seen[wire.ID] {
			return nil, fmt.Errorf("its answer has the instance id %q twice", wire.ID)
		}
		seen[wire.ID] = true
		list = append(list, fleet.Instance(wire))
	}
	return list, nil
}

func (w wireInstance) check() error {
	switch {
	case w.ID == "":
		return errors.New("an instance has no id")
	case w.VM == "":
		return fmt.Errorf("instance %q has no vm", w.ID)
	}
	switch w.Presence {
	case fleet.PresenceRunning, fleet.PresenceOff, fleet.PresenceOther:
		return nil
	case fleet.PresenceAbsent:
		return fmt.Errorf("instance %q is listed as absent: leave it out instead", w.ID)
	default:
		return fmt.Errorf("instance %q has the presence %q: use running, off or other", w.ID, w.Presence)
	}
}

// excerpt renders the beginning of junk for a message, safe for a terminal.
func excerpt(out []byte) string {
	const most = 80
	text := strings.TrimSpace(string(out))
	if len(text) > most {
		text = text[:most] + "…"
	}
	return fmt.Sprintf("%q", text)
}
