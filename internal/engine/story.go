package engine

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// mostReadings bounds how many changes of readings one operation writes to the
// event log: a host that comes and goes for hours must not fill the disk. The
// row has the last ones in any case.
const mostReadings = 200

// noAnswer begins the words of a source that could not be asked.
const noAnswer = "no answer: "

// saw keeps what a source says, and tells of it if that is news. It rides on
// the step's commit.
func (w *work) saw(source fleet.Source, at time.Time, words string) {
	i := slices.IndexFunc(w.op.Readings, func(r fleet.Reading) bool { return r.Source == source })
	reading := fleet.Reading{Source: source, At: at, Text: words}
	switch {
	case i < 0:
		w.op.Readings = append(slices.Clone(w.op.Readings), reading)
	case old(w.op.Readings[i].Text, words):
		return
	default:
		w.op.Readings = slices.Clone(w.op.Readings)
		w.op.Readings[i] = reading
	}
	if w.stray || w.op.Told > mostReadings {
		return
	}
	if w.op.Told++; w.op.Told > mostReadings {
		words = "readings change all the time: further ones are not written down"
	}
	w.facts = append(w.facts, readingFact(w.op, reading, words))
}

// said is what a source last said; "" = it was not asked.
func (w *work) said(source fleet.Source) string {
	for _, r := range w.op.Readings {
		if r.Source == source {
			return r.Text
		}
	}
	return ""
}

func readingFact(op *fleet.Operation, r fleet.Reading, words string) fleet.Fact {
	return fleet.Fact{
		At: r.At, Operation: op.ID, Fleet: op.Fleet, VM: op.VM,
		Kind: fleet.FactReading, Phase: op.Phase, Text: words, Data: about(telling{Source: r.Source}),
	}
}

// old says whether new words are none: a repeat, or another failure to answer.
func old(before, now string) bool {
	switch {
	case strings.HasPrefix(before, noAnswer):
		return strings.HasPrefix(now, noAnswer)
	case strings.HasPrefix(before, fleet.NoUsableAnswer):
		return fleet.Alike(before, now)
	default:
		return before == now
	}
}

// sawHost keeps what the host says; a nil reading is none, for want of why. A
// glance, which sees no containers, is no news where all that it says was known.
func (w *work) sawHost(r *fleet.HostReading, why string) {
	switch {
	case r == nil:
		w.saw(fleet.SourceHost, w.now(), noAnswer+why)
	case r.ContainersKnown || !strings.HasPrefix(w.said(fleet.SourceHost), r.Words()):
		w.saw(fleet.SourceHost, r.TakenAt, r.Words())
	}
}

// sawInstances keeps what the provider lists under the VM's name.
func (w *work) sawInstances(list []fleet.Instance) {
	r := w.providerReading(list)
	w.saw(fleet.SourceProvider, r.TakenAt, r.Words())
}

// sawAll keeps the evidence of one decision. What was not asked anew says
// nothing new.
func (w *work) sawAll(s *fleet.Snapshot) {
	w.sawHost(s.Host, s.HostErr)
	if s.Provider != nil {
		w.saw(fleet.SourceProvider, s.Provider.TakenAt, s.Provider.Words())
	}
	if s.GitLab != nil && !s.GitLab.TakenAt.IsZero() {
		w.saw(fleet.SourceGitLab, s.GitLab.TakenAt, s.GitLab.Words())
	}
}

// rules keeps what the table made of the evidence. It yields the reason to
// tell: the one told before, where the new one differs from it in the port
// numbers or seconds of an error.
func (w *work) rules(d fleet.Decision) string {
	if last := w.op.Ruling; last != nil && last.Row == d.Row && sameReason(d, last.Reason) {
		return last.Reason
	}
	w.op.Ruling = &fleet.Ruling{At: w.now(), Row: d.Row, Rule: d.Rule(), Reason: d.Reason}
	return d.Reason
}

// sameReason compares two reasons of one row. Those of rows 2, 3 and 6 hold
// the words of errors; those of others name jobs, whose digits count.
func sameReason(d fleet.Decision, before string) bool {
	switch d.Row {
	case 2, 3, 6:
		return fleet.Alike(before, d.Reason)
	default:
		return before == d.Reason
	}
}

// telling is what an event has beside its text: whom a reading is from, or
// which row of table 4.2 decided, and what comes of it when.
type telling struct {
	Source       fleet.Source       `json:"source,omitempty"`
	Row          int                `json:"row,omitempty"`
	Rule         string             `json:"rule,omitempty"`
	Disagreement fleet.Disagreement `json:"disagreement,omitempty"`
	Until        time.Time          `json:"until,omitzero"`
	Then         string             `json:"then,omitempty"`
}

func about(t telling) json.RawMessage {
	raw, err := json.Marshal(t)
	if err != nil { // texts and a time: it cannot happen
		return nil
	}
	return raw
}

// byRow adds to the last fact which row made it.
func (w *work) byRow(d fleet.Decision) {
	if d.Row != 0 {
		w.facts[len(w.facts)-1].Data = about(telling{Row: d.Row, Rule: d.Rule(), Disagreement: d.Disagreement()})
	}
}

// waitsByRow says what the drain waits for by the table, until when, and what
// the table does then.
func (w *work) waitsByRow(s *fleet.Snapshot, d fleet.Decision, reason string) {
	until, then := w.outlook(s, d)
	w.waitsUnder(d, reason, until, then)
}

// waitsUnder is waitsFor, with the row that makes it wait.
func (w *work) waitsUnder(d fleet.Decision, reason string, until time.Time, then string) {
	before := len(w.facts)
	w.waitsFor(reason, until, then)
	if len(w.facts) > before {
		w.facts[before].Data = about(telling{Row: d.Row, Rule: d.Rule(), Until: until, Then: then})
	}
}

// outlook is when the waiting ends, and what happens then. Past the intent to
// delete there is no way back that could be taken.
func (w *work) outlook(s *fleet.Snapshot, d fleet.Decision) (until time.Time, then string) {
	until, next := s.Outlook(d)
	if next.Action == fleet.ActRestore && !w.op.Delete.IntentAt.IsZero() {
		return time.Time{}, ""
	}
	if then = next.Then(w.op.Kind, s.Policy); then == "" {
		return time.Time{}, ""
	}
	return until, then
}
