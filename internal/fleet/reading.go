package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Source is whom a reading comes from.
type Source string

// The sources.
const (
	SourceHost     Source = "host"
	SourceGitLab   Source = "gitlab"
	SourceProvider Source = "provider"
)

// Reading is what a source last said, in words. At is when the first of the
// readings that said so without a break was taken: a repeat is no news.
type Reading struct {
	Source Source    `json:"source"`
	At     time.Time `json:"at"`
	Text   string    `json:"text"`
}

// NoUsableAnswer begins the words of a reading of GitLab that is unknown.
const NoUsableAnswer = "no usable answer: "

// Ruling is what the table last made of the readings. At is when it first
// decided so.
type Ruling struct {
	At     time.Time `json:"at"`
	Row    int       `json:"row"`
	Rule   string    `json:"rule,omitempty"` // the row, in words
	Reason string    `json:"reason"`
}

// Words render the reading for people. The containers come last, so that the
// words of a reading without them are a beginning of the same with them.
func (h *HostReading) Words() string {
	if !h.Unit.Known() {
		return "systemd gave an empty answer" + because(h.Problem)
	}
	detail := "unit " + h.Unit.ActiveState + ", no process"
	if h.Unit.MainPID != 0 {
		detail = fmt.Sprintf("unit %s, process %d", h.Unit.ActiveState, h.Unit.MainPID)
	} else if h.Unit.Result != "" && h.Unit.Result != "success" {
		detail += ", systemd's result is " + h.Unit.Result
	}
	switch {
	case h.DropIn.Effective:
		detail += ", drain drop-in in effect"
	case h.DropIn.Present:
		detail += ", drain drop-in there, but not in effect"
	}
	words := h.runnerWords() + " (" + detail + ")"
	if !h.Complete() && h.Problem != "" {
		words += "; the answer is incomplete" + because(h.Problem)
	}
	return words + h.containerWords()
}

// runnerWords say what the unit's state means.
func (h *HostReading) runnerWords() string {
	switch {
	case h.Unit.Stopped():
		return "gitlab-runner has ended"
	case h.Unit.ActiveState == "active" && h.Unit.MainPID != 0:
		return "gitlab-runner serves"
	case h.Unit.ActiveState == "deactivating" && h.DropIn.Effective:
		return "gitlab-runner takes no new job and ends when its last one has"
	case h.Unit.ActiveState == "deactivating":
		return "gitlab-runner is being stopped, and not by this drain"
	default:
		return "gitlab-runner neither serves nor has ended"
	}
}

// containerWords name jobs while the process runs: its other containers come
// and go with every stage of a job.
func (h *HostReading) containerWords() string {
	if !h.ContainersKnown {
		return ""
	}
	var names []string
	for _, c := range h.Containers {
		name := ""
		switch {
		case c.JobID != 0:
			name = fmt.Sprintf("of job %d", c.JobID)
		case h.Unit.MainPID == 0:
			name = c.Name
		}
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	switch {
	case len(names) > 0:
		return "; containers: " + strings.Join(names, ", ")
	case h.Unit.MainPID == 0 && len(h.Containers) == 0:
		return "; no container is left"
	default:
		return ""
	}
}

// Words render the reading for people.
func (g *GitLabReading) Words() string {
	var words string
	switch {
	case g.Unknown != "":
		words = NoUsableAnswer + g.Unknown
	case g.OtherClaims > 0:
		words = fmt.Sprintf(NoUsableAnswer+"%d managers have this system_id", g.OtherClaims+1)
	case !g.Present:
		words = NoUsableAnswer + "the manager is not listed"
	default:
		words = g.Manager.Words()
	}
	for _, job := range g.Running {
		words += "; shows " + job.String() + " running on it"
	}
	for _, job := range g.Canceling {
		words += "; shows " + job.String() + " being canceled on it"
	}
	for _, job := range g.Unclaimed {
		words += "; shows " + job.String() + " running on the runner entry and linked to no manager: nobody can tell on which VM"
	}
	return words
}

// Words render the manager for people.
func (m Manager) Words() string {
	words := fmt.Sprintf("manager %d", m.ID)
	if m.Status != "" {
		words += " is " + m.Status
	}
	switch m.Execution {
	case ExecutionActive:
		return words + " and runs a job"
	case ExecutionIdle:
		return words + " and runs no job"
	default:
		return words + "; whether it runs a job is not said (job_execution_status is missing)"
	}
}

// Words render the reading for people.
func (p *ProviderReading) Words() string {
	if p.Subject.Instance == "" {
		return "no instance of that name is listed"
	}
	return fmt.Sprintf("instance %s is %s", p.Subject.Instance, p.Presence.words())
}

func (p Presence) words() string {
	if p == PresenceOther {
		return "neither running nor off"
	}
	return string(p)
}

func because(problem string) string {
	if problem == "" {
		return ""
	}
	return ": " + problem
}

// Alike says whether two texts differ in digits at most: the ports, times and
// counts of two failures of one kind.
func Alike(a, b string) bool { return a == b || noDigits(a) == noDigits(b) }

func noDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
}
