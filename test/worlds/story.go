package worlds

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Story tells a world line by line: time, who, what. The event log's own lines
// are between the world's, marked with a bar.
func (w *World) story() string {
	lines := slices.Clone(w.lines)
	for _, f := range w.store.Facts {
		lines = append(lines, line{since(f.At), fmt.Sprintf("| %s %s [%s] %s", f.Operation, f.VM, f.Kind, f.Text)})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return int(a.at - b.at) })
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%s %s\n", clockText(l.at), l.text)
	}
	return b.String()
}

// clockText is a moment as a person reads it.
func clockText(at time.Duration) string {
	return start.Add(at).Format("15:04:05.000")
}

// JSON renders a plan, to be run again from a file.
func (p Plan) JSON() string {
	raw, err := json.Marshal(p)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
