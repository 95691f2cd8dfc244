package config

import (
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/goccy/go-yaml/ast"
)

// Duration is a length of time as Go writes it: 45s, 10m, 1h30m. It is never
// zero or negative in a file.
type Duration string

// D yields the length; 0 for a duration that was left out.
func (d Duration) D() time.Duration {
	length, err := time.ParseDuration(string(d))
	if err != nil { // refused by UnmarshalYAML
		return 0
	}
	return length
}

// What the messages and the schema say of durations.
const (
	durationTitle = "duration"
	durationHint  = "write 45s, 10m or 1h30m"
)

// UnmarshalYAML reads a duration. Errors: a positioned problem.
func (d *Duration) UnmarshalYAML(node ast.Node) error {
	text, ok := node.(*ast.StringNode)
	if !ok {
		return refuse(node, "a duration needs a unit", durationHint)
	}
	parsed, err := time.ParseDuration(text.Value)
	if err != nil {
		return refuse(node, quoted(text.Value)+" is not a duration", durationHint)
	}
	if parsed <= 0 {
		return refuse(node, "the duration "+text.Value+" is not positive", "leave the key out for the default")
	}
	*d = Duration(text.Value)
	return nil
}

// Schema describes a duration to editors.
func (Duration) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Title: durationTitle,
		Type:  huma.TypeString, Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`,
		Description: "A duration with its unit: 45s, 10m, 1h30m.",
	}
}
