package cli

import (
	"context"
	"fmt"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
)

// story tells an operation's journal to somebody who was not there: what was
// seen, by whom and when; what was decided of it, by which row of the drain's
// table; and what happens next if nothing else does.
type story struct {
	*program
	day, phase, row string
}

// tell prints one event.
func (s *story) tell(e *client.Event) {
	at := s.at(e.At)
	if day := at.Format(time.DateOnly); day != s.day {
		s.day = day
		fmt.Fprintln(s.Stdout, day)
	}
	phase := ""
	if word := deref(e.Phase); word != "" && word != s.phase {
		phase, s.phase = word, word
	}
	fmt.Fprintf(s.Stdout, "%s  %s  %s\n", s.paint.quiet(at.Format(clockFormat)), s.paint.phase(phase, fmt.Sprintf("%-10s", phase)), s.words(e))
	data, _ := e.Data.(map[string]any)
	if row := rowOf(data); row != "" && row+at.String() != s.row {
		s.row = row + at.String()
		s.under("%s", row)
	}
	if kind, ok := data["disagreement"].(string); ok {
		s.under("%s", disagreementText(kind))
	}
	if until := s.until(data); until != "" {
		s.under("%s", until)
	}
}

// rowOf names the row that decided; "" = none did.
func rowOf(data map[string]any) string {
	row, ok := data["row"].(float64)
	if !ok {
		return ""
	}
	return fmt.Sprintf("row %.0f: %v", row, data["rule"])
}

// disagreementText says who contradicts whom; the word is the metric's.
func disagreementText(kind string) string {
	switch kind {
	case "gitlab_active_after_exit":
		return "GitLab contradicts the host: it still shows a job running (" + kind + ")"
	case "containers_after_exit":
		return "the host contradicts itself: containers outlived the runner (" + kind + ")"
	default:
		return "a witness contradicts it (" + kind + ")"
	}
}

// under prints a line that belongs to the event above.
func (s *story) under(format string, args ...any) {
	fmt.Fprintf(s.Stdout, "%22s  %s\n", "", s.paint.quiet(fmt.Sprintf(format, args...)))
}

func (s *story) words(e *client.Event) string {
	if e.Kind != "reading" {
		return s.eventText(e)
	}
	data, _ := e.Data.(map[string]any)
	source, _ := data["source"].(string)
	return sourceName(source) + ": " + e.Text
}

// until says when a decision's waiting was to end, and what then.
func (s *story) until(data map[string]any) string {
	text, _ := data["until"].(string)
	then, _ := data["then"].(string)
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || then == "" {
		return ""
	}
	return "until " + s.clock(at) + ", then " + then
}

// sourceName is what a person calls a source of evidence.
func sourceName(source string) string {
	if source == "gitlab" {
		return "GitLab"
	}
	return source
}

// journal prints everything that the journal has on an operation.
func (p *program) journal(ctx context.Context, s *session, op *client.Operation) error {
	fmt.Fprintf(p.Stdout, "\nwhat was seen, decided and done:\n")
	told, after := &story{program: p}, int64(0)
	for {
		params := client.ListEventsParams{Operation: &[]string{op.Id}, After: &after, Limit: new(int64(1000))}
		piece, err := s.Events(ctx, params)
		if err != nil {
			return err
		}
		for i := range piece.Events {
			told.tell(&piece.Events[i])
		}
		after = piece.Next
		if len(piece.Events) < 1000 {
			return nil
		}
	}
}
