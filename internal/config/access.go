package config

import (
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/goccy/go-yaml/ast"
)

// Issuer is one GitLab whose CI jobs may come with id_tokens.
type Issuer struct {
	Issuer   string `json:"issuer" minLength:"1" doc:"The claim iss, letter by letter: usually the URL of the GitLab instance. https only, but for loopback."`
	Audience string `json:"audience" minLength:"1" doc:"What the job writes as aud in its id_tokens section: name this server by its URL. Tokens made for anybody else, or for others too, are refused."`
}

// AccessRule lets jobs whose claims fit do something. What no rule allows is
// refused.
type AccessRule struct {
	Issuer string           `json:"issuer,omitempty" doc:"Only tokens of this issuer. Needed where server.oidc has several: each counts its projects from 1."`
	Claims map[string]Claim `json:"claims" minProperties:"1" doc:"What the id_token must say: all of these. One of project_id, namespace_id, project_path, namespace_path is needed; prefer ids, paths can be renamed and then be somebody else's."`
	Allow  []string         `json:"allow" minItems:"1" enum:"read,plan,recreate,delete,create,drain,undrain,extend,set-policy,skip-drain,override" doc:"What they may do. Changes need ref_protected \"true\" unless claims itself names ref_protected. override: also no_drain, take_over, parallel, a cap shorter or an on_overrun harsher than the fleet's own, and the other policies. extend, set-policy, skip-drain: of drains that are under way, whoever asked for them; the last needs override too."`
	Fleets []string         `json:"fleets" minItems:"1" doc:"With which fleets."`
	VMs    []Text           `json:"vms,omitempty" minItems:"1" doc:"With which of their VMs: names or {glob: PATTERN}. Left out: all."`
	MaxCap Duration         `json:"max_cap,omitempty" doc:"The longest cap that may be asked for, and, without override, the longest wait by on_overrun: wait. Left out: no limit of its own."`
}

// Claim is what one claim must be: one of these texts.
type Claim []Text

// Text is a text, or a pattern.
type Text struct {
	Text string
	Glob bool
}

const (
	claimTitle = "claim"
	claimHint  = "write a text, a number, {glob: PATTERN}, or a list of these"
	textTitle  = "text"
	boolHint   = `GitLab writes it as text: write "true" or "false", in quotes`
)

// UnmarshalYAML reads a text, a number, {glob: PATTERN}, or a list of these.
func (c *Claim) UnmarshalYAML(node ast.Node) error {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		var one Text
		if err := one.UnmarshalYAML(node); err != nil {
			return err
		}
		*c = Claim{one}
		return nil
	}
	for _, value := range list.Values {
		var one Text
		if err := one.UnmarshalYAML(value); err != nil {
			return err
		}
		*c = append(*c, one)
	}
	if len(*c) == 0 {
		return refuse(node, "an empty list fits nothing", claimHint)
	}
	return nil
}

// UnmarshalYAML reads a text, a number or {glob: PATTERN}.
func (t *Text) UnmarshalYAML(node ast.Node) error {
	switch v := node.(type) {
	case *ast.StringNode:
		t.Text = v.Value
	case *ast.IntegerNode:
		t.Text = v.GetToken().Value
		if n, err := strconv.ParseInt(t.Text, 10, 64); err != nil || strconv.FormatInt(n, 10) != t.Text {
			return refuse(node, "not a plain number", claimHint)
		}
	case *ast.BoolNode:
		return refuse(node, "a claim is never a boolean", boolHint)
	case ast.MapNode:
		return t.glob(node, v)
	default:
		return refuse(node, "not a text", claimHint)
	}
	if t.Text == "" {
		return refuse(node, "an empty text", claimHint)
	}
	return nil
}

func (t *Text) glob(node ast.Node, mapping ast.MapNode) error {
	for values := mapping.MapRange(); values.Next(); {
		text, ok := values.Value().(*ast.StringNode)
		if !ok || values.Key().String() != "glob" || text.Value == "" || t.Glob {
			return refuse(node, "not a pattern", claimHint)
		}
		t.Text, t.Glob = text.Value, true
	}
	if !t.Glob {
		return refuse(node, "not a pattern", claimHint)
	}
	return nil
}

// Schema describes a claim to editors.
func (Claim) Schema(registry huma.Registry) *huma.Schema {
	one := Text{}.Schema(registry)
	return &huma.Schema{
		Title:       claimTitle,
		Description: "A text, a number, {glob: PATTERN}, or a list of these. In a pattern * stops at a slash.",
		OneOf:       append([]*huma.Schema{{Type: huma.TypeArray, MinItems: new(1), Items: one}}, one.OneOf...),
	}
}

// Schema describes the forms to editors.
func (Text) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Title:       textTitle,
		Description: "A text, a number, or {glob: PATTERN}. In a pattern * stops at a slash.",
		OneOf: []*huma.Schema{
			{Type: huma.TypeString, MinLength: new(1)},
			{Type: huma.TypeInteger},
			{
				Type: huma.TypeObject, AdditionalProperties: false, Required: []string{"glob"},
				Properties: map[string]*huma.Schema{"glob": {Type: huma.TypeString, MinLength: new(1)}},
			},
		},
	}
}

// explainText says what is wrong where a text, or a list of them, should be.
func explainText(node ast.Node, where string) *problem {
	if list, ok := node.(*ast.SequenceNode); ok {
		for _, value := range list.Values {
			if _, isBool := value.(*ast.BoolNode); isBool {
				node = value
			}
		}
	}
	if _, isBool := node.(*ast.BoolNode); isBool {
		return refuse(node, where+": a claim is never a boolean", boolHint)
	}
	return refuse(node, where+": neither a text nor a number nor a pattern", claimHint)
}
