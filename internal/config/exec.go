package config

import (
	"github.com/danielgtaylor/huma/v2"
	"github.com/goccy/go-yaml/ast"
)

// Exec is a provider made of commands of your own (docs/providers/exec.md):
// each is an argv array, never a shell string.
type Exec struct {
	List     []string `json:"list" minItems:"1" doc:"Lists every instance of the fleet's VMs."`
	Describe []string `json:"describe" minItems:"1" doc:"Describes the instances that carry one VM's name."`
	Prepare  []string `json:"prepare" minItems:"1" doc:"Resolves the image and checks what a create needs, before anything is touched. [\"true\"] goes without."`
	Check    []string `json:"check,omitempty" minItems:"1" doc:"Looks a prepared request up once more, just before the delete."`
	Create   []string `json:"create" minItems:"1" doc:"Makes the VM; may take long."`
	Delete   []string `json:"delete" minItems:"1" doc:"Deletes one instance by its id; may take long."`
	Remains  []string `json:"remains,omitempty" minItems:"1" doc:"Lists what is left of an instance: itself, disks, addresses."`

	Env            map[string]EnvValue `json:"env,omitempty" doc:"Added to every command's environment."`
	Spec           map[string]any      `json:"spec,omitempty" doc:"Anything; handed to prepare and create."`
	Timeouts       map[string]Duration `json:"timeouts,omitempty" doc:"Limits of the reading verbs, at most 20s each (the default)."`
	CommandTimeout Duration            `json:"command_timeout,omitempty" default:"1h" doc:"Ends a create or delete that hangs."`
	StateDir       string              `json:"state_dir,omitempty" doc:"Where long commands leave their results. Default: exec beside the database."`
}

// Commands yields the argv arrays by verb, those that are set.
func (e Exec) Commands() map[string][]string {
	all := map[string][]string{
		"list": e.List, "describe": e.Describe, "prepare": e.Prepare, "check": e.Check,
		"create": e.Create, "delete": e.Delete, "remains": e.Remains,
	}
	for verb, argv := range all {
		if len(argv) == 0 {
			delete(all, verb)
		}
	}
	return all
}

// EnvValue is the value of a command's environment variable: text, or the
// place of a secret that is read anew for each command.
type EnvValue struct {
	Literal string
	File    string
	Env     string
}

// UnmarshalYAML reads text or {file: …} or {env: …}.
func (v *EnvValue) UnmarshalYAML(node ast.Node) error {
	if _, ok := node.(ast.ScalarNode); ok {
		v.Literal = node.GetToken().Value
		return nil
	}
	var s Secret
	if err := s.UnmarshalYAML(node); err != nil {
		return err
	}
	if s.Credential != "" {
		return refuse(node, "a command's environment knows no credentials", "write text, {file: PATH} or {env: NAME}")
	}
	v.File, v.Env = s.File, s.Env
	return nil
}

// Schema describes the two forms to editors.
func (EnvValue) Schema(huma.Registry) *huma.Schema {
	place := func() *huma.Schema { return &huma.Schema{Type: huma.TypeString, MinLength: new(1)} }
	return &huma.Schema{
		Description: "Text, or {file: PATH} or {env: NAME} for a secret.",
		OneOf: []*huma.Schema{
			{Type: huma.TypeString},
			{Type: huma.TypeNumber},
			{Type: huma.TypeBoolean},
			{
				Type: huma.TypeObject, MinProperties: new(1), MaxProperties: new(1), AdditionalProperties: false,
				Properties: map[string]*huma.Schema{"file": place(), "env": place()},
			},
		},
	}
}
